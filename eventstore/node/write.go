package node

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// streamExists is the expectation that eventstore does not have, by EventStoreDB's own number.
const streamExists eventstore.Revision = -4

// lock is the lock of a stream and of its metadata.
func (n *Node) lock(stream string) *sync.RWMutex {
	if of, ok := owner(stream); ok {
		stream = of
	}
	return &n.locks[maphash.String(n.seed, stream)%uint64(len(n.locks))]
}

// append adds events to a stream as EventStoreDB does: never to a tombstoned one, and a softly deleted one comes back.
func (n *Node) append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	mu := n.lock(stream)
	mu.RLock()
	defer mu.RUnlock()
	s, err := n.settled(ctx, stream)
	if err != nil {
		return eventstore.Committed{}, err
	}
	if err := s.admits(stream, expected); err != nil {
		return eventstore.Committed{}, err
	}
	if len(events) == 0 {
		return n.appendNothing(ctx, s, stream, expected)
	}
	done, err := n.add(ctx, s, stream, expected, events)
	if err != nil {
		return done, err
	}
	if _, ok := owner(stream); ok || s.deleted {
		_, err = n.settled(ctx, stream)
	}
	return done, unsettled(err)
}

// appendNothing checks the expectation alone. EventStoreDB answers it with a position; the log's end is one that
// whoever waits for it will see passed.
func (n *Node) appendNothing(ctx context.Context, s state, stream string, expected eventstore.Revision) (eventstore.Committed, error) {
	if err := s.check(stream, expected); err != nil {
		return eventstore.Committed{}, err
	}
	end, err := n.head(ctx)
	return eventstore.Committed{Revision: s.last, Position: end}, err
}

// add hands events to the log, with the two expectations that mean something else there.
func (n *Node) add(ctx context.Context, s state, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if expected == streamExists {
		expected = eventstore.Any
	}
	done, err := n.log.Append(ctx, stream, expected, events)
	var conflict *eventstore.ConflictError
	if expected == eventstore.NoStream && s.deleted && errors.As(err, &conflict) {
		return n.log.Append(ctx, stream, s.last, events)
	}
	if errors.Is(err, eventstore.ErrMismatch) {
		return done, n.mismatch(ctx, stream, expected)
	}
	return done, err
}

// mismatch names the refusal of events whose ids are taken: EventStoreDB calls it a wrong version, unless the
// stream is where the append expected it.
func (n *Node) mismatch(ctx context.Context, stream string, expected eventstore.Revision) error {
	s, err := n.state(ctx, stream)
	if err != nil {
		return err
	}
	if s.last == expected {
		return invalidTransaction()
	}
	return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: s.last}
}

// settled is the state of a stream after the metadata that was due is written. For metadata it settles the stream
// it belongs to.
func (n *Node) settled(ctx context.Context, stream string) (state, error) {
	governed := stream
	if of, ok := owner(stream); ok {
		governed = of
	}
	for {
		s, err := n.state(ctx, governed)
		if err != nil {
			return s, err
		}
		if s.reopen == nil && governed == stream {
			return s, nil
		}
		if s.reopen == nil {
			return n.state(ctx, stream)
		}
		if err := n.reopened(ctx, governed, s.reopen); err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return s, err
		}
	}
}

func (n *Node) reopened(ctx context.Context, stream string, r *reopening) error {
	data, err := amended(r.from, r.first)
	if err != nil {
		return err
	}
	_, err = n.log.Append(ctx, metaOf(stream), r.from.Revision, []eventstore.Proposed{{ID: reopeningID(r.from), Type: metadataType, Data: data}})
	return err
}

// unsettled is the error of an append that was made but whose reader would not be told so: the same append settles it.
func unsettled(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(eventstore.ErrUnknown, err)
}

// admits refuses what no revision could make right.
func (s state) admits(stream string, expected eventstore.Revision) error {
	switch {
	case s.tomb, expected == streamExists && s.deleted:
		return deleted(stream)
	case expected == streamExists && s.last < 0 && s.meta < 0:
		return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream}
	}
	return nil
}

// check compares an expectation with the state, for what is not decided by the log.
func (s state) check(stream string, expected eventstore.Revision) error {
	reborn := expected == eventstore.NoStream && s.deleted
	if expected == eventstore.Any || expected == streamExists || expected == s.last || reborn {
		return nil
	}
	return &eventstore.ConflictError{Stream: stream, Expected: expected, Current: s.last}
}

// delete makes a stream unreadable until it is written to again.
func (n *Node) delete(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.end(ctx, stream, expected, func(s state) (eventstore.Committed, error) {
		if s.last < 0 && s.meta < 0 {
			return eventstore.Committed{}, wrongVersion("Delete", &eventstore.ConflictError{Stream: stream, Expected: expected, Current: eventstore.NoStream})
		}
		return n.log.Append(ctx, metaOf(stream), s.meta, []eventstore.Proposed{{
			ID: uuid.New(), Type: metadataType, Data: []byte(`{"$tb":9223372036854775807}`),
		}})
	})
}

// tombstone ends a stream for good.
func (n *Node) tombstone(ctx context.Context, stream string, expected eventstore.Revision) (eventstore.Position, error) {
	return n.end(ctx, stream, expected, func(s state) (eventstore.Committed, error) {
		return n.log.Append(ctx, stream, s.last, []eventstore.Proposed{{
			ID: uuid.New(), Type: tombstoneType, Metadata: mark(nil, false),
		}})
	})
}

// end decides alone, with no append to the stream on its way but those whose callers went away: what they leave behind
// is looked at again.
func (n *Node) end(ctx context.Context, stream string, expected eventstore.Revision, write func(state) (eventstore.Committed, error)) (eventstore.Position, error) {
	mu := n.lock(stream)
	mu.Lock()
	defer mu.Unlock()
	for {
		s, err := n.settled(ctx, stream)
		if err != nil {
			return 0, err
		}
		if err := cmp.Or(s.admits(stream, expected), s.check(stream, expected)); err != nil {
			return 0, err
		}
		done, err := write(s)
		if !errors.Is(err, eventstore.ErrConflict) {
			return done.Position, err
		}
	}
}

func streamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	if name == "" || name == "$$" || name == "$all" || !utf8.ValidString(name) {
		return "", invalid("'%s' is not a stream name.", printable(name))
	}
	return name, nil
}

func revision(r uint64) (eventstore.Revision, error) {
	if r > math.MaxInt64 {
		return 0, invalid("'%d' is not a revision.", r)
	}
	return eventstore.Revision(r), nil
}
