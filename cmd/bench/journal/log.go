// Package journal measures the journal, the log in a data folder, on the available disk: durable appends, a catch-up read, and opening a large
// log. Each figure comes with a raw limit, the speed of a minimal program with the same bytes in the same minutes, because a figure alone means
// little on a shared machine. Journal and raw limit take turns, and each figure is the median of its turns (measure.Medians).
//
//	Run ──> measureAppends ──> newAppender ──> Journal.Append    raw limit: baselineLog.append
//	    └─> measureReads ──> fillLog ──> timeRead                raw limit: scanSegmentFiles
//
// The command that runs it is called log.
package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/measure"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// Options are the parameters of a run. All are required. Half a second a turn is enough for some thousand syncs of the disk.
// A million events fill several segment files of the log, so that a read crosses their borders.
type Options struct {
	RoundDuration time.Duration // of one turn of appends
	Rounds        int           // turns of the journal, and of the raw limit
	Events        int           // in the log that is read and opened
}

// The sizes in bytes and the type of the events that are appended.
const (
	dataSize     = 200
	metadataSize = 50
	eventType    = "key.issued.secret" // 17 bytes, so 267 in all
	eventBytes   = dataSize + metadataSize + len(eventType)
)

// Run measures in dir, which should be empty and on the disk that the service is to use. It reports six figures: appends by
// 1, 32 and 512 writers, two reads, and opening. It removes nothing: with a million events about half a gigabyte stays in
// dir.
func Run(ctx context.Context, dir string, o Options, out measure.Output) error {
	if err := measureAppends(ctx, dir, o, out); err != nil {
		return fmt.Errorf("measure appends: %w", err)
	}
	if err := measureReads(ctx, filepath.Join(dir, "reads"), o, out); err != nil {
		return fmt.Errorf("measure reads: %w", err)
	}
	return nil
}

// measureAppends measures durable appends of one event each: by one writer, which waits for a sync of the disk each time, and
// by many writers, whose appends share syncs.
func measureAppends(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	j, err := journal.Open(filepath.Join(dir, "appends"), journal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	baseline, err := newBaselineLog(journal.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, baseline.close()) }()
	for _, writers := range []int{1, 32, 512} {
		what := label("durable appends of %d bytes, %d writers", eventBytes, writers)
		out.Progress(fmt.Sprint(what.Value), 0, 0)
		err := out.ReportMedians(o.Rounds, func() ([]measure.Figure, error) {
			raw, err := measure.Loop(ctx, writers, o.RoundDuration, func(context.Context, int) func(int) error {
				return func(int) error { return baseline.append() }
			})
			if err != nil {
				return nil, err
			}
			got, err := measure.Loop(ctx, writers, o.RoundDuration, func(ctx context.Context, w int) func(int) error { return newAppender(ctx, j, w) })
			got.Raw = raw.Value
			return []measure.Figure{got.With(what)}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// label returns the only label of a figure of this benchmark, a description in words.
func label(format string, args ...any) measure.Label {
	return measure.Label{Name: "figure", Value: fmt.Sprintf(format, args...)}
}

// newAppender returns an operation that appends one event to the stream of its writer. An id is a random half, drawn once,
// and the number of the call: random ids for each event would cost time that is not the log's.
func newAppender(ctx context.Context, j *journal.Journal, writer int) func(n int) error {
	stream, id := fmt.Sprintf("bench-%d", writer), uuid.New()
	batch := []eventstore.ProposedEvent{{Type: eventType, Data: make([]byte, dataSize), Metadata: make([]byte, metadataSize)}}
	return func(n int) error {
		binary.BigEndian.PutUint64(id[8:], uint64(n))
		batch[0].ID = id
		_, err := j.Append(ctx, stream, eventstore.Any, batch)
		return err
	}
}

// measureReads measures three things on one log: opening it, a catch-up read of all its events, and a read whose filter matches none of them.
// Each round opens the log again. The raw limit of both reads is a scan of the same files; opening has none. If the files fit into the system's
// cache, the reads measure the processor and not the disk.
func measureReads(ctx context.Context, dir string, o Options, out measure.Output) error {
	out.Progress("reads", 0, 0)
	if err := fillLog(ctx, dir, o.Events); err != nil {
		return err
	}
	return out.ReportMedians(o.Rounds, func() ([]measure.Figure, error) {
		began := time.Now()
		j, err := journal.Open(dir, journal.Options{})
		if err != nil {
			return nil, err
		}
		openMilliseconds := float64(time.Since(began).Microseconds()) / 1e3
		readSpeed, eventCount, err := timeRead(ctx, j, nil, 0)
		skipSpeed, _, err2 := timeRead(ctx, j, eventstore.Filter{"other"}, eventCount)
		if err = errors.Join(err, err2, j.Close()); err != nil {
			return nil, err
		}
		began = time.Now()
		if err := scanSegmentFiles(journal.Dir(dir)); err != nil {
			return nil, err
		}
		raw := float64(eventCount) / time.Since(began).Seconds()
		return []measure.Figure{
			{Labels: []measure.Label{label("catch-up read of %d events", o.Events)}, Value: readSpeed, Raw: raw, Unit: "events/s"},
			{Labels: []measure.Label{label("catch-up read past %d unwanted events", o.Events)}, Value: skipSpeed, Raw: raw, Unit: "events/s"},
			{Labels: []measure.Label{label("opening a log of %d events", o.Events)}, Value: openMilliseconds, Unit: "ms"},
		}, nil
	})
}

// timeRead reads the whole log through a filter, and returns the events a second and how many events appeared. If the filter matches no event,
// the speed is computed from eventsInLog; 0 means that all appear. A nil filter matches all events.
func timeRead(ctx context.Context, j *journal.Journal, filter eventstore.Filter, eventsInLog int) (perSecond float64, appeared int, err error) {
	began := time.Now()
	for s, err := range j.ReadAll(ctx, eventstore.Checkpoint{}, filter) {
		if err != nil {
			return 0, appeared, err
		}
		if s.Kind == eventstore.EventAppeared {
			appeared++
		}
	}
	return float64(max(appeared, eventsInLog)) / time.Since(began).Seconds(), appeared, nil
}

// fillLog writes events into a new log, ten in each append, over at most 100,000 streams. It appends from 64 goroutines,
// whose appends share syncs of the disk.
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

// scanSegmentFiles reads the segment files of a log from end to end and computes one CRC over each block of a mebibyte. This
// is the least that a read must do that notices damage, so its speed is the raw limit of reads.
func scanSegmentFiles(fs journal.FS) error {
	names, err := fs.Names()
	if err != nil {
		return err
	}
	block, table := make([]byte, 1<<20), crc32.MakeTable(crc32.Castagnoli)
	for _, name := range names {
		if filepath.Ext(name) != ".log" {
			continue
		}
		f, err := fs.Open(name, false)
		if err != nil {
			return err
		}
		for offset, n := int64(0), len(block); n == len(block) && err == nil; offset += int64(n) {
			// The last block is short. Its EOF is not an error, and n ends the loop.
			if n, err = f.ReadAt(block, offset); errors.Is(err, io.EOF) {
				err = nil
			}
			crc32.Checksum(block[:n], table)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
