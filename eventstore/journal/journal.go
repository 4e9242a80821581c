// Package journal is the embedded event log: an eventstore.Store in one folder, written by one process. An append returns
// when its bytes are on disk, and readers see an event only then. No crash, power cut, full disk or failing fsync takes back
// an acknowledged event. Every event is checked against its CRC before it is returned.
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
// The segmentManager makes the next segment ahead of the writer and writes the index of each full one. The recovery reads the
// folder when the journal opens.
//
// The terms of this package; format.go has the bytes:
//
//   - A segment is one file of the log, with a fixed size. The active segment is the last one, which the writer fills. The
//     spare is the next segment, made before it is needed.
//   - A frame is one event, or one mark, as stored in a segment. A mark is a frame that declares up to which position the
//     log was on disk when it was written.
//   - A group is the set of appends that one fsync makes durable.
//   - A view is the part of the log that readers may see. It always ends behind a whole durable group.
//   - A torn tail is what a crash left half written behind the last durable group. It is cut off; it is not damage.
package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/dirlock"
)

const (
	// DefaultSegmentSize is the size of a segment file unless Options says otherwise.
	DefaultSegmentSize = 64 << 20

	minSegmentSize = 4 << 10
)

// Options are the settings of a journal. The zero value is what a service wants.
type Options struct {
	// Clock gives the time of new events. Nil means a clock.Clock of this machine, which does not jump. If it goes back by up
	// to clock.MaxJump, new events get the time of the last event instead, so that times do not fall along the log. They fall
	// once if the last event is further ahead than that: an earlier program stamped it with a wrong clock.
	Clock func() time.Time
	// Logger gets one line per incident. Nil means slog.Default().
	Logger *slog.Logger
	// SegmentSize is the size of new segments in bytes, from 4 KiB to 4 GiB - 1: offsets in a segment are 32 bits wide. 0
	// means DefaultSegmentSize. Existing segments keep their size. An append that does not fit a new segment is ErrTooLarge.
	SegmentSize int64
	// ObserveSync, if set, receives how long each fdatasync of appended events took. Two goroutines call it, never at the
	// same time.
	ObserveSync func(time.Duration)
	// FS holds the files; fault tests replace it. Nil means the folder given to Open, which holds the lock in any case.
	FS FS
}

func (o Options) withDefaults(dir string) Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.New(clock.Options{Log: o.Logger}).Now
	}
	if o.ObserveSync == nil {
		o.ObserveSync = func(time.Duration) {}
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
	crcSeed uint32    // see newCRCSeed
	opened  time.Time // see TimeAtOpen
	lock    *dirlock.Lock

	writer         *writer
	index          *streamIndex
	views          viewNotifier // the latest view
	queue          *appendQueue // from the callers of Append to the writer
	segmentManager *segmentManager
	streamKeys     streamKeyCache
	requestPool    sync.Pool // *appendRequest, for reuse

	failure    atomic.Pointer[error] // why the writer stopped
	closing    chan struct{}
	closeOnce  sync.Once
	closeErr   error         // the result of the first Close
	writerDone chan struct{} // closed when the writer has ended
}

var _ eventstore.Store = (*Journal)(nil)

// Open opens the log in dir, or makes one. It fails with a *dirlock.HeldError if another journal holds the folder, and with a
// *eventstore.CorruptError if the log is damaged where it had been durable. Whatever a crash left half written is cut off and
// logged.
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

// Exists reports whether a folder holds a log, or what damage has left of one: a segment file or an index file. A missing
// folder holds no log.
func Exists(dir string) (bool, error) {
	names, err := Dir(dir).Names()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, isSegment := parseSegmentName(strings.Replace(name, ".idx", ".log", 1))
		return isSegment
	}), err
}

// openLog recovers the log and starts the goroutines. After an error all files of the log are closed.
func (j *Journal) openLog() error {
	r := &recovery{options: j.options, recent: newRecentAppends(), index: newStreamIndex()}
	last, err := r.recoverLog()
	if err != nil {
		return errors.Join(err, closeSegments(r.segments))
	}
	active := r.segments[len(r.segments)-1]
	j.logID, j.crcSeed, j.index = r.logID, r.crcSeed, r.index
	if r.lastTime != 0 {
		j.opened = time.UnixMicro(r.lastTime).UTC()
	}
	j.views.view = view{segments: r.segments, end: r.tailReplay.wholeEnd, lastCheckpoint: last}
	j.queue = newAppendQueue()
	j.segmentManager = newSegmentManager(j.options, j.logID, active.nextBase())
	// Full segments whose index file was missing or damaged have their index in memory: write its file again.
	for _, s := range r.segments[:len(r.segments)-1] {
		if s.index.Load().file == nil {
			j.segmentManager.requestIndex(s)
		}
	}
	j.writer = &writer{
		journal: j, segments: r.segments, pos: r.tailReplay.wholeEnd, prevCRC: r.tailReplay.lastCRC, lastCheckpoint: last, lastTime: r.lastTime, recent: r.recent,
	}
	go j.segmentManager.maintainSegments()
	go j.writer.writeGroups()
	go j.watchFiles()
	return nil
}

