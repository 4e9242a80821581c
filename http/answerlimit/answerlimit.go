// Package answerlimit limits how many bytes of answers are in memory at once, by a budget.Budget, as bodylimit does for the bodies of
// requests. An answer that may become large reserves the most that it can take before it is built (Reserve); one that is sent while
// it is read reserves Stream. Once it is built, its share is resized to the length of its text (Fit). The share is given back when the
// answer has been sent, or when connlimit has broken it off because its client reads too slowly.
//
//	api, customerarea: New ──> kit.Call ──> operation: Reserve ──> kit.Response.Fit ──> the answer is sent ──> Release
package answerlimit

import (
	"context"

	"lieudit/http/budget"
)

const (
	// Small is the largest answer, in bytes, that needs no share of the budget.
	Small = 64 << 10
	// Chunk is how many bytes of rows are read at once for an answer that is sent while it is read. The last row may exceed it.
	Chunk = 64 << 10
	// Stream is how many bytes of the budget an answer takes that is sent chunk by chunk.
	Stream = 4 * Chunk
)

// Reservation is the share of the budget that the answer to one request has. A nil Reservation has no share and allows everything. It
// is not safe for concurrent use.
type Reservation struct {
	Account string // whose part of the budget it takes; set before the first share is taken

	budget *budget.Budget
	ctx    context.Context // of the request
	share  *budget.Share   // nil: nothing is reserved
}

// New returns a Reservation without a share. Release must be called when the answer has been sent.
func New(ctx context.Context, b *budget.Budget) *Reservation {
	return &Reservation{budget: b, ctx: ctx}
}

// Reserve waits for a share for an answer that takes up to n bytes until it is sent; a small one needs no share. If n exceeds the part
// of the account, the answer gets all of that part, once no other answer of the account has any of it. Reserve fails with
// budget.ErrOverloaded, or with the error of the request's context.
func (r *Reservation) Reserve(n int64) (err error) {
	if r == nil || n <= Small || r.share != nil {
		return nil
	}
	r.share, err = r.budget.AcquireShare(r.ctx, r.Account, min(n, r.budget.Part()))
	return err
}

// Fit resizes the share for an answer whose text has n bytes. If the answer exceeds the account's part, it takes all of that: otherwise it
// could never be sent. It fails with budget.ErrOverloaded if the answer is larger than what was reserved for it and the budget does not
// have enough left.
func (r *Reservation) Fit(n int64) error {
	switch {
	case r == nil:
		return nil
	case n <= Small:
		r.Release()
		return nil
	}
	if n = min(n, r.budget.Part()); r.share != nil && r.share.Resize(n) {
		return nil
	}
	r.Release()
	share, ok := r.budget.TryShare(r.Account, n)
	if !ok {
		return budget.ErrOverloaded
	}
	r.share = share
	return nil
}

// Claim is Fit for an answer that must be sent, because the command that it answers has been carried out: it takes its share even if
// that exceeds the budget.
func (r *Reservation) Claim(n int64) {
	if r == nil || n <= r.budget.Part() && r.Fit(n) == nil {
		return
	}
	r.Release()
	r.share = r.budget.ClaimShare(r.Account, n)
}

// Release gives the share back. The Reservation may be used again.
func (r *Reservation) Release() {
	if r != nil && r.share != nil {
		r.share.Release()
		r.share = nil
	}
}
