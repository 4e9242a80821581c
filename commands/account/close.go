package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// CloseAccount ends the account and, with it, every key of it and of its sub-clients. Twice is once.
func (a *Accounts) CloseAccount(ctx context.Context, id string, meta commands.Metadata) (eventstore.Position, error) {
	return a.handleExisting(ctx, id, meta, func(s *State) commands.Result {
		if meta.IsByAgency() && s.Agency.At(a.now()) == "" { // it left a moment ago
			return commands.Refuse(ErrUnknownAccount)
		}
		return closeAccount(s)
	})
}

func closeAccount(s *State) commands.Result {
	if s.Closed() {
		return commands.Result{}
	}
	return commands.Append(event.AccountClosed{})
}
