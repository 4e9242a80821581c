package budget

import (
	"context"
)

const (
	// SmallAnswer is the largest answer, in bytes, that needs no share of the budget.
	SmallAnswer = 64 << 10
	// AnswerChunk is how many bytes of rows are read at once for an answer that is sent while it is read. The last row may exceed it.
	AnswerChunk = 64 << 10
	// StreamedAnswer is how many bytes of the budget an answer takes that is sent chunk by chunk.
	StreamedAnswer = 4 * AnswerChunk
)

// Answer is the share of the budget that the answer to one request has. A nil Answer has no share and allows everything. It
// is not safe for concurrent use.
type Answer struct {
	Account string // whose part of the budget it takes; set before the first share is taken

	budget *Budget
	ctx    context.Context // of the request
	share  *Share          // nil if nothing is reserved
}

// NewAnswer returns an Answer without a share. Release must be called when the answer has been sent.
func NewAnswer(ctx context.Context, b *Budget) *Answer {
	return &Answer{budget: b, ctx: ctx}
}

// Reserve waits for a share for an answer that takes up to n bytes until it is sent; a small one needs no share. If n exceeds the part
// of the account, the answer gets all of that part, once no other answer of the account has any of it. Reserve fails with
// ErrOverloaded, or with the error of the request's context.
func (a *Answer) Reserve(n int64) (err error) {
	if a == nil || n <= SmallAnswer || a.share != nil {
		return nil
	}
	a.share, err = a.budget.AcquireShare(a.ctx, a.Account, min(n, a.budget.Part()))
	return err
}

// Fit resizes the share for an answer whose text has n bytes. If the answer exceeds the account's part, it takes all of that part:
// otherwise it could never be sent. It fails with ErrOverloaded if the answer is larger than what was reserved for it and the budget does
// not have enough left.
func (a *Answer) Fit(n int64) error {
	switch {
	case a == nil:
		return nil
	case n <= SmallAnswer:
		a.Release()
		return nil
	}
	if n = min(n, a.budget.Part()); a.share != nil && a.share.Resize(n) {
		return nil
	}
	a.Release()
	share, ok := a.budget.TryShare(a.Account, n)
	if !ok {
		return ErrOverloaded
	}
	a.share = share
	return nil
}

// Claim is Fit for an answer that must be sent, because the command that it answers has been carried out: it takes its share
// even if that exceeds the account's part or the budget.
func (a *Answer) Claim(n int64) {
	if a == nil || n <= a.budget.Part() && a.Fit(n) == nil {
		return
	}
	a.Release()
	a.share = a.budget.ClaimShare(a.Account, n)
}

// Release gives the share back. The Answer may be used again.
func (a *Answer) Release() {
	if a != nil && a.share != nil {
		a.share.Release()
		a.share = nil
	}
}
