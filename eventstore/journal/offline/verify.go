package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lieudit/eventstore/journal"
)

// Verified is the result of VerifyLog.
type Verified struct {
	Contents
	Segments int
	// Indexes names the index files that are missing or do not match their segment. This is not damage to the log: the
	// service rebuilds them at its next start. Next to a running service an index may be missing for an instant.
	Indexes []string
}

// VerifyLog reads a log from its files and checks everything: every CRC, the chain, the revisions of every stream, that
// appends are whole, and the indexes. It needs no lock, writes nothing, and works next to a running service. progress, if not
// nil, receives the bytes read and the total.
//
// Damage is an *eventstore.CorruptError, a folder without segments journal.ErrNoLog. With a *CorruptError, Verified describes
// the log before the damage.
func VerifyLog(ctx context.Context, dir string, progress func(done, total int64)) (Verified, error) {
	c := indexChecker{dir: dir, progress: progress}
	if err := c.measure(); err != nil {
		return Verified{}, fmt.Errorf("verify log: %w", err)
	}
	end, err := journal.WalkLog(ctx, journal.ReadOnlyDir(dir), journal.WalkVisitor{
		Segment: func(journal.WalkedSegment) error { c.Segments++; return nil },
		Append:  c.addAppend,
		Sealed:  c.checkIndex,
	})
	c.LogID, c.End, c.Last.Log = end.LogID, end.End, end.LogID
	if err != nil {
		err = fmt.Errorf("verify log in %s: %w", dir, err)
	}
	return c.Verified, err
}

// indexChecker collects the contents of a log and compares its index files with what they should hold.
type indexChecker struct {
	Verified
	dir      string
	progress func(done, total int64)
	total    int64 // bytes of all segments
}

// measure adds up the sizes of the segments.
func (c *indexChecker) measure() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if info, err := e.Info(); err == nil { // a spare may disappear meanwhile
			c.total += info.Size()
		}
	}
	return nil
}

func (c *indexChecker) addAppend(a journal.WalkedAppend) error {
	c.Contents.addAppend(a)
	if c.progress != nil {
		c.progress(int64(a.Last.Position), c.total)
	}
	return nil
}

// checkIndex compares the index file of a full segment with the one that its events give.
func (c *indexChecker) checkIndex(s journal.WalkedSegment, index []byte) error {
	stored, err := os.ReadFile(filepath.Join(c.dir, s.IndexName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !bytes.Equal(stored, index) {
		c.Indexes = append(c.Indexes, s.IndexName)
	}
	return nil
}
