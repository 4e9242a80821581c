package journal

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// markCountingFS counts the writes of a mark alone.
type markCountingFS struct {
	FS
	marks atomic.Int64
}

type markCountingFile struct {
	File
	fs *markCountingFS
}

func (c *markCountingFS) Open(name string, create bool) (File, error) {
	f, err := c.FS.Open(name, create)
	return markCountingFile{f, c}, err
}

func (c *markCountingFS) IsSame(name string, f File) (bool, error) {
	return c.FS.IsSame(name, f.(markCountingFile).File)
}

func (f markCountingFile) WriteAt(b []byte, at int64) (int, error) {
	if len(b) == durableMarkSize && frame(b).kind() == kindDurableMark {
		f.fs.marks.Add(1)
	}
	return f.File.WriteAt(b, at)
}

// An append that follows another brings its own mark. Only the last one before a pause needs a mark ahead.
func TestOneMarkIsWrittenAheadForEachPause(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fs := &markCountingFS{FS: Dir(dir)}
		j, err := Open(dir, Options{FS: fs, SegmentSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for pause := range int64(3) {
			for n := range 10 {
				e := eventstore.ProposedEvent{ID: uuid.New(), Type: "t", Data: fmt.Append(nil, n)}
				if _, err := j.Append(t.Context(), "a-1", eventstore.Any, []eventstore.ProposedEvent{e}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the writer is idle
			}
			if got := fs.marks.Load(); got != pause {
				t.Errorf("%d marks were written ahead before pause %d, want %d", got, pause+1, pause)
			}
			for _, length := range []time.Duration{markDelay, time.Minute} {
				time.Sleep(length)
				synctest.Wait()
				if got := fs.marks.Load(); got != pause+1 {
					t.Errorf("%d marks were written ahead %v into pause %d, want %d", got, length, pause+1, pause+1)
				}
			}
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if got := fs.marks.Load(); got != 3 {
			t.Errorf("%d marks were written, want 3: the last one was there before the journal closed", got)
		}
	})
}
