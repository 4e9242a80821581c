package measure

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
	typeName     = "key.issued.secret" // 17 bytes, 267 in all
	eventBytes   = dataSize + metadataSize + len(typeName)
)

// Appends measures durable appends of one event each, by as many writers at once as each of writers says.
func Appends(ctx context.Context, dir string, o Options, writers ...int) (rows []Row, err error) {
	o = o.filled()
	j, err := journal.Open(filepath.Join(dir, "appends"), journal.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	bare, err := newBare(journal.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	for _, n := range writers {
		var got, raw []float64
		for range o.Turns {
			r, err := turn(ctx, o.Turn, n, func(context.Context, int) func() error { return bare.append })
			if err != nil {
				return nil, err
			}
			v, err := turn(ctx, o.Turn, n, func(ctx context.Context, w int) func() error { return appender(ctx, j, w) })
			if err != nil {
				return nil, err
			}
			raw, got = append(raw, r), append(got, v)
		}
		rows = append(rows, row(fmt.Sprintf("durable appends of %d bytes, %d writers", eventBytes, n), "appends/s", got, raw))
	}
	return rows, nil
}

// appender appends with ids that cost nothing to make: making them is no part of the log.
func appender(ctx context.Context, j *journal.Journal, writer int) func() error {
	stream, id, n := fmt.Sprintf("bench-%d", writer), uuid.New(), uint64(0)
	batch := []eventstore.Proposed{{Type: typeName, Data: make([]byte, dataSize), Metadata: make([]byte, metadataSize)}}
	return func() error {
		n++
		binary.BigEndian.PutUint64(id[8:], n)
		batch[0].ID = id
		_, err := j.Append(ctx, stream, eventstore.Any, batch)
		return err
	}
}

// turn lets writers append for a while and returns how many appends a second they got through.
func turn(ctx context.Context, d time.Duration, writers int, appender func(ctx context.Context, writer int) func() error) (float64, error) {
	var all sync.WaitGroup
	var count atomic.Int64
	var failed atomic.Pointer[error]
	begin := time.Now()
	for w := range writers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(ctx) // its own, as a request has
			defer cancel()
			n, add := int64(0), appender(ctx, w)
			for ; time.Since(begin) < d && ctx.Err() == nil; n++ {
				if err := add(); err != nil {
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
