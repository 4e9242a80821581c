package customerarea

import (
	"context"
	"errors"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/schemas/access"
)

// takeTurns makes a list wait for its turn by account before each chunk of it is read: a page of a thousand entries takes a processor
// a hundred times as long as the check of an address. A share is held while the database is asked, so this budget is not that of the
// API's workers, which a database that does not answer must not hold up.
func takeTurns[T any](h *handler, p access.TokenGrant, read kit.ListReader[T]) kit.ListReader[T] {
	return func(ctx context.Context) (items []T, more bool, err error) {
		release, err := h.acquireList(ctx, p)
		if err != nil {
			return nil, false, err
		}
		defer release()
		return read(ctx)
	}
}

// acquireList waits for the turn of a list. The tokens of an account share its part; one of no account has its own. A wait that outlasts
// commandTimeout is an overload.
func (h *handler) acquireList(ctx context.Context, p access.TokenGrant) (release func(), err error) {
	name := p.Account
	if name == "" {
		name = "token " + p.TokenID // no account has this id: ids have no spaces
	}
	release, err = h.Lists.Acquire(ctx, name, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		err = budget.ErrOverloaded
	}
	return release, err
}
