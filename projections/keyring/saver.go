package keyring

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

const (
	pause   = time.Minute // between two snapshots
	busy    = 1000        // changes that are worth one
	distant = 64 << 20    // positions that are worth one, changes or not
)

// saver keeps the snapshot file. Writing goes on beside the ring's work.
type saver struct {
	file   string
	log    *slog.Logger
	mark   eventstore.Mark // of the last snapshot taken
	at     time.Time       // when it was
	saving atomic.Bool
	writes sync.WaitGroup
}

// due says whether a snapshot is worth its writing.
func (v *saver) due(mark eventstore.Mark, changes int, now time.Time) bool {
	if v.file == "" || v.saving.Load() || now.Sub(v.at) < pause {
		return false
	}
	return changes >= busy || mark.Position >= v.mark.Position+distant
}

func (v *saver) save(s snapshot, now time.Time) {
	v.mark, v.at = s.mark, now
	v.saving.Store(true)
	v.writes.Go(func() {
		defer v.saving.Store(false)
		v.write(s)
	})
}

// finish writes the last snapshot, when there is anything new in it.
func (v *saver) finish(s snapshot) {
	v.writes.Wait()
	if v.file != "" && s.mark != v.mark {
		v.write(s)
	}
}

func (v *saver) write(s snapshot) {
	if err := s.write(v.file); err != nil {
		v.log.Warn("key ring's snapshot could not be written", "file", v.file, "error", err)
	}
}
