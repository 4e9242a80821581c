package journal

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// creationRetryInterval is how often a segment that could not be made is tried again without being asked for.
const creationRetryInterval = time.Second

// segmentManager does behind the writer's back what would stall it: it makes the next segment ahead and puts the index
// of a full one on disk.
type segmentManager struct {
	options Options
	logID   uuid.UUID
	stop    chan struct{}
	wake    chan struct{}
	done    chan struct{}

	mu                sync.Mutex // held while a segment is made
	nextBase          eventstore.Position
	spare             *segment
	isCreationFailing bool

	isSpareWanted atomic.Bool           // the writer will soon need the next segment
	spareErr      atomic.Pointer[error] // why there was none when it did

	unindexedMu    sync.Mutex
	unindexed      []*segment // whose index is not on disk yet
	isIndexFailing bool       // the last one could not be written, which was told
}

func newSegmentManager(o Options, logID uuid.UUID, next eventstore.Position) *segmentManager {
	return &segmentManager{
		options: o, logID: logID, nextBase: next,
		stop: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// requestSpare asks for the next segment to be made.
func (k *segmentManager) requestSpare() {
	k.isSpareWanted.Store(true)
	k.wakeUp()
}

// requestIndex asks for the index of a full segment to be put on disk.
func (k *segmentManager) requestIndex(s *segment) {
	k.unindexedMu.Lock()
	k.unindexed = append(k.unindexed, s)
	k.unindexedMu.Unlock()
	k.wakeUp()
}

func (k *segmentManager) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *segmentManager) run() {
	defer close(k.done)
	var retry <-chan time.Time
	for {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		case <-retry:
		}
		retry = nil
		if k.isSpareWanted.Load() && k.ensureSpare() != nil {
			retry = time.After(creationRetryInterval)
		}
		k.writeIndexes()
	}
}

func (k *segmentManager) ensureSpare() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.createSpare()
}

// createSpare makes the next segment if there is none.
func (k *segmentManager) createSpare() error {
	if k.spare != nil {
		return nil
	}
	s, err := createSegment(k.options.FS, segmentHeader{logID: k.logID, base: uint64(k.nextBase), size: uint64(k.options.SegmentSize)}, k.stop)
	if err == nil {
		k.spare = s
	}
	k.reportCreation(err)
	return err
}

// reportCreation says once that there is no room for the next segment, and once that there is again.
func (k *segmentManager) reportCreation(err error) {
	if err == nil {
		k.spareErr.Store(nil)
	}
	if isFailing := err != nil; isFailing == k.isCreationFailing || errors.Is(err, eventstore.ErrClosed) {
		return
	}
	k.isCreationFailing = !k.isCreationFailing
	if k.isCreationFailing {
		k.options.Logger.Error("the next segment of the log cannot be made", "position", uint64(k.nextBase), "error", err)
	} else {
		k.options.Logger.Info("the next segment of the log could be made again", "position", uint64(k.nextBase))
	}
}

// takeSpare is the next segment, made now if need be.
func (k *segmentManager) takeSpare() (*segment, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.createSpare(); err != nil {
		k.spareErr.Store(&err)
		k.requestSpare()
		return nil, err
	}
	s := k.spare
	k.spare, k.nextBase = nil, s.nextBase()
	k.isSpareWanted.Store(false)
	return s, nil
}

// spareError is why the writer has no segment to go on with, nil when it has.
func (k *segmentManager) spareError() error {
	if err := k.spareErr.Load(); err != nil {
		return *err
	}
	return nil
}

// writeIndexes frees the memory of full segments. What cannot be written now is tried at the next poke; until
// then, and after a restart, the segment itself serves as well.
func (k *segmentManager) writeIndexes() {
	k.unindexedMu.Lock()
	pending := k.unindexed
	k.unindexed = nil
	k.unindexedMu.Unlock()
	for i, s := range pending {
		x, err := writeSegmentIndex(k.options.FS, s, encodeSegmentIndex(k.logID, s, s.index.Load().runs))
		if err != nil {
			k.reportIndexFailure(s, err)
			k.unindexedMu.Lock()
			k.unindexed = append(pending[i:], k.unindexed...)
			k.unindexedMu.Unlock()
			return
		}
		k.isIndexFailing = false
		s.index.Store(x)
	}
}

// reportIndexFailure says once that indexes cannot be written.
func (k *segmentManager) reportIndexFailure(s *segment, err error) {
	if !k.isIndexFailing {
		k.options.Logger.Warn("the index of a segment stays in memory", "segment", segmentName(s.base), "error", err)
	}
	k.isIndexFailing = true
}

// close ends the goroutine, puts the last indexes on disk, and lets go of a spare that was not needed.
func (k *segmentManager) close() error {
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
