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
	"lieudit/eventstore/dirlock"
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

func (o Options) withDefaults(dir string) Options {
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
	options Options
	logID   uuid.UUID
	crcSeed uint32
	lock    *dirlock.Lock

	writer         *writer
	index          *streamIndex
	views          viewNotifier
	queue          *appendQueue
	segmentManager *segmentManager
	streamKeys     streamKeyCache
	requestPool    sync.Pool

	failure    atomic.Pointer[error] // why the writer stopped
	closing    chan struct{}
	closeOnce  sync.Once
	closeErr   error         // what Close returned
	writerDone chan struct{} // closed when the writer has ended
}

var _ eventstore.Store = (*Journal)(nil)

// Open opens the log in dir, or makes one. A folder that another journal holds is a *hold.HeldError, a log that
// is damaged where it had been durable a *eventstore.CorruptError. What a crash left half written is
// cut off, with a line in the log of the program.
func Open(dir string, o Options) (*Journal, error) {
	o = o.withDefaults(dir)
	if o.SegmentSize < minSegmentSize || o.SegmentSize > math.MaxUint32 {
		return nil, fmt.Errorf("open journal %s: segments of %d bytes", dir, o.SegmentSize)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	lock, err := dirlock.Acquire(dir, o.Clock())
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{options: o, lock: lock, streamKeys: streamKeyCache{seed: maphash.MakeSeed()}, closing: make(chan struct{}), writerDone: make(chan struct{})}
	if err := j.openLog(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, errors.Join(err, lock.Close()))
	}
	return j, nil
}

const minSegmentSize = 4 << 10

func (j *Journal) openLog() error {
	r := &recovery{options: j.options, recent: newRecentAppends(), index: newStreamIndex()}
	last, err := r.run()
	if err != nil {
		return errors.Join(err, closeSegments(r.segments))
	}
	active := r.segments[len(r.segments)-1]
	j.logID, j.crcSeed, j.index = r.logID, r.crcSeed, r.index
	j.views.view = view{segments: r.segments, end: r.tailReplay.wholeEnd, lastCheckpoint: last}
	j.queue = newAppendQueue()
	j.segmentManager = newSegmentManager(j.options, j.logID, active.nextBase())
	for _, s := range r.segments[:len(r.segments)-1] {
		if s.index.Load().file == nil {
			j.segmentManager.requestIndex(s)
		}
	}
	j.writer = &writer{
		journal: j, segments: r.segments, pos: r.tailReplay.wholeEnd, prevCRC: r.tailReplay.lastCRC, lastCheckpoint: last, lastTime: r.lastTime, recent: r.recent,
	}
	go j.segmentManager.run()
	go j.writer.run()
	return nil
}

// Identity is the UUID in every segment of the log.
func (j *Journal) Identity(ctx context.Context) (uuid.UUID, error) {
	if j.isClosed() {
		return uuid.Nil, eventstore.ErrClosed
	}
	return j.logID, ctx.Err()
}

// LastCheckpoint marks the last durable event; its Event is uuid.Nil in an empty log.
func (j *Journal) LastCheckpoint() eventstore.Checkpoint { return j.views.load().lastCheckpoint }

// Health is nil, or why nothing can be appended.
func (j *Journal) Health() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	if err := j.failure.Load(); err != nil {
		return *err
	}
	if err := j.lock.CheckHeld(); err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	if err := j.segmentManager.spareError(); err != nil {
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
	j.closeOnce.Do(func() {
		close(j.closing)
		j.queue.close(eventstore.ErrClosed)
		<-j.writerDone
		err := j.segmentManager.close()
		j.closeErr = errors.Join(err, closeSegments(j.writer.segments), j.lock.Close())
	})
	return j.closeErr
}

func closeSegments(segments []*segment) (err error) {
	for _, s := range segments {
		err = errors.Join(err, s.file.Close())
		if x := s.index.Load(); x != nil && x.file != nil {
			err = errors.Join(err, x.file.Close())
		}
	}
	return err
}
