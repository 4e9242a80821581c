package measure

import (
	"errors"
	"sync"

	"lieudit/eventstore/journal"
)

const bareSize = 64 << 20

// bare is the least that could be called a durable log: a file of zeros, and one goroutine that writes what has
// gathered, syncs, and lets the writers go on. It starts over when the file is full and could not be read back.
type bare struct {
	file journal.File
	mu   sync.Mutex
	wait []chan error
	wake chan struct{}
	done chan struct{}
}

func newBare(fs journal.FS) (*bare, error) {
	f, err := fs.Open("bare", true)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < bareSize && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros, at)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := &bare{file: f, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b, nil
}

func (b *bare) append() error {
	c := make(chan error, 1)
	b.mu.Lock()
	b.wait = append(b.wait, c)
	first := len(b.wait) == 1
	b.mu.Unlock()
	if first {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return <-c
}

func (b *bare) run() {
	defer close(b.done)
	var event [eventBytes]byte
	var buf []byte
	var group []chan error
	at := int64(0)
	for range b.wake {
		b.mu.Lock()
		group, b.wait = b.wait, group[:0]
		b.mu.Unlock()
		for buf = buf[:0]; len(buf) < len(group)*eventBytes; {
			buf = append(buf, event[:]...)
		}
		if at+int64(len(buf)) > bareSize {
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

func (b *bare) close() error {
	close(b.wake)
	<-b.done
	return b.file.Close()
}
