package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

// EraseAccount makes the personal data of a closed account unreadable for good: first the log says so, then the data key is
// destroyed. Twice is once, and finishes an erasure that was cut between the two.
func (a *Accounts) EraseAccount(ctx context.Context, id string, meta commands.Metadata) (eventstore.Position, error) {
	position, err := a.handleExisting(ctx, id, meta, eraseAccount)
	if err != nil {
		return position, err
	}
	return position, a.codec.DestroyKey(ctx, Aggregate.Category+"-"+id)
}

func eraseAccount(s *State) commands.Result {
	switch {
	case s.Erased:
		return commands.Result{}
	case !s.Closed():
		return refuseAndRecord("erase", refusal.AccountOpen)
	}
	return commands.Append(event.AccountErased{})
}
