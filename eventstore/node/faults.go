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

// Faults make a node behave as a real EventStoreDB does where a node by itself is kinder: to test with. The zero value
// has none.
type Faults struct {
	// InsideRecord is what a read of the whole log meets at a position where no event begins.
	InsideRecord InsideRecord
	// RepeatTimeout, unless it is zero, drops an append whose first id is that of one still on its way, and answers
	// "Timeout" after so long. EventStoreDB takes 2 s.
	RepeatTimeout time.Duration
	// EarlyTimeout is how long before an append's deadline it is answered "Timeout", if it is not done by then.
	EarlyTimeout time.Duration
	// Silence makes the node fall silent while it lasts; a node speaks always where it is nil.
	Silence *Silence
}

// InsideRecord is an answer to a read from inside a record.
type InsideRecord uint8

const (
	InsideRecordRefused InsideRecord = iota // InvalidArgument, which is a node's own
	InsideRecordFailed                      // Unknown, "Unexpected ReadAllResult: Error", as a server with a database on disk says
	InsideRecordSilent                      // nothing for a minute, as a server with one in memory does, or until the caller goes
)

// insideRecordSilence is how long the real server said nothing.
const insideRecordSilence = time.Minute

// faultyLog is a log whose Scan fails from inside a record as a fault wants it.
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

// inFlightAppends are the first ids of the appends that a node was sent and has not answered.
type inFlightAppends struct {
	mu  sync.Mutex
	ids map[uuid.UUID]bool
}

// add is false when the append is there already.
func (w *inFlightAppends) add(events []eventstore.ProposedEvent) bool {
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

func (w *inFlightAppends) remove(events []eventstore.ProposedEvent) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ids, events[0].ID)
}

// answerDroppedRepeat answers a repeat that is dropped.
func (b *batchAppender) answerDroppedRepeat(ctx context.Context, item *batch) {
	timer := time.NewTimer(b.node.options.Faults.RepeatTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		_ = b.sendResponse(item, batchTimeout())
	case <-ctx.Done():
	}
}

// Silence is a fault to test with. While it lasts, a node keeps its connections and takes new ones, and neither hears
// nor says anything on them: what a real EventStoreDB does for seconds now and then. Nothing is lost by it. What was
// asked before is done meanwhile and answered after it; what is asked meanwhile is done after it. The zero value
// speaks. It is safe for concurrent use.
type Silence struct {
	mu    sync.Mutex
	ended chan struct{} // nil: the node speaks; closed when the silence ends
}

// Begin makes the node fall silent until End.
func (s *Silence) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
}

// End makes the node speak again.
func (s *Silence) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// Repeat lets a silence of the given length begin every so often, until ctx ends; it leaves the node speaking.
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

// wait returns when the node speaks, or when closed is.
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

// silencedListener is a listener whose connections are held by a silence.
type silencedListener struct {
	net.Listener
	silence *Silence
}

func (l silencedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &silencedConn{Conn: c, silence: l.silence, closed: make(chan struct{})}, nil
}

type silencedConn struct {
	net.Conn
	silence *Silence
	once    sync.Once
	closed  chan struct{}
}

// Read holds what has come until the silence is over.
func (c *silencedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.silence.wait(c.closed)
	return n, err
}

func (c *silencedConn) Write(p []byte) (int, error) {
	c.silence.wait(c.closed)
	return c.Conn.Write(p)
}

// Close ends a connection in the middle of a silence too.
func (c *silencedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
