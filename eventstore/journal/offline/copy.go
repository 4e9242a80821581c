// Package offline works on the files of a journal without opening it: it copies a log while another process writes it,
// verifies one, and salvages what is intact in a damaged one. It takes no lock and changes nothing in the folder that it
// reads.
//
// journal.WalkLog reads the files and yields whole appends in order; each file of this package does one thing with them:
//
//	journal.WalkLog ──WalkedAppend──► folderWriter   CopyLog, SalvageLog: the same bytes at the same positions
//	                ──WalkedSegment─► indexChecker   VerifyLog: counts, and compares the indexes
//
// A copy is the log itself: it has the same UUID, and each event keeps its position, so checkpoints remain valid.
package offline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// Contents summarises the whole appends of a log. A log without events has zero times and a zero Last.
type Contents struct {
	LogID     uuid.UUID
	End       eventstore.Position // behind the last whole append
	Events    int
	Last      eventstore.Checkpoint // the last event
	FirstTime time.Time
	LastTime  time.Time
}

// addAppend counts one append.
func (c *Contents) addAppend(a journal.WalkedAppend) {
	if c.Events == 0 {
		c.FirstTime = a.Time
	}
	c.Events += a.Events
	c.Last, c.LastTime = a.Last, a.Time
}

// Copied is what CopyLog has copied.
type Copied struct{ Contents }

// CopyLog copies the log in srcDir to dstDir while another process may have it open and append. Everything acknowledged
// before the call is in the copy; a later append may be, but only as a whole. journal.Open opens the copy with the UUID and
// the positions of the log.
//
// dstDir must be empty or missing. The part that no append has reached takes no disk space in it. CopyLog returns when the
// copy survives a power cut. After any error dstDir holds no log: a log that is damaged before its last durable mark is an
// *eventstore.CorruptError, a folder without segments journal.ErrNoLog.
func CopyLog(ctx context.Context, srcDir, dstDir string) (Copied, error) {
	w, err := newFolderWriter(dstDir)
	if err != nil {
		return Copied{}, fmt.Errorf("copy log: %w", err)
	}
	contents, err := copyWhole(ctx, journal.ReadOnlyDir(srcDir), w)
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		return Copied{}, fmt.Errorf("copy log in %s: %w", srcDir, errors.Join(err, w.discard()))
	}
	return Copied{contents}, nil
}

// copyWhole copies the whole appends of a log up to its end or to the first damage, which is the error. The last file stays
// open for finish.
func copyWhole(ctx context.Context, fs journal.FS, w *folderWriter) (Contents, error) {
	var c Contents
	end, err := journal.WalkLog(ctx, fs, journal.WalkVisitor{
		Segment: w.beginSegment,
		Append: func(a journal.WalkedAppend) error {
			c.addAppend(a)
			return w.write(a.Frames)
		},
		Sealed: func(s journal.WalkedSegment, index []byte) error { return w.writeIndex(s.IndexName, index) },
	})
	c.LogID, c.End = end.LogID, end.End
	c.Last.Log, w.closingMark = end.LogID, end.Mark
	return c, err
}
