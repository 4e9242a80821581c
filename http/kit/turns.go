package kit

import (
	"context"
	"errors"

	"lieudit/http/budget"
)

// TakeTurns makes a list wait for its account's turn before each chunk is read. Without turns, the chunks of one account's lists
// would fill the pool of database connections, which serves waiting requests in no order, and the reads of all other accounts would
// wait with them. A turn is held while the database is queried, so lists is not the budget of the API's workers: a database that
// does not answer must not hold those up.
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

// AcquireTurn waits for the turn of a list. It fails with budget.ErrOverloaded if ctx's deadline passes first.
func AcquireTurn(ctx context.Context, lists *budget.Budget, account string) (release func(), err error) {
	release, err = lists.Acquire(ctx, account, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		err = budget.ErrOverloaded
	}
	return release, err
}
