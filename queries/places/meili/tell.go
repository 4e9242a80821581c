package meili

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"
)

// Tell makes the sites of a batch searchable as they stand, and those that are gone not. It fails with ErrRefused and
// ErrLost; a batch that failed may have been taken all the same.
func (x *Index) Tell(ctx context.Context, b Batch) error {
	made, _ := x.opened.now()
	documents, err := documentsOf(b)
	if err != nil {
		return err
	}
	if err := x.drop(ctx, b.Gone); err != nil {
		return err
	}
	if len(documents) > 0 {
		if err := x.done(ctx)(x.index().AddDocumentsWithContext(ctx, documents, nil)); err != nil {
			return err
		}
	}
	return x.still(ctx, made)
}

func documentsOf(b Batch) ([]document, error) {
	documents := make([]document, 0, len(b.Sites))
	for _, s := range b.Sites {
		d, err := documentOf(b.Fill, s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// drop deletes what is gone.
func (x *Index) drop(ctx context.Context, gone []string) error {
	var ids, accounts []string
	for _, key := range gone {
		if account, all := strings.CutSuffix(key, "/"); all {
			accounts = append(accounts, quoted(digest(account)))
		} else {
			ids = append(ids, idOf(key))
		}
	}
	if len(accounts) > 0 {
		filter := "compte IN [" + strings.Join(accounts, ", ") + "]"
		if err := x.done(ctx)(x.index().DeleteDocumentsByFilterWithContext(ctx, filter, nil)); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return x.done(ctx)(x.index().DeleteDocumentsWithContext(ctx, ids, nil))
	}
	return nil
}

// Seal notes how far the index was told of a fill. The first time it drops what is not of the fill, and the index answers from
// then on.
func (x *Index) Seal(ctx context.Context, b Batch) error {
	made, fill := x.opened.now()
	m := []mark{{markID, true, digest(b.Fill), b.Fill, b.Position}}
	if fill == b.Fill { // the mark is there, or the index is lost
		return x.done(ctx)(x.index().UpdateDocumentsWithContext(ctx, m, &meilisearch.DocumentOptions{SkipCreation: true}))
	}
	if err := x.still(ctx, made); err != nil {
		return err
	}
	if err := x.done(ctx)(x.index().AddDocumentsWithContext(ctx, m, nil)); err != nil {
		return err
	}
	if err := x.done(ctx)(x.index().DeleteDocumentsByFilterWithContext(ctx, fillFilter("!=", b.Fill), nil)); err != nil {
		return err
	}
	x.opened.set(made, b.Fill)
	return x.still(ctx, made)
}

// still is nil when the index is the one that was opened: one that is lost would be made again by who adds a document, without its
// settings and without what was in it.
func (x *Index) still(ctx context.Context, made time.Time) error {
	now, err := x.made(ctx)
	if codeOf(err) == "index_not_found" || err == nil && !now.Equal(made) {
		return ErrLost
	}
	return err
}

// done waits for a task that was given to the server.
func (x *Index) done(ctx context.Context) func(*meilisearch.TaskInfo, error) error {
	return func(given *meilisearch.TaskInfo, err error) error {
		if err != nil {
			return refused(failed("write", err))
		}
		for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
			task, err := x.server.GetTaskWithContext(ctx, given.TaskUID)
			if err != nil {
				return failed("task", err)
			}
			switch task.Status {
			case meilisearch.TaskStatusSucceeded:
				return nil
			case meilisearch.TaskStatusFailed, meilisearch.TaskStatusCanceled:
				return refused(fmt.Errorf("meilisearch: task %d %s: %w", given.TaskUID, task.Status, &apiError{0, task.Error.Code, task.Error.Message}))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
	}
}

const longestPause = 50 * time.Millisecond

// refused says of an error whether it will be the same next time, or whether the index is lost.
func refused(err error) error {
	switch code := codeOf(err); {
	case code == "index_not_found":
		return fmt.Errorf("%w: %w", ErrLost, err)
	case code == "payload_too_large", code == "malformed_payload", strings.HasPrefix(code, "invalid_document"), code == "missing_document_id",
		code == "max_fields_limit_exceeded", code == "immutable_field":
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
