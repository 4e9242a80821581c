package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// errInvalidAppend is a mistake of the caller: no log could ever accept the append.
var errInvalidAppend = errors.New("not an append")

// Append encodes the events, queues them for the writer and waits for its answer. An append whose context ends is ErrUnknown:
// the writer skips it if it has not decided on it yet, and writes it otherwise.
func (j *Journal) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if j.isClosed() {
		return eventstore.AppendResult{}, eventstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return eventstore.AppendResult{}, unknownOutcome(err)
	}
	if err := j.validateAppend(stream, expected, events); err != nil {
		return eventstore.AppendResult{}, err
	}
	r := j.newRequest(stream, expected, events)
	if err := j.queue.enqueueAppend(r); err != nil {
		return eventstore.AppendResult{}, err
	}
	select {
	case out := <-r.done:
		j.requestPool.Put(r) // the writer no longer refers to it
		return out.result, out.err
	case <-ctx.Done():
		r.isAbandoned.Store(true) // the writer still has it: it does not go back to the pool
		return eventstore.AppendResult{}, unknownOutcome(ctx.Err())
	}
}

// unknownOutcome is ErrUnknown with its cause.
func unknownOutcome(cause error) error { return fmt.Errorf("%w: %w", eventstore.ErrUnknown, cause) }

// validateAppend refuses an append that could never be written. It must fit a segment of its own, with the header and the
// marks around it.
func (j *Journal) validateAppend(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) error {
	switch {
	case stream == "":
		return fmt.Errorf("%w: no stream", errInvalidAppend)
	case len(events) == 0:
		return fmt.Errorf("%w: no events", errInvalidAppend)
	case expected < eventstore.Any:
		return fmt.Errorf("%w: no revision %d can be expected", errInvalidAppend, expected)
	case len(stream) > math.MaxUint16:
		return fmt.Errorf("%w: stream name of %d bytes", eventstore.ErrTooLarge, len(stream))
	}
	bytes, framed := 0, segmentHeaderSize+2*durableMarkSize
	for i := range events {
		bytes += len(events[i].Type) + len(events[i].Data) + len(events[i].Metadata)
		framed += eventFrameSize(stream, &events[i])
	}
	if bytes > eventstore.MaxAppendBytes {
		return fmt.Errorf("%w: %d bytes", eventstore.ErrTooLarge, bytes)
	}
	if int64(framed) > j.options.SegmentSize {
		return fmt.Errorf("%w: %d events", eventstore.ErrTooLarge, len(events))
	}
	return nil
}

// appendRequest is one append on its way to the writer. The caller of Append encodes the frames, so that the writer does
// little and never reads the caller's slices.
type appendRequest struct {
	stream   string
	key      streamKey
	expected eventstore.Revision
	ids      []uuid.UUID
	frames   []byte

	isAbandoned atomic.Bool  // the caller's context has ended: do not write the append
	done        chan outcome // has room for one answer
}

// outcome is the answer to an append.
type outcome struct {
	result eventstore.AppendResult
	err    error
}

// newRequest encodes an append. It keeps only the stream's name of the caller's memory.
func (j *Journal) newRequest(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) *appendRequest {
	r, ok := j.requestPool.Get().(*appendRequest)
	if !ok {
		r = &appendRequest{done: make(chan outcome, 1)}
	}
	r.stream, r.key, r.expected = stream, j.streamKeys.keyFor(stream), expected
	r.ids, r.frames = r.ids[:0], r.frames[:0]
	for i := range events {
		kind := byte(kindEvent)
		if i == len(events)-1 {
			kind = kindLastEvent
		}
		r.ids = append(r.ids, events[i].ID)
		r.frames = appendEventFrame(r.frames, stream, &events[i], kind)
	}
	return r
}

// appendQueue holds the appends that wait for the writer. It is safe for concurrent use.
type appendQueue struct {
	mu         sync.Mutex
	pending    []*appendRequest
	closeErr   error // why the queue accepts no more appends
	unresolved unresolvedAppends
	notEmpty   chan struct{} // has room for one signal to the writer: there are new appends, or the queue is closed
}

// unresolvedAppends are the appends that a failed write may have made durable all the same, by their first id. A repeat of
// one gets the same error: only reopening the log shows whether it was added.
type unresolvedAppends struct {
	firstIDs map[uuid.UUID]struct{}
	err      error
}

func newAppendQueue() *appendQueue { return &appendQueue{notEmpty: make(chan struct{}, 1)} }

// enqueueAppend adds an append, or returns why the queue accepts no more. An append that was added gets its answer through
// done.
func (q *appendQueue) enqueueAppend(r *appendRequest) error {
	q.mu.Lock()
	if q.closeErr != nil {
		defer q.mu.Unlock()
		return q.rejectionError(r)
	}
	q.pending = append(q.pending, r)
	first := len(q.pending) == 1
	q.mu.Unlock()
	if first {
		q.signalNotEmpty()
	}
	return nil
}

// signalNotEmpty wakes the writer. One unread signal is enough.
func (q *appendQueue) signalNotEmpty() {
	select {
	case q.notEmpty <- struct{}{}:
	default:
	}
}

// takePending returns the waiting appends in order, and reuses the memory of empty for those that come next. It does not
// block and may return no appends. It reports false once the queue is closed.
func (q *appendQueue) takePending(empty []*appendRequest) ([]*appendRequest, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closeErr != nil {
		return nil, false
	}
	if len(q.pending) == 0 {
		return nil, true
	}
	got := q.pending
	q.pending = empty[:0]
	return got, true
}

// close answers all waiting and all later appends with cause. The first cause stays.
func (q *appendQueue) close(cause error) { q.failAll(nil, cause, unresolvedAppends{}) }

// failAll is close for the writer after a failed write. taken are the appends that it took out of the queue without
// answering; unresolved are those of the group whose write failed.
func (q *appendQueue) failAll(taken []*appendRequest, cause error, unresolved unresolvedAppends) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closeErr == nil {
		q.closeErr = cause
	}
	if q.unresolved.firstIDs == nil {
		q.unresolved = unresolved
	}
	for _, r := range append(taken, q.pending...) {
		r.done <- outcome{err: q.rejectionError(r)}
	}
	q.pending = nil
	q.signalNotEmpty()
}

// rejectionError is the error of an append that a closed queue refuses.
func (q *appendQueue) rejectionError(r *appendRequest) error {
	if _, isUnresolved := q.unresolved.firstIDs[r.ids[0]]; isUnresolved {
		return q.unresolved.err
	}
	return q.closeErr
}
