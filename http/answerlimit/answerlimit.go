// Package answerlimit limits how many bytes of answers are in memory at once, by a budget.Budget, as bodylimit does for the bodies of
// requests. An answer that may become large takes its share before it is built (Reserve), for what it may hold at most; one that is
// sent while it is read takes Stream. Once it is built it holds what its text has (Fit). The share is given back when the answer was
// sent, or was broken off because its client reads too slowly (connlimit).
//
//	api, customerarea: New ──> kit.Call ──> operation: Hold.Reserve ──> kit.Response.Fit ──> sent ──> Hold.Release
package answerlimit

import (
	"context"

	"lieudit/http/budget"
)

const (
	// Small is the largest answer, in bytes, that needs no share of the budget.
	Small = 64 << 10
	// Chunk is how many bytes of rows an answer reads at once while it is sent, and one row more.
	Chunk = 64 << 10
	// Stream is what an answer that is sent chunk by chunk takes of the budget.
	Stream = 4 * Chunk
)

// Hold is what the answer to one request holds of the budget. A nil Hold holds nothing and allows everything. It is not safe for
// concurrent use.
type Hold struct {
	Account string // whose part of the budget it takes; set before the first share is taken

	budget *budget.Budget
	ctx    context.Context // of the request
	share  *budget.Share   // nil: none
}

// New returns a Hold of nothing yet. Release must be called when the answer was sent.
func New(ctx context.Context, b *budget.Budget) *Hold { return &Hold{budget: b, ctx: ctx} }

// Reserve waits for a share for an answer that may hold so many bytes until it was sent; a small one needs none. An answer that would
// exceed the account's part gets all of that, alone. It fails with budget.ErrOverloaded, or with the error of the request's context.
func (h *Hold) Reserve(bytes int64) (err error) {
	if h == nil || bytes <= Small || h.share != nil {
		return nil
	}
	h.share, err = h.budget.AcquireShare(h.ctx, h.Account, min(bytes, h.budget.Part()))
	return err
}

// Fit makes the share that of an answer whose text has so many bytes; of one that exceeds the account's part it is all of that, as
// otherwise such an answer could never be sent. It fails with budget.ErrOverloaded if the answer is larger than was reserved for it and
// the budget has not that much left.
func (h *Hold) Fit(bytes int64) error {
	switch {
	case h == nil:
		return nil
	case bytes <= Small:
		h.Release()
		return nil
	}
	if bytes = min(bytes, h.budget.Part()); h.share != nil && h.share.Resize(bytes) {
		return nil
	}
	h.Release()
	share, ok := h.budget.TryShare(h.Account, bytes)
	if !ok {
		return budget.ErrOverloaded
	}
	h.share = share
	return nil
}

// Claim is Fit for an answer that must be sent, because what it tells of is done: it takes its share though the budget be exceeded.
func (h *Hold) Claim(bytes int64) {
	if h == nil || bytes <= h.budget.Part() && h.Fit(bytes) == nil {
		return
	}
	h.Release()
	h.share = h.budget.ClaimShare(h.Account, bytes)
}

// Release gives back what is held. The Hold may be used again.
func (h *Hold) Release() {
	if h != nil && h.share != nil {
		h.share.Release()
		h.share = nil
	}
}
