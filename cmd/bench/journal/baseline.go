package journal

import (
	"errors"
	"sync"

	"lieudit/eventstore/journal"
)

// baselineSize is the size of the baseline's file. It is written from the beginning again once it is full, so it need not
// hold a whole round of appends.
const baselineSize = 64 << 20

// baselineLog is the minimal durable log: a preallocated file, and one goroutine that writes the pending appends as one group, syncs the file,
// and answers their writers. A full file is overwritten from its beginning; nothing reads it. The journal is compared with it, so both use the
// same package for files and group appends in the same way.
type baselineLog struct {
	file    journal.File
	mu      sync.Mutex
	pending []chan error  // one for each waiting append; guarded by mu
	wake    chan struct{} // holds a value when pending is no longer empty; closed by close
	done    chan struct{} // closed when the goroutine has ended
}

// newBaselineLog makes the file and starts its goroutine, which close ends. Every block of the file is written first, so that
// no append has to allocate one.
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
	go b.writeBatches()
	return b, nil
}

// append returns once an event is durable. It is safe for concurrent use; writers that wait at the same time share a sync.
func (b *baselineLog) append() error {
	c := make(chan error, 1)
	b.mu.Lock()
	b.pending = append(b.pending, c)
	first := len(b.pending) == 1
	b.mu.Unlock()
	// Only the first append of a group wakes the goroutine. wake has room for one value: a second one would be redundant.
	if first {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return <-c
}

// writeBatches writes and syncs one group after another. A group is all appends that arrived while the last group was written, as in the
// journal. All writers of a group get the same error.
func (b *baselineLog) writeBatches() {
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

// close ends the goroutine and closes the file. No append may be running.
func (b *baselineLog) close() error {
	close(b.wake)
	<-b.done
	return b.file.Close()
}
