package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// MeasureReads measures a catch-up read of a whole log, and opening it.
func MeasureReads(ctx context.Context, dir string, o Options) ([]Figure, error) {
	o = o.withDefaults()
	dir = filepath.Join(dir, "reads")
	if err := fillLog(ctx, dir, o.Events); err != nil {
		return nil, err
	}
	var opened, read, skipped, raw []float64
	for range o.Rounds {
		begin := time.Now()
		j, err := journal.Open(dir, journal.Options{})
		if err != nil {
			return nil, err
		}
		opened = append(opened, float64(time.Since(begin).Milliseconds()))
		begin = time.Now()
		n, err := countEvents(ctx, j, nil)
		read = append(read, float64(n)/time.Since(begin).Seconds())
		begin = time.Now()
		_, err2 := countEvents(ctx, j, eventstore.Filter{"other"})
		skipped = append(skipped, float64(n)/time.Since(begin).Seconds())
		if err = errors.Join(err, err2, j.Close()); err != nil {
			return nil, err
		}
		begin = time.Now()
		if err := scanSegmentFiles(journal.Dir(dir)); err != nil {
			return nil, err
		}
		raw = append(raw, float64(n)/time.Since(begin).Seconds())
	}
	return []Figure{
		newFigure(fmt.Sprintf("catch-up read of %d events", o.Events), "events/s", read, raw),
		newFigure(fmt.Sprintf("catch-up read past %d unwanted events", o.Events), "events/s", skipped, raw),
		newFigure(fmt.Sprintf("opening a log of %d events", o.Events), "ms", opened, nil),
	}, nil
}

// fillLog writes events in appends of ten, ten or more to a stream.
func fillLog(ctx context.Context, dir string, events int) (err error) {
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var next atomic.Int64
	var writers errgroup.Group
	for range 64 {
		writers.Go(func() error {
			batch := make([]eventstore.ProposedEvent, 10)
			for n := next.Add(1); int(n)*len(batch) <= events; n = next.Add(1) {
				for i := range batch {
					batch[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: eventType, Data: make([]byte, dataSize), Metadata: make([]byte, metadataSize)}
				}
				if _, err := j.Append(ctx, fmt.Sprintf("account-%d", n%100_000), eventstore.Any, batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return writers.Wait()
}

func countEvents(ctx context.Context, j *journal.Journal, want eventstore.Filter) (n int, err error) {
	for s, err := range j.ReadAll(ctx, eventstore.Checkpoint{}, want) {
		if err != nil {
			return n, err
		}
		if s.Kind == eventstore.EventAppeared {
			n++
		}
	}
	return n, nil
}

// scanSegmentFiles reads the files of a log from end to end with one CRC over each block.
func scanSegmentFiles(fs journal.FS) error {
	names, err := fs.Names()
	if err != nil {
		return err
	}
	b, table := make([]byte, 1<<20), crc32.MakeTable(crc32.Castagnoli)
	for _, name := range names {
		if filepath.Ext(name) != ".log" {
			continue
		}
		f, err := fs.Open(name, false)
		if err != nil {
			return err
		}
		for at, n := int64(0), len(b); n == len(b) && err == nil; at += int64(n) {
			if n, err = f.ReadAt(b, at); errors.Is(err, io.EOF) {
				err = nil
			}
			crc32.Checksum(b[:n], table)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
