package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"lieudit/schemas/event"
)

// ReadStagedEvents reads the events that a commit makes real, as if they stood in its place: they bear its stream, position,
// revision, time and envelope. That a commit is on the log and what it names is not, or not whole, is an *UnusableError. A
// commit that names no stream, which earlier releases wrote when a staging failed, makes nothing real.
func ReadStagedEvents(ctx context.Context, store Store, commit RecordedEvent, e event.StagedCommit) ([]RecordedEvent, error) {
	if IsEmptyCommit(e) {
		return nil, nil
	}
	stream, count, digest := e.StagedStream()
	hash := sha256.New()
	rows := make([]RecordedEvent, 0, max(0, min(count, maxPreallocatedRows)))
	for r, err := range store.ReadStream(ctx, stream, 0, Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if len(rows) == count {
			break
		}
		hash.Write(r.Data)
		row := commit
		row.ID, row.Type, row.Data = r.ID, r.Type, r.Data
		rows = append(rows, row)
	}
	if sum := hash.Sum(nil); len(rows) != count || !bytes.Equal(sum, digest) {
		return nil, newUnusableError(commit, fmt.Errorf("%s does not hold what it commits", stream))
	}
	return rows, nil
}

// maxPreallocatedRows bounds the room that is set aside for what a commit says it holds.
const maxPreallocatedRows = 4096

// IsEmptyCommit says whether an event is a commit that names no stream. It changed nothing: whoever folds passes over it.
func IsEmptyCommit(e event.Event) bool {
	commit, ok := e.(event.StagedCommit)
	if !ok {
		return false
	}
	stream, _, _ := commit.StagedStream()
	return EntityID(stream) == ""
}