// watchInterval is how long a lost file may go unnoticed, while appends that are lost with it are acknowledged.
const watchInterval = time.Second

// watchFiles stops writing when the lock or a segment is lost. It also reads the clock, which notices a jump only if it is
// read regularly. It ends when the journal closes.
func (j *Journal) watchFiles() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-j.closing:
			return
		case <-j.writerDone:
			return
		case <-ticker.C:
			j.options.Clock()
			if err := j.checkFiles(); errors.Is(err, dirlock.ErrLost) || errors.Is(err, errSegmentLost) {
				j.queue.close(j.stopWriting(err))
			}
		}
	}
}

// errSegmentLost: the file being written is no longer the segment under its name.
var errSegmentLost = errors.New("was moved, removed or replaced while in use")

// checkFiles fails if the folder is no longer locked or a segment is lost: whatever is written then is gone with the process.
// Any other error means that the check itself failed.
func (j *Journal) checkFiles() error {
	if err := j.lock.CheckHeld(); err != nil {
		return err
	}
	for _, s := range j.views.load().segments {
		name := segmentName(s.base)
		isSame, err := j.options.FS.IsSame(name, s.file)
		if err == nil && !isSame {
			err = fmt.Errorf("%s %w", name, errSegmentLost)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Identity is the UUID in the header of every segment. It is made with the log and never changes.
func (j *Journal) Identity(ctx context.Context) (uuid.UUID, error) {
	if j.isClosed() {
		return uuid.Nil, eventstore.ErrClosed
	}
	return j.logID, ctx.Err()
}

// LastCheckpoint names the last durable event. Its Event is uuid.Nil in an empty log.
func (j *Journal) LastCheckpoint() eventstore.Checkpoint { return j.views.load().lastCheckpoint }

// TimeAtOpen is the time of the last event that the log had when it was opened, zero for an empty log.
func (j *Journal) TimeAtOpen() time.Time { return j.opened }

// Health is nil while appends are expected to work. Otherwise it is ErrClosed, or ErrUnavailable with the cause. A failed
// write or a lost file lasts until the journal is opened again; a segment that could not be made is retried until there is
// room.
func (j *Journal) Health() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	if err := j.failure.Load(); err != nil {
		return *err
	}
	if err := j.checkFiles(); err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	if err := j.segmentManager.spareError(); err != nil {
		return fmt.Errorf("%w: %w", eventstore.ErrUnavailable, err)
	}
	return nil
}

// stopWriting permanently ends writing to every file and keeps the first cause. A page whose write failed may look clean, so
// a second try would prove nothing.
func (j *Journal) stopWriting(cause error) error {
	stopped := fmt.Errorf("%w: %w: %w", eventstore.ErrUnavailable, eventstore.ErrStopped, cause)
	if j.failure.CompareAndSwap(nil, &stopped) {
		j.options.Logger.Error("the log cannot write any more", "error", cause)
		j.segmentManager.abandon()
	}
	return *j.failure.Load()
}

// Close waits for the group that is being written. Appends behind it get ErrClosed. Close may be called repeatedly and
// concurrently; every call returns the same error.
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

// Verify reads everything that is durable and counts the events. It checks every frame's CRC, the chain across segments, the
// revisions of every stream, that appends are whole, and the indexes; Open checks much less. The first damage is a
// *eventstore.CorruptError. Verify may run alongside readers and appends.
func (j *Journal) Verify(ctx context.Context) (events int, err error) {
	v := j.views.load()
	// Build a second index from the events and compare each segment's part with its file.
	x, prevCRC := newStreamIndex(), j.crcSeed
	for i, s := range v.segments {
		x.activeBase = s.base
		c := v.newCursor(i, j.crcSeed)
		c.prevCRC = prevCRC
		p := newReplay(&c, func(a replayedAppend) error {
			events += len(a.ids)
			return errors.Join(ctx.Err(), j.checkOpen(), x.addAppend(a))
		})
		if err := p.replayAppends(); err != nil {
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

// verifyIndex compares the index file of a full segment, if it exists yet, with the index built from its events.
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
