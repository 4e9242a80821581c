package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Close ends the account and, with it, every key of it and of its sub-clients. Twice is once.
func (a *Accounts) Close(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, closing)
}

func closing(s *State) commands.Result {
	if s.Closed() {
		return commands.Result{}
	}
	return commands.Append(event.AccountClosed{})
}
