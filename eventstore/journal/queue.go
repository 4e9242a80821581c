package journal

import (
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// appendRequest is an append on its way to the writer. Its frames are encoded by the caller, so that the writer
// does little and never touches the caller's bytes.
type appendRequest struct {
	stream   string
	key      streamKey
	expected eventstore.Revision
	ids      []uuid.UUID
	frames   []byte

	isAbandoned atomic.Bool // the caller has left: it is not worth writing
	done        chan outcome
}

type outcome struct {
	result eventstore.AppendResult
	err    error
}

// appendQueue holds the appends that wait for the group after the one being written.
type appendQueue struct {
	mu         sync.Mutex
	pending    []*appendRequest
	closeErr   error // why nothing is taken in any more
	unresolved unresolvedAppends
	notEmpty   chan struct{}
}

// unresolvedAppends are the appends that a failed write may have made all the same, by their first id. To send one of them again
// settles nothing before the log was opened anew.
type unresolvedAppends struct {
	firstIDs map[uuid.UUID]struct{}
	err      error
}

// rejectionError is what an append is told that was not taken in.
func (q *appendQueue) rejectionError(r *appendRequest) error {
	if _, isUnresolved := q.unresolved.firstIDs[r.ids[0]]; isUnresolved {
		return q.unresolved.err
	}
	return q.closeErr
}

func newAppendQueue() *appendQueue { return &appendQueue{notEmpty: make(chan struct{}, 1)} }

func (q *appendQueue) enqueue(r *appendRequest) error {
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

func (q *appendQueue) signalNotEmpty() {
	select {
	case q.notEmpty <- struct{}{}:
	default:
	}
}

// takePending takes what waits and leaves the empty slice given to be filled. It reports false when the queue was closed.
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

// close answers all that wait with why, and all that come later. The first reason stays.
func (q *appendQueue) close(cause error) { q.failAll(nil, cause, unresolvedAppends{}) }

// failAll is close for who has taken appends out and not answered them.
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
