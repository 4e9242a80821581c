package journal

import (
	"errors"
	"sync"

	"lieudit/eventstore/journal"
)

// baselineSize is the size of the baseline's file, which a round of appends goes round several times.
const baselineSize = 64 << 20

// baselineLog is the least that may be called a durable log: a preallocated file, and one goroutine that writes what has
// gathered, syncs, and lets the writers go on. A full file is written again from its beginning; nothing reads it.
type baselineLog struct {
	file    journal.File
	mu      sync.Mutex
	pending []chan error
	wake    chan struct{}
	done    chan struct{}
}

// newBaselineLog makes the file, with every block written, so that an append allocates none, and starts its goroutine.
// close ends that.
func newBaselineLog(fs journal.FS) (*baselineLog, error) {
	f, err := fs.Open("bare", true)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for offset := int64(0); offset < baselineSize && err == nil; offset += int64(len(zeros)) {
		_, err = f.WriteAt(zeros, offset)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := &baselineLog{file: f, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b, nil
}

// append returns once an event is durable. It is safe for concurrent use; writers that wait at the same time share a sync.
func (b *baselineLog) append() error {
	c := make(chan error, 1)
	b.mu.Lock()
	b.pending = append(b.pending, c)
	first := len(b.pending) == 1
	b.mu.Unlock()
	if first {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return <-c
}

// run writes what has gathered while the last group was written, as the journal does with its batches.
func (b *baselineLog) run() {
	defer close(b.done)
	var event [eventBytes]byte
	var buf []byte
	var group []chan error
	offset := int64(0)
	for range b.wake {
		b.mu.Lock()
		group, b.pending = b.pending, group[:0]
		b.mu.Unlock()
		for buf = buf[:0]; len(buf) < len(group)*eventBytes; {
			buf = append(buf, event[:]...)
		}
		if offset+int64(len(buf)) > baselineSize {
			offset = 0
		}
		_, err := b.file.WriteAt(buf, offset)
		offset += int64(len(buf))
		err = errors.Join(err, b.file.Sync())
		for _, c := range group {
			c <- err
		}
	}
}

// close ends the goroutine. No append may be running.
func (b *baselineLog) close() error {
	close(b.wake)
	<-b.done
	return b.file.Close()
}
