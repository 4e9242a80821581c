package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Erase makes the personal data of a closed account unreadable for good: first the log says so, then the data key is
// destroyed. Twice is once, and finishes an erasure that was cut between the two.
func (a *Accounts) Erase(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	at, err := a.do(ctx, id, in, erase)
	if err != nil {
		return at, err
	}
	return at, a.codec.Forget(ctx, Aggregate.Category+"-"+id)
}

func erase(s *State) commands.Result {
	switch {
	case s.Erased:
		return commands.Result{}
	case !s.Closed():
		return refuse("erase", ErrOpen)
	}
	return commands.Append(event.AccountErased{})
}
