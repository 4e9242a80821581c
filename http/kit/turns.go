package kit

import (
	"context"
	"errors"

	"lieudit/http/budget"
)

// TakeTurns makes a list wait for its turn by account before each chunk of it is read. Without turns, the chunks of one account's
// lists fill the pool of the database's connections, which serves whoever waits in no order, and everybody else's reads wait with
// them. A turn is held while the database is asked, so lists is not the budget of the API's workers, which a database that does not
// answer must not hold up.
func TakeTurns[T any](lists *budget.Budget, account string, read ListReader[T]) ListReader[T] {
	return func(ctx context.Context) (items []T, more bool, err error) {
		release, err := AcquireTurn(ctx, lists, account)
		if err != nil {
			return nil, false, err
		}
		defer release()
		return read(ctx)
	}
}

// AcquireTurn waits for the turn of a list. A wait that outlasts ctx's deadline is an overload.
func AcquireTurn(ctx context.Context, lists *budget.Budget, account string) (release func(), err error) {
	release, err = lists.Acquire(ctx, account, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		err = budget.ErrOverloaded
	}
	return release, err
}
