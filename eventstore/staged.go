package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"lieudit/schemas/event"
)

// Staged reads the events that a commit makes real, as if they stood in its place: they bear its stream, position,
// revision, time and envelope. That a commit is on the log and what it names is not, or not whole, is a *CorruptError.
func Staged(ctx context.Context, store Store, commit Recorded, e event.Staged) ([]Recorded, error) {
	stream, count, digest := e.Staging()
	h := sha256.New()
	rows := make([]Recorded, 0, count)
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
		return nil, &CorruptError{commit.Position, fmt.Sprintf("%s does not hold what %s@%d commits", stream, commit.Stream, commit.Revision)}
	}
	return rows, nil
}
