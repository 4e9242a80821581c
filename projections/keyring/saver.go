package keyring

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

const (
	saveInterval    = time.Minute // between two snapshots
	minSaveChanges  = 1000        // changes that are worth one
	minSaveDistance = 64 << 20    // positions that are worth one, changes or not
)

// snapshotSaver keeps the snapshot file. Writing goes on beside the ring's work.
type snapshotSaver struct {
	file       string
	log        *slog.Logger
	checkpoint eventstore.Checkpoint // of the last snapshot taken
	savedAt    time.Time             // when it was
	isSaving   atomic.Bool
	writes     sync.WaitGroup
}

// isDue says whether a snapshot is worth its writing.
func (v *snapshotSaver) isDue(checkpoint eventstore.Checkpoint, changes int, now time.Time) bool {
	if v.file == "" || v.isSaving.Load() || now.Sub(v.savedAt) < saveInterval {
		return false
	}
	return changes >= minSaveChanges || checkpoint.Position >= v.checkpoint.Position+minSaveDistance
}

func (v *snapshotSaver) saveAsync(s snapshot, now time.Time) {
	v.checkpoint, v.savedAt = s.checkpoint, now
	v.isSaving.Store(true)
	v.writes.Go(func() {
		defer v.isSaving.Store(false)
		v.write(s)
	})
}

// saveFinal writes the last snapshot, when there is anything new in it.
func (v *snapshotSaver) saveFinal(s snapshot) {
	v.writes.Wait()
	if v.file != "" && s.checkpoint != v.checkpoint {
		v.write(s)
	}
}

func (v *snapshotSaver) write(s snapshot) {
	if err := s.writeFile(v.file); err != nil {
		v.log.Warn("key ring's snapshot could not be written", "file", v.file, "error", err)
	}
}
