package journal

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// retryEvery is how often a segment that could not be made is tried again without being asked for.
const retryEvery = time.Second

// keeper does behind the writer's back what would stall it: it makes the next segment ahead and puts the index
// of a full one on disk.
type keeper struct {
	o     Options
	log   uuid.UUID
	stop  chan struct{}
	poked chan struct{}
	done  chan struct{}

	mu      sync.Mutex // held while a segment is made
	next    eventstore.Position
	spare   *segment
	failing bool

	wanted atomic.Bool           // the writer will soon need the next segment
	lack   atomic.Pointer[error] // why there was none when it did

	fullMu sync.Mutex
	full   []*segment // whose index is not on disk yet
	stuck  bool       // the last one could not be written, which was told
}

func newKeeper(o Options, log uuid.UUID, next eventstore.Position) *keeper {
	return &keeper{
		o: o, log: log, next: next,
		stop: make(chan struct{}), poked: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// want asks for the next segment to be made.
func (k *keeper) want() {
	k.wanted.Store(true)
	k.poke()
}

// seal asks for the index of a full segment to be put on disk.
func (k *keeper) seal(s *segment) {
	k.fullMu.Lock()
	k.full = append(k.full, s)
	k.fullMu.Unlock()
	k.poke()
}

func (k *keeper) poke() {
	select {
	case k.poked <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	defer close(k.done)
	var again <-chan time.Time
	for {
		select {
		case <-k.stop:
			return
		case <-k.poked:
		case <-again:
		}
		again = nil
		if k.wanted.Load() && k.ensure() != nil {
			again = time.After(retryEvery)
		}
		k.writeIndexes()
	}
}

func (k *keeper) ensure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.make()
}

// make makes the next segment if there is none.
func (k *keeper) make() error {
	if k.spare != nil {
		return nil
	}
	s, err := createSegment(k.o.FS, header{log: k.log, base: uint64(k.next), size: uint64(k.o.SegmentSize)}, k.stop)
	if err == nil {
		k.spare = s
	}
	k.report(err)
	return err
}

// report says once that there is no room for the next segment, and once that there is again.
func (k *keeper) report(err error) {
	if err == nil {
		k.lack.Store(nil)
	}
	if failing := err != nil; failing == k.failing || errors.Is(err, eventstore.ErrClosed) {
		return
	}
	k.failing = !k.failing
	if k.failing {
		k.o.Logger.Error("the next segment of the log cannot be made", "position", uint64(k.next), "error", err)
	} else {
		k.o.Logger.Info("the next segment of the log could be made again", "position", uint64(k.next))
	}
}

// take is the next segment, made now if need be.
func (k *keeper) take() (*segment, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.make(); err != nil {
		k.lack.Store(&err)
		k.want()
		return nil, err
	}
	s := k.spare
	k.spare, k.next = nil, s.next()
	k.wanted.Store(false)
	return s, nil
}

// lacking is why the writer has no segment to go on with, nil when it has.
func (k *keeper) lacking() error {
	if err := k.lack.Load(); err != nil {
		return *err
	}
	return nil
}

// writeIndexes frees the memory of full segments. What cannot be written now is tried at the next poke; until
// then, and after a restart, the segment itself serves as well.
func (k *keeper) writeIndexes() {
	k.fullMu.Lock()
	full := k.full
	k.full = nil
	k.fullMu.Unlock()
	for i, s := range full {
		x, err := writeIndex(k.o.FS, s, encodeIndex(k.log, s, s.index.Load().runs))
		if err != nil {
			k.postpone(s, err)
			k.fullMu.Lock()
			k.full = append(full[i:], k.full...)
			k.fullMu.Unlock()
			return
		}
		k.stuck = false
		s.index.Store(x)
	}
}

// postpone says once that indexes cannot be written.
func (k *keeper) postpone(s *segment, err error) {
	if !k.stuck {
		k.o.Logger.Warn("the index of a segment stays in memory", "segment", segmentName(s.base), "error", err)
	}
	k.stuck = true
}

// close ends the goroutine, puts the last indexes on disk, and lets go of a spare that was not needed.
func (k *keeper) close() error {
	close(k.stop)
	<-k.done
	k.writeIndexes()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.spare == nil {
		return nil
	}
	return k.spare.file.Close()
}
