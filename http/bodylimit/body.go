// Package bodylimit limits what request bodies cost: how many of their bytes are in memory at once (Limit, by a
// budget.Budget), and how slowly a client may send them (PacedReader). A body larger than Small is not read before Admission.Allow has
// agreed and the body holds its share of the budget. (If the client declares no length, the first Small+1 bytes are read to find out.)
//
//	connlimit ──> PacedReader ──> api, customerarea: Limit ──> limitedBody ──> kit.Decoder: Read
//	                                                                      │ first Read of a large body
//	                                Admission.Allow, budget.Acquire <─────┘
//	                                release <── the request is answered
package bodylimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"lieudit/http/budget"
	"lieudit/http/pace"
)

// Small is the largest body, in bytes, that needs no share of the budget.
const Small = 64 << 10

// Admission says by which rules Limit admits a body.
type Admission struct {
	Account string       // whose part of the budget a large body takes
	Limit   int64        // bytes of the largest body that is read
	Cost    int64        // what a large body takes of the budget, where that counts something other than bytes; 0: its bytes
	Allow   func() error // called once before a large body is read; an error refuses it; nil: every body may be read
}

// Limit replaces the body of a request by one that is read within the admission's limit and the budget. Reads beyond the
// limit fail with a *http.MaxBytesError. Reads of a large body that is not admitted fail with the error of Allow, with
// budget.ErrOverloaded, or with the error of the request's context. On its first read, a large body takes a share of its declared length, or of
// the limit if it declares none. The caller must call release once it no longer needs what was read; the share is held
// until then.
func Limit(b *budget.Budget, r *http.Request, a Admission) (release func()) {
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

// limitedBody is the body that Limit puts in place. One goroutine reads it.
type limitedBody struct {
	io.ReadCloser
	budget       *budget.Budget
	ctx          context.Context // of the request
	admission    Admission
	declared     int64 // -1: the length is not known
	read         int64
	admitted     bool
	err          error  // of admit; every later read returns it
	releaseShare func() // gives it back; nil: it holds none
}

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.err == nil && !l.admitted && (l.declared > Small || l.read > Small) {
		l.err = l.admit()
	}
	if l.err != nil {
		return 0, l.err
	}
	if !l.admitted && l.declared < 0 { // the length is unknown: one byte more than Small shows that the body is large
		p = p[:min(int64(len(p)), Small+1-l.read)]
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

// ErrSlow: the client sends its body slower than package pace allows.
var ErrSlow = errors.New("request body too slow")

// PacedReader is a body that the client must send as fast as package pace demands; reads of a slower one fail with ErrSlow. Only
// the time that reads wait for the client counts: a body that nobody reads is not late. One goroutine reads it.
type PacedReader struct {
	io.ReadCloser
	// SetReadDeadline is the method of the connection that the body comes from.
	SetReadDeadline func(time.Time) error

	meter pace.Meter
	total int64
	err   error // that ended reading; io.EOF: the body was read whole
}

// Progress returns how many bytes were read, and the error that ended reading: io.EOF where the body was read whole, nil
// where reading can continue.
func (p *PacedReader) Progress() (bytes int64, err error) { return p.total, p.err }

func (p *PacedReader) Read(buf []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	began := time.Now()
	p.SetReadDeadline(began.Add(p.meter.Timeout()))
	n, err := p.ReadCloser.Read(buf)
	isFast := p.meter.Add(int64(n), time.Since(began))
	p.total += int64(n)
	switch {
	case err == io.EOF:
		p.SetReadDeadline(time.Time{}) // the server reads in the background while the handler works, to notice a client that leaves
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlow
	case err == nil && !isFast:
		err = ErrSlow
	}
	p.err = err
	return n, err
}
