package journal

import (
	"errors"
	"sync"

	"lieudit/eventstore/journal"
)

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

func newBaselineLog(fs journal.FS) (*baselineLog, error) {
	f, err := fs.Open("bare", true)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < baselineSize && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros, at)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := &baselineLog{file: f, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b, nil
}

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

func (b *baselineLog) run() {
	defer close(b.done)
	var event [eventBytes]byte
	var buf []byte
	var group []chan error
	at := int64(0)
	for range b.wake {
		b.mu.Lock()
		group, b.pending = b.pending, group[:0]
		b.mu.Unlock()
		for buf = buf[:0]; len(buf) < len(group)*eventBytes; {
			buf = append(buf, event[:]...)
		}
		if at+int64(len(buf)) > baselineSize {
			at = 0
		}
		_, err := b.file.WriteAt(buf, at)
		at += int64(len(buf))
		err = errors.Join(err, b.file.Sync())
		for _, c := range group {
			c <- err
		}
	}
}

func (b *baselineLog) close() error {
	close(b.wake)
	<-b.done
	return b.file.Close()
}
