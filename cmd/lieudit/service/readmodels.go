package service

import (
	"context"
	"errors"
	"slices"

	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// coreReadModels are the read models of the core log. A new one gets its line here; that of usage has a log of its own.
func coreReadModels() []projector.Model {
	return []projector.Model{account.Model, audit.Model, locations.Model(false)}
}

// readModelsOfCategory are the names of those that read the events of a category.
func readModelsOfCategory(category string) (names []string) {
	for _, m := range coreReadModels() {
		if slices.Contains(m.Categories(), category) {
			names = append(names, m.Name)
		}
	}
	return names
}

// projectionAdmin is what the customer area can do about the read models.
type projectionAdmin struct{ projector *projector.Projector }

func (m projectionAdmin) Status(ctx context.Context) ([]body.Projection, error) {
	all, err := m.projector.Status(ctx)
	if err != nil {
		return nil, err
	}
	stopped, err := m.projector.StoppedAccounts(ctx)
	shown := make([]body.Projection, len(all))
	for i, s := range all {
		shown[i] = body.Projection{
			Name: s.Model, Version: int(s.Version), Generation: s.Generation, State: string(s.State),
			Position: uint64(s.Position), Owner: s.Owner, Reason: s.Reason,
		}
		if s.Lag >= 0 {
			shown[i].Lag = &s.Lag
		}
		shown[i].Stopped = stoppedAccountsOf(s.Generation, stopped)
	}
	return shown, err
}

// stoppedAccountsOf are the accounts that a copy has stopped.
func stoppedAccountsOf(generation string, all []projector.StoppedAccount) (shown []body.StoppedAccount) {
	for _, s := range all {
		if s.Generation == generation && s.IsStopped() {
			shown = append(shown, body.StoppedAccount{
				Account: s.Account, Kind: s.Kind, Stream: s.Stream, Revision: s.Revision, Position: uint64(s.Position), Reason: s.Reason,
			})
		}
	}
	return shown
}

func (m projectionAdmin) Refold(ctx context.Context, account string) error {
	return m.projector.Refold(ctx, account)
}

func (m projectionAdmin) Rebuild(ctx context.Context, name string) error {
	_, err := m.projector.Rebuild(ctx, name)
	if errors.Is(err, projector.ErrUnknownModel) {
		return refusal.NotFound
	}
	return err
}

func (m projectionAdmin) RebuildAll(ctx context.Context) error { return m.projector.RebuildAll(ctx) }

func (m projectionAdmin) Prune(ctx context.Context) error {
	_, err := m.projector.Prune(ctx)
	return err
}
