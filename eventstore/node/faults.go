package node

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"lieudit/eventstore"
)

// Faults make a node behave as a real EventStoreDB does where a node is kinder, for tests of clients. The zero
// value has none.
type Faults struct {
	// InsideRecord is the answer to a read of the whole log from a position at which no event begins.
	InsideRecord InsideRecord
	// RepeatTimeout, unless it is zero, drops an append whose first id is that of an append in flight, and answers
	// "Timeout" after this time. EventStoreDB takes 2 s.
	RepeatTimeout time.Duration
	// EarlyTimeout is how long before its deadline an append that is not done is answered "Timeout".
	EarlyTimeout time.Duration
	// Silence stops the node's connections while it lasts; nil: never.
	Silence *Silence
}

// InsideRecord is an answer to a read from inside a record.
type InsideRecord uint8

const (
	InsideRecordRefused InsideRecord = iota // InvalidArgument, a node's own answer
	InsideRecordFailed                      // Unknown, "Unexpected ReadAllResult: Error", as a server with its database on disk
	InsideRecordSilent                      // no answer for a minute, as a server with its database in memory
)

// insideRecordSilence is how long the real server was silent.
const insideRecordSilence = time.Minute

// faultyLog is a log whose Scan fails in the chosen way when it is to begin inside a record, that is at a position at
// which no event begins.
type faultyLog struct {
	Log
	insideRecord InsideRecord
}

func (l faultyLog) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for e, err := range l.Log.Scan(ctx, from, dir) {
			var diverged *eventstore.DivergedError
			if errors.As(err, &diverged) {
				err = l.insideRecordError(ctx)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// insideRecordError is the error of a real server, after its silence where that is the fault.
func (l faultyLog) insideRecordError(ctx context.Context) error {
	if l.insideRecord == InsideRecordSilent {
		silence := time.NewTimer(insideRecordSilence)
		defer silence.Stop()
		select {
		case <-silence.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return &refusal{code: codes.Unknown, text: "Unexpected ReadAllResult: Error"}
}

// inFlightAppends are the first ids of the appends that a node has received and not answered.
type inFlightAppends struct {
	mu  sync.Mutex
	ids map[uuid.UUID]bool
}

// addAppend records an append as in flight. It reports false when one with the same first id is in flight already. An append
// of no events is never recorded.
func (a *inFlightAppends) addAppend(events []eventstore.ProposedEvent) bool {
	if len(events) == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids[events[0].ID] {
		return false
	}
	if a.ids == nil {
		a.ids = map[uuid.UUID]bool{}
	}
	a.ids[events[0].ID] = true
	return true
}

// removeAppend makes room for the same append again.
func (a *inFlightAppends) removeAppend(events []eventstore.ProposedEvent) {
	if len(events) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ids, events[0].ID)
}

// answerDroppedRepeat answers a repeated append that was dropped.
func (b *batchAppender) answerDroppedRepeat(ctx context.Context, item *batch) {
	timer := time.NewTimer(b.node.options.Faults.RepeatTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		_ = b.sendResponse(item, batchTimeout())
	case <-ctx.Done():
	}
}

// Silence is a fault for tests of clients. While it lasts, a node keeps its connections and accepts new ones, but
// reads and writes nothing on them, as a real EventStoreDB does for seconds at times. Nothing is lost: a request
// that arrived before is done meanwhile and answered afterwards; one that arrives meanwhile is done afterwards. The
// zero value is not silent. It is safe for concurrent use.
type Silence struct {
	mu    sync.Mutex
	ended chan struct{} // nil: no silence; closed when the silence ends
}

// Begin makes the node silent until End.
func (s *Silence) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
}

// End ends the silence.
func (s *Silence) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// Repeat begins a silence of the given length once every interval, until ctx ends. The node is not silent
// afterwards.
func (s *Silence) Repeat(ctx context.Context, length, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	defer s.End()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.Begin()
		select {
		case <-time.After(length):
		case <-ctx.Done():
			return
		}
		s.End()
	}
}

// wait returns when there is no silence, or when closed is closed.
func (s *Silence) wait(closed <-chan struct{}) {
	for {
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended == nil {
			return
		}
		select {
		case <-ended:
		case <-closed:
			return
		}
	}
}

// silencedListener is a listener whose connections obey a silence.
type silencedListener struct {
	net.Listener
	silence *Silence
}

// Accept accepts connections during a silence too: a real server does, before it falls silent on them.
func (l silencedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &silencedConn{Conn: c, silence: l.silence, closed: make(chan struct{})}, nil
}

// silencedConn is a connection that neither reads nor writes during a silence.
type silencedConn struct {
	net.Conn
	silence *Silence
	once    sync.Once
	closed  chan struct{}
}

// Read reads at once but keeps what it read until the silence is over.
func (c *silencedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.silence.wait(c.closed)
	return n, err
}

// Write waits until the silence is over.
func (c *silencedConn) Write(p []byte) (int, error) {
	c.silence.wait(c.closed)
	return c.Conn.Write(p)
}

// Close ends a connection during a silence too.
func (c *silencedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
