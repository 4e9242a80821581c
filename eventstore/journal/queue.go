package journal

import (
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// request is an append on its way to the writer. Its frames are encoded by the caller, so that the writer
// does little and never touches the caller's bytes.
type request struct {
	stream   string
	key      streamKey
	expected eventstore.Revision
	ids      []uuid.UUID
	frames   []byte

	gone atomic.Bool // the caller has left: it is not worth writing
	done chan outcome
}

type outcome struct {
	committed eventstore.Committed
	err       error
}

// queue holds the appends that wait for the group after the one being written.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	why     error // why nothing is taken in any more
	doubts  doubts
	filled  chan struct{}
}

// doubts are the appends that a failed write may have made all the same, by their first id. To send one of them again
// settles nothing before the log was opened anew.
type doubts struct {
	appends map[uuid.UUID]struct{}
	answer  error
}

// refusal is what an append is told that was not taken in.
func (q *queue) refusal(r *request) error {
	if _, doubtful := q.doubts.appends[r.ids[0]]; doubtful {
		return q.doubts.answer
	}
	return q.why
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

func (q *queue) put(r *request) error {
	q.mu.Lock()
	if q.why != nil {
		defer q.mu.Unlock()
		return q.refusal(r)
	}
	q.waiting = append(q.waiting, r)
	first := len(q.waiting) == 1
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return nil
}

func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// swap takes what waits and leaves the empty slice given to be filled. It reports false when the queue was closed.
func (q *queue) swap(empty []*request) ([]*request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.why != nil {
		return nil, false
	}
	if len(q.waiting) == 0 {
		return nil, true
	}
	got := q.waiting
	q.waiting = empty[:0]
	return got, true
}

// close answers all that wait with why, and all that come later. The first reason stays.
func (q *queue) close(why error) { q.end(nil, why, doubts{}) }

// end is close for who has taken appends out and not answered them.
func (q *queue) end(taken []*request, why error, d doubts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.why == nil {
		q.why = why
	}
	if q.doubts.appends == nil {
		q.doubts = d
	}
	for _, r := range append(taken, q.waiting...) {
		r.done <- outcome{err: q.refusal(r)}
	}
	q.waiting = nil
	q.signal()
}
