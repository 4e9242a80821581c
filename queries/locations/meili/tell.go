package meili

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"
)

// ApplyBatch makes the sites of a batch searchable as they stand, and those that are gone not. It fails with ErrRefused and
// ErrLost; a batch that failed may have been taken all the same.
func (x *Index) ApplyBatch(ctx context.Context, b Batch) error {
	createdAt, _ := x.identity.state()
	documents, err := newDocuments(b)
	if err != nil {
		return err
	}
	if err := x.deleteGone(ctx, b.Deleted); err != nil {
		return err
	}
	if len(documents) > 0 {
		if err := x.awaitTask(ctx)(x.handle().AddDocumentsWithContext(ctx, documents, nil)); err != nil {
			return err
		}
	}
	return x.checkSameIndex(ctx, createdAt)
}

func newDocuments(b Batch) ([]document, error) {
	documents := make([]document, 0, len(b.Sites))
	for _, s := range b.Sites {
		d, err := newDocument(b.Generation, s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRejected, err)
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// deleteGone deletes what is gone.
func (x *Index) deleteGone(ctx context.Context, gone []string) error {
	var ids, accounts []string
	for _, key := range gone {
		if account, all := strings.CutSuffix(key, "/"); all {
			accounts = append(accounts, quote(hashText(account)))
		} else {
			ids = append(ids, documentID(key))
		}
	}
	if len(accounts) > 0 {
		filter := "compte IN [" + strings.Join(accounts, ", ") + "]"
		if err := x.awaitTask(ctx)(x.handle().DeleteDocumentsByFilterWithContext(ctx, filter, nil)); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return x.awaitTask(ctx)(x.handle().DeleteDocumentsWithContext(ctx, ids, nil))
	}
	return nil
}

// SaveProgress notes how far the index was told of a fill. The first time it drops what is not of the fill, and the index answers from
// then on.
func (x *Index) SaveProgress(ctx context.Context, b Batch) error {
	createdAt, generation := x.identity.state()
	checkpoint := []checkpointDocument{{checkpointID, true, hashText(b.Generation), b.Generation, b.Position}}
	if generation == b.Generation { // the mark is there, or the index is lost
		return x.awaitTask(ctx)(x.handle().UpdateDocumentsWithContext(ctx, checkpoint, &meilisearch.DocumentOptions{SkipCreation: true}))
	}
	if err := x.checkSameIndex(ctx, createdAt); err != nil {
		return err
	}
	if err := x.awaitTask(ctx)(x.handle().AddDocumentsWithContext(ctx, checkpoint, nil)); err != nil {
		return err
	}
	if err := x.awaitTask(ctx)(x.handle().DeleteDocumentsByFilterWithContext(ctx, generationFilter("!=", b.Generation), nil)); err != nil {
		return err
	}
	x.identity.setState(createdAt, b.Generation)
	return x.checkSameIndex(ctx, createdAt)
}

// checkSameIndex is nil when the index is the one that was opened: one that is lost would be made again by who adds a document, without its
// settings and without what was in it.
func (x *Index) checkSameIndex(ctx context.Context, createdAt time.Time) error {
	current, err := x.creationTime(ctx)
	if errorCode(err) == "index_not_found" || err == nil && !current.Equal(createdAt) {
		return ErrIndexReplaced
	}
	return err
}

// awaitTask waits for a task that was given to the server.
func (x *Index) awaitTask(ctx context.Context) func(*meilisearch.TaskInfo, error) error {
	return func(queued *meilisearch.TaskInfo, err error) error {
		if err != nil {
			return classifyError(wrapError("write", err))
		}
		for pause := time.Millisecond; ; pause = min(2*pause, maxTaskPoll) {
			task, err := x.server.GetTaskWithContext(ctx, queued.TaskUID)
			if err != nil {
				return wrapError("task", err)
			}
			switch task.Status {
			case meilisearch.TaskStatusSucceeded:
				return nil
			case meilisearch.TaskStatusFailed, meilisearch.TaskStatusCanceled:
				return classifyError(fmt.Errorf("meilisearch: task %d %s: %w", queued.TaskUID, task.Status, &apiError{0, task.Error.Code, task.Error.Message}))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
	}
}

const maxTaskPoll = 50 * time.Millisecond

// classifyError says of an error whether it will be the same next time, or whether the index is lost.
func classifyError(err error) error {
	switch code := errorCode(err); {
	case code == "index_not_found":
		return fmt.Errorf("%w: %w", ErrIndexReplaced, err)
	case code == "payload_too_large", code == "malformed_payload", strings.HasPrefix(code, "invalid_document"), code == "missing_document_id",
		code == "max_fields_limit_exceeded", code == "immutable_field":
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}
