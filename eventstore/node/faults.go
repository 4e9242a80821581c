package node

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"lieudit/eventstore"
)

// Faults make a node behave as a real EventStoreDB does where a node by itself is kinder: to test with. The zero value
// has none.
type Faults struct {
	// InsideRecord is what a read of the whole log meets at a position where no event begins.
	InsideRecord InsideRecord
	// DropRepeats, unless it is zero, drops an append whose first id is that of one still on its way, and answers
	// "Timeout" after so long. EventStoreDB takes 2 s.
	DropRepeats time.Duration
	// EarlyTimeout is how long before an append's deadline it is answered "Timeout", if it is not done by then.
	EarlyTimeout time.Duration
	// Silence makes the node fall silent while it lasts; a node speaks always where it is nil.
	Silence *Silence
}

// InsideRecord is an answer to a read from inside a record.
type InsideRecord uint8

const (
	RefusedInside InsideRecord = iota // InvalidArgument, which is a node's own
	FailedInside                      // Unknown, "Unexpected ReadAllResult: Error", as a server with a database on disk says
	SilentInside                      // nothing for a minute, as a server with one in memory does, or until the caller goes
)

// insideSilence is how long the real server said nothing.
const insideSilence = time.Minute

// unkind is a log whose Scan fails from inside a record as a fault wants it.
type unkind struct {
	Log
	inside InsideRecord
}

func (l unkind) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		for e, err := range l.Log.Scan(ctx, from, dir) {
			var diverged *eventstore.DivergedError
			if errors.As(err, &diverged) {
				err = l.fail(ctx)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l unkind) fail(ctx context.Context) error {
	if l.inside == SilentInside {
		silence := time.NewTimer(insideSilence)
		defer silence.Stop()
		select {
		case <-silence.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return &failure{code: codes.Unknown, text: "Unexpected ReadAllResult: Error"}
}

// onTheirWay are the first ids of the appends that a node was sent and has not answered.
type onTheirWay struct {
	mu  sync.Mutex
	ids map[uuid.UUID]bool
}

// add is false when the append is there already.
func (w *onTheirWay) add(events []eventstore.Proposed) bool {
	if len(events) == 0 {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ids[events[0].ID] {
		return false
	}
	if w.ids == nil {
		w.ids = map[uuid.UUID]bool{}
	}
	w.ids[events[0].ID] = true
	return true
}

func (w *onTheirWay) remove(events []eventstore.Proposed) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ids, events[0].ID)
}

// drop answers a repeat that is dropped.
func (b *batcher) drop(ctx context.Context, one *batch) {
	late := time.NewTimer(b.n.o.Faults.DropRepeats)
	defer late.Stop()
	select {
	case <-late.C:
		_ = b.answer(one, timedOut())
	case <-ctx.Done():
	}
}
