// Package journal measures the journal on the disk at hand. Beside each figure stands the raw limit: what the bare disk,
// or the bare memory, does with the same bytes in the same minutes, because a figure alone says little on a shared machine.
// Journal and raw limit take turns, and each figure is the median of its turns (measure.Medians).
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

// Options are the parameters of a run. All are required. Half a second a turn is enough for some thousand syncs; a million
// events are some segments of the log, so that a read crosses their borders.
type Options struct {
	RoundDuration time.Duration // of one turn of appends
	Rounds        int           // turns of the journal, and of the raw limit
	Events        int           // in the log that is read and opened
}

// The events that are appended.
const (
	dataSize     = 200
	metadataSize = 50
	eventType    = "key.issued.secret" // 17 bytes, so 267 in all
	eventBytes   = dataSize + metadataSize + len(eventType)
)

// Run measures in dir, which should be empty and on the disk that matters. With a million events it leaves about half a
// gigabyte there.
func Run(ctx context.Context, dir string, o Options, out measure.Output) error {
	if err := measureAppends(ctx, dir, o, out); err != nil {
		return fmt.Errorf("measure appends: %w", err)
	}
	if err := measureReads(ctx, filepath.Join(dir, "reads"), o, out); err != nil {
		return fmt.Errorf("measure reads: %w", err)
	}
	return nil
}

// measureAppends measures durable appends of one event each, by one writer and by many at once.
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

// label is the only label of a figure of this benchmark.
func label(format string, args ...any) measure.Label {
	return measure.Label{Name: "figure", Value: fmt.Sprintf(format, args...)}
}

// newAppender appends events whose ids cost nothing to make, because making ids is no part of the log.
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

// measureReads measures a catch-up read of a whole log, a read past events that are not wanted, and opening it.
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

// timeRead reads the whole log through a filter. The speed is that of the events that appeared, or of inLog events where
// that is given.
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

// scanSegmentFiles reads the files of a log from end to end, with one CRC over each block.
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
