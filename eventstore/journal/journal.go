// Package journal is the embedded event log: an eventstore.Store in one folder, written by one process. An append returns
// when its bytes are on disk, and a reader sees an event only then. No crash, power cut, full disk or failing fsync takes
// an acknowledged event back. Every byte that is read is checked against its CRC before anyone sees it.
//
// One append on its way to the disk and to the readers:
//
//	Append ──► appendQueue ──► writer ───────────► flusher ──► writer ───────────────► readers
//	encodes    collects all    decideAppend:       one write,  publishGroup:           ReadStream by the streamIndex,
//	the        that wait       repeat, conflict    one fsync   streamIndex and view    ReadAll, Subscribe and Scan
//	frames                     or new; new ones                change in one step,     over the segments of a view
//	                           get a place in a                then the callers get
//	                           group                           their answers
//
// The segmentManager makes the next segment ahead of the writer and writes the index of each full one. The recovery reads
// the folder when the journal opens.
package journal

import (
	"bytes"
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

const (
	// DefaultSegmentSize is the size of a segment file unless Options says otherwise.
	DefaultSegmentSize = 64 << 20

	minSegmentSize = 4 << 10
)

// Options are the settings of a journal. The zero value is what a service wants.
type Options struct {
	Clock       func() time.Time // stamps events; time.Now
	Logger      *slog.Logger     // gets one line an incident; slog.Default()
	SegmentSize int64            // of new segments, in bytes; an append that does not fit one is ErrTooLarge; DefaultSegmentSize
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
	closeErr   error         // the result of the first Close
	writerDone chan struct{} // closed when the writer has ended
}

var _ eventstore.Store = (*Journal)(nil)

// Open opens the log in dir, or makes one. When another journal has the folder it fails with a *dirlock.HeldError, when
// the log is damaged where it had been durable with a *eventstore.CorruptError. What a crash left half written is cut off
// and logged.
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

// openLog recovers the log and starts the goroutines.
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

// LastCheckpoint names the last durable event. Its Event is uuid.Nil in an empty log.
func (j *Journal) LastCheckpoint() eventstore.Checkpoint { return j.views.load().lastCheckpoint }

// Health is nil, or says why nothing can be appended.
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

// stopWriting ends writing for good and keeps the first cause. A page whose write failed may look clean, so a second try
// would prove nothing.
func (j *Journal) stopWriting(cause error) error {
	stopped := fmt.Errorf("%w: the log stopped writing: %w", eventstore.ErrUnavailable, cause)
	if j.failure.CompareAndSwap(nil, &stopped) {
		j.options.Logger.Error("the log cannot write any more", "error", cause)
	}
	return *j.failure.Load()
}

// Close waits for the group that is being written. Appends behind it get ErrClosed. Close may be called again and by many
// at once; every call returns the same.
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

func (j *Journal) isClosed() bool {
	select {
	case <-j.closing:
		return true
	default:
		return false
	}
}

// checkOpen is nil, or ErrClosed once Close has begun.
func (j *Journal) checkOpen() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	return nil
}

// Verify reads everything that is durable and counts the events. It checks every frame's CRC, the chain across segments,
// the revisions of every stream, that appends are whole, and the indexes; Open checks much less. The first damage is a
// *eventstore.CorruptError. Verify may run beside readers and appends.
func (j *Journal) Verify(ctx context.Context) (events int, err error) {
	v := j.views.load()
	x, prevCRC := newStreamIndex(), j.crcSeed
	for i, s := range v.segments {
		x.activeBase = s.base
		c := v.newCursor(i, j.crcSeed)
		c.prevCRC = prevCRC
		p := newReplay(&c, func(a replayedAppend) error {
			events += len(a.ids)
			return errors.Join(ctx.Err(), j.checkOpen(), x.addAppend(a))
		})
		if err := p.run(); err != nil {
			return events, j.translateReadError(p.asCorrupt(err))
		}
		if p.wholeEnd != v.segmentEnd(i) {
			return events, newCorruptError(p.wholeEnd, "append without its last event")
		}
		var runs []streamRun
		x.rollSegment(noSegment, func(full []streamRun) { runs = full })
		if i < len(v.segments)-1 {
			if err := j.verifyIndex(s, runs); err != nil {
				return events, j.translateReadError(err)
			}
		}
		prevCRC = p.lastCRC
	}
	return events, nil
}

// verifyIndex compares the index file of a full segment, if it has one yet, with what its events give.
func (j *Journal) verifyIndex(s *segment, runs []streamRun) error {
	if s.index.Load().file == nil {
		return nil
	}
	f, stored, err := openSegmentIndex(j.options.FS, s, j.logID)
	if errors.Is(err, errIndexMismatch) || err == nil && !bytes.Equal(stored, encodeSegmentIndex(j.logID, s, runs)) {
		err = newCorruptError(s.base, errIndexMismatch.Error())
	} else if err != nil {
		err = fmt.Errorf("read index: %w", err)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}
