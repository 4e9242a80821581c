package budget

import (
	"context"
	"io"
	"net/http"
)

// SmallBody is the largest body, in bytes, that needs no share of the budget.
const SmallBody = 64 << 10

// Admission holds the rules by which LimitBody admits a body.
type Admission struct {
	Account string       // whose part of the budget a large body takes
	Limit   int64        // bytes of the largest body that is read
	Cost    int64        // what a large body takes of a budget that does not count bytes; 0 if it counts bytes
	Allow   func() error // called once before a large body is read, which an error refuses; nil if every body may be read
}

// LimitBody replaces the body of a request by one that is read within the admission's limit and the budget. Reads beyond the
// limit fail with a *http.MaxBytesError. Reads of a large body that is not admitted fail with the error of Allow, with
// ErrOverloaded, or with the error of the request's context. On its first read, a large body takes a share of its declared length, or of
// the limit if it declares none. The caller must call release once it no longer needs what was read; the share is held
// until then.
func LimitBody(b *Budget, r *http.Request, a Admission) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	l := &limitedBody{ReadCloser: r.Body, budget: b, ctx: r.Context(), admission: a, declared: r.ContentLength}
	if r.ContentLength <= a.Limit {
		l.ReadCloser = http.MaxBytesReader(nil, r.Body, a.Limit)
	}
	r.Body = l
	return l.releaseBudget
}

// limitedBody is the body that LimitBody installs. One goroutine reads it.
type limitedBody struct {
	io.ReadCloser
	budget       *Budget
	ctx          context.Context // of the request
	admission    Admission
	declared     int64 // -1 if the length is not known
	read         int64
	admitted     bool
	err          error  // of admit; every later read returns it
	releaseShare func() // gives the share back; nil if the body holds none
}

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.err == nil && !l.admitted && (l.declared > SmallBody || l.read > SmallBody) {
		l.err = l.admit()
	}
	if l.err != nil {
		return 0, l.err
	}
	if !l.admitted && l.declared < 0 { // the length is unknown: one byte more than SmallBody shows that the body is large
		p = p[:min(int64(len(p)), SmallBody+1-l.read)]
	}
	n, err := l.ReadCloser.Read(p)
	l.read += int64(n)
	return n, err
}

// admit checks a large body and waits for its share of the budget.
func (l *limitedBody) admit() (err error) {
	if l.declared > l.admission.Limit {
		return &http.MaxBytesError{Limit: l.admission.Limit}
	}
	if l.admission.Allow != nil {
		if err := l.admission.Allow(); err != nil {
			return err
		}
	}
	cost := l.admission.Cost
	switch {
	case cost > 0:
	case l.declared < 0:
		cost = l.admission.Limit
	default:
		cost = l.declared
	}
	l.releaseShare, err = l.budget.Acquire(l.ctx, l.admission.Account, cost)
	l.admitted = err == nil
	return err
}

// releaseBudget gives the share back, if the body holds one.
func (l *limitedBody) releaseBudget() {
	if l.releaseShare != nil {
		l.releaseShare()
	}
}
