package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"lieudit/schemas/event"
)

// Staged reads the events that a commit makes real, as if they stood in its place: they bear its stream, position,
// revision, time and envelope. That a commit is on the log and what it names is not, or not whole, is an *UnusableError. A
// commit that names no stream, which earlier releases wrote when a staging failed, makes nothing real.
func Staged(ctx context.Context, store Store, commit Recorded, e event.Staged) ([]Recorded, error) {
	if IsEmptyCommit(e) {
		return nil, nil
	}
	stream, count, digest := e.Staging()
	h := sha256.New()
	rows := make([]Recorded, 0, max(0, min(count, maxReserved)))
	for r, err := range store.ReadStream(ctx, stream, 0, Forward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if len(rows) == count {
			break
		}
		h.Write(r.Data)
		placed := commit
		placed.ID, placed.Type, placed.Data = r.ID, r.Type, r.Data
		rows = append(rows, placed)
	}
	if sum := h.Sum(nil); len(rows) != count || !bytes.Equal(sum, digest) {
		return nil, unusable(commit, fmt.Errorf("%s does not hold what it commits", stream))
	}
	return rows, nil
}

// maxReserved bounds the room that is set aside for what a commit says it holds.
const maxReserved = 4096

// IsEmptyCommit says whether an event is a commit that names no stream. It changed nothing: whoever folds passes over it.
func IsEmptyCommit(e event.Event) bool {
	commit, ok := e.(event.Staged)
	if !ok {
		return false
	}
	stream, _, _ := commit.Staging()
	return Subject(stream) == ""
}
