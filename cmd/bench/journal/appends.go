package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

const (
	dataSize     = 200
	metadataSize = 50
	eventType    = "key.issued.secret" // 17 bytes, 267 in all
	eventBytes   = dataSize + metadataSize + len(eventType)
)

// MeasureAppends measures durable appends of one event each, by as many writers at once as each of writers says.
func MeasureAppends(ctx context.Context, dir string, o Options, writers ...int) (rows []Figure, err error) {
	o = o.withDefaults()
	j, err := journal.Open(filepath.Join(dir, "appends"), journal.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	baseline, err := newBaselineLog(journal.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, baseline.close()) }()
	for _, n := range writers {
		var got, raw []float64
		for range o.Rounds {
			r, err := measureRound(ctx, o.RoundDuration, n, func(context.Context, int) func() error { return baseline.append })
			if err != nil {
				return nil, err
			}
			v, err := measureRound(ctx, o.RoundDuration, n, func(ctx context.Context, w int) func() error { return newAppender(ctx, j, w) })
			if err != nil {
				return nil, err
			}
			raw, got = append(raw, r), append(got, v)
		}
		rows = append(rows, newFigure(fmt.Sprintf("durable appends of %d bytes, %d writers", eventBytes, n), "appends/s", got, raw))
	}
	return rows, nil
}

// newAppender appends with ids that cost nothing to make: making them is no part of the log.
func newAppender(ctx context.Context, j *journal.Journal, writer int) func() error {
	stream, id, n := fmt.Sprintf("bench-%d", writer), uuid.New(), uint64(0)
	batch := []eventstore.ProposedEvent{{Type: eventType, Data: make([]byte, dataSize), Metadata: make([]byte, metadataSize)}}
	return func() error {
		n++
		binary.BigEndian.PutUint64(id[8:], n)
		batch[0].ID = id
		_, err := j.Append(ctx, stream, eventstore.Any, batch)
		return err
	}
}

// measureRound lets writers append for a while and returns how many appends a second they got through.
func measureRound(ctx context.Context, d time.Duration, writers int, newAppender func(ctx context.Context, writer int) func() error) (float64, error) {
	var all sync.WaitGroup
	var count atomic.Int64
	var failed atomic.Pointer[error]
	begin := time.Now()
	for w := range writers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(ctx) // its own, as a request has
			defer cancel()
			n, appendOne := int64(0), newAppender(ctx, w)
			for ; time.Since(begin) < d && ctx.Err() == nil; n++ {
				if err := appendOne(); err != nil {
					failed.Store(&err)
					return
				}
			}
			count.Add(n)
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count.Load()) / time.Since(begin).Seconds(), ctx.Err()
}
