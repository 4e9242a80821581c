package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/hold"
)

// DefaultSegmentSize is the size of a segment file unless Options says otherwise.
const DefaultSegmentSize = 64 << 20

// Options are what a journal may be told; the zero value is what a service wants.
type Options struct {
	Clock       func() time.Time // what events are stamped with; time.Now
	Logger      *slog.Logger     // one line an incident; slog.Default()
	SegmentSize int64            // of new segments; an append larger than one is ErrTooLarge; DefaultSegmentSize
	FS          FS               // where the files are, for fault tests; the folder given to Open
}

func (o Options) filled(dir string) Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.FS == nil {
		o.FS = Dir(dir)
	}
	return o
}

// Journal is an open log. It implements eventstore.Store.
type Journal struct {
	o    Options
	id   uuid.UUID
	seed uint32
	lock *hold.Held

	writer   *writer
	index    *index
	tail     tail
	queue    *queue
	keeper   *keeper
	keys     keys
	requests sync.Pool

	failure atomic.Pointer[error] // why the writer stopped
	closing chan struct{}
	once    sync.Once
	closed  error         // what Close returned
	written chan struct{} // closed when the writer has ended
}

var _ eventstore.Store = (*Journal)(nil)

// Open opens the log in dir, or makes one. A folder that another journal holds is a *hold.HeldError, a log that
// is damaged where it had been durable a *eventstore.CorruptError. What a crash left half written is
// cut off, with a line in the log of the program.
func Open(dir string, o Options) (*Journal, error) {
	o = o.filled(dir)
	if o.SegmentSize < minSegment || o.SegmentSize > math.MaxUint32 {
		return nil, fmt.Errorf("open journal %s: segments of %d bytes", dir, o.SegmentSize)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	l, err := hold.Folder(dir, o.Clock())
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{o: o, lock: l, keys: keys{seed: maphash.MakeSeed()}, closing: make(chan struct{}), written: make(chan struct{})}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, errors.Join(err, l.Close()))
	}
	return j, nil
}

const minSegment = 4 << 10

func (j *Journal) open() error {
	r := &restore{o: j.o, recent: newRecent(), index: newIndex()}
	last, err := r.run()
	if err != nil {
		return errors.Join(err, closeAll(r.segs))
	}
	active := r.segs[len(r.segs)-1]
	j.id, j.seed, j.index = r.log, r.seed, r.index
	j.tail.view = view{segs: r.segs, end: r.tail.end, last: last}
	j.queue = newQueue()
	j.keeper = newKeeper(j.o, j.id, active.next())
	for _, s := range r.segs[:len(r.segs)-1] {
		if s.index.Load().file == nil {
			j.keeper.seal(s)
		}
	}
	j.writer = &writer{
		j: j, segs: r.segs, pos: r.tail.end, prev: r.tail.crc, last: last, time: r.time, recent: r.recent,
	}
	go j.keeper.run()
	go j.writer.run()
	return nil
}

// Identity is the UUID in every segment of the log.
func (j *Journal) Identity(ctx context.Context) (uuid.UUID, error) {
	if j.isClosed() {
		return uuid.Nil, eventstore.ErrClosed
	}
	return j.id, ctx.Err()
}

// End marks the last durable event; its Event is uuid.Nil in an empty log.
func (j *Journal) End() eventstore.Mark { return j.tail.load().last }

// Health is nil, or why nothing can be appended.
func (j *Journal) Health() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	if err := j.failure.Load(); err != nil {
		return *err
	}
	if err := j.lock.Lost(); err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	if err := j.keeper.lacking(); err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return nil
}

func (j *Journal) isClosed() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// Close waits for the group being written; appends behind it get ErrClosed. It may be called again.
func (j *Journal) Close() error {
	j.once.Do(func() {
		close(j.closing)
		j.queue.close(eventstore.ErrClosed)
		<-j.written
		err := j.keeper.close()
		j.closed = errors.Join(err, closeAll(j.writer.segs), j.lock.Close())
	})
	return j.closed
}

func closeAll(segs []*segment) (err error) {
	for _, s := range segs {
		err = errors.Join(err, s.file.Close())
		if x := s.index.Load(); x != nil && x.file != nil {
			err = errors.Join(err, x.file.Close())
		}
	}
	return err
}
