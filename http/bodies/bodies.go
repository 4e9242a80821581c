// Package bodies bounds what request bodies cost: how many of their bytes are in memory at once (Budget), and how long
// a client may take to send them (Paced). Its constraint is the order of checks: nothing of a body over Small is read
// before Admission.Allow has agreed and the body has its share.
//
//	connection ──> Paced ──> server, area: Budget.Limit ──> input: Read
//	                                  └── Acquire ──> release, once the request is answered
//
// x/sync/semaphore has neither turns by account nor a part that one account may hold, so the budget is our own.
package bodies

import (
	"context"
	"io"
	"net/http"
)

// Small is the most bytes of a body that need no share of the budget.
const Small = 64 << 10

// Admission is what a large body has to pass before it is read.
type Admission struct {
	Account string       // whose part of the budget it takes
	Limit   int64        // the most bytes of the body
	Allow   func() error // is asked before anything of a large body is read; nil: it may be read
}

// Limit makes the body of a request one that is read within the admission's limit and the budget: reads beyond
// the limit fail with a *http.MaxBytesError, and those of a large body with the error of Allow, ErrOverloaded or a cancelled
// context where it is not admitted. The share is the length that was declared, else the limit. It is held until
// release is called, which must be when nothing that was read is needed any more.
func (b *Budget) Limit(r *http.Request, a Admission) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	l := &limited{ReadCloser: r.Body, budget: b, ctx: r.Context(), admission: a, declared: r.ContentLength}
	if r.ContentLength <= a.Limit {
		l.ReadCloser = http.MaxBytesReader(nil, r.Body, a.Limit)
	}
	r.Body = l
	return l.release
}

// limited is a body that Limit made. It is read by one goroutine.
type limited struct {
	io.ReadCloser
	budget    *Budget
	ctx       context.Context // of the request
	admission Admission
	declared  int64 // -1: the length is not known
	read      int64
	admitted  bool
	err       error  // why it is not read on
	share     func() // gives it back; nil: it holds none
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err == nil && !l.admitted && (l.declared > Small || l.read > Small) {
		l.err = l.admit()
	}
	if l.err != nil {
		return 0, l.err
	}
	if !l.admitted && l.declared < 0 { // one byte more tells that it is large
		p = p[:min(int64(len(p)), Small+1-l.read)]
	}
	n, err := l.ReadCloser.Read(p)
	l.read += int64(n)
	return n, err
}

// admit waits for the share of a large body. Of one that says it is over the limit nothing is read.
func (l *limited) admit() (err error) {
	if l.declared > l.admission.Limit {
		return &http.MaxBytesError{Limit: l.admission.Limit}
	}
	if l.admission.Allow != nil {
		if err := l.admission.Allow(); err != nil {
			return err
		}
	}
	bytes := l.declared
	if bytes < 0 {
		bytes = l.admission.Limit
	}
	l.share, err = l.budget.Acquire(l.ctx, l.admission.Account, bytes)
	l.admitted = err == nil
	return err
}

// release gives the share back.
func (l *limited) release() {
	if l.share != nil {
		l.share()
	}
}
