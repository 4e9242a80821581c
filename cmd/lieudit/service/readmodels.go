package service

import (
	"context"
	"errors"
	"slices"

	"lieudit/http/problem"
	"lieudit/projections/history"
	"lieudit/projections/inventory"
	"lieudit/projections/projector"
	"lieudit/projections/register"
	"lieudit/schemas/body"
)

// readModels are the read models of the core log. A new one gets its line here; that of usage has a log of its own.
func readModels() []projector.Model {
	return []projector.Model{register.Model, history.Model, inventory.Model(false)}
}

// reading are the names of those that read the events of a category.
func reading(category string) (names []string) {
	for _, m := range readModels() {
		if slices.Contains(m.Categories, category) {
			names = append(names, m.Name)
		}
	}
	return names
}

// readModelsOf is what the customer area can do about the read models.
type readModelsOf struct{ projector *projector.Projector }

func (m readModelsOf) Status(ctx context.Context) ([]body.Projection, error) {
	all, err := m.projector.Status(ctx)
	if err != nil {
		return nil, err
	}
	stopped, err := m.projector.StoppedAccounts(ctx)
	shown := make([]body.Projection, len(all))
	for i, s := range all {
		shown[i] = body.Projection{
			Name: s.Model, Version: int(s.Version), Copy: s.Copy, State: string(s.State),
			Position: uint64(s.Position), Owner: s.Owner, Reason: s.Reason,
		}
		if s.Behind >= 0 {
			shown[i].Lag = &s.Behind
		}
		shown[i].Stopped = stoppedIn(s.Copy, stopped)
	}
	return shown, err
}

// stoppedIn are the accounts that a copy has stopped.
func stoppedIn(name string, all []projector.StoppedAccount) (shown []body.StoppedAccount) {
	for _, s := range all {
		if s.Copy == name && s.Stopped() {
			shown = append(shown, body.StoppedAccount{
				Account: s.Account, Kind: s.Kind, Stream: s.Stream, Revision: s.Revision, Position: uint64(s.Position), Reason: s.Reason,
			})
		}
	}
	return shown
}

func (m readModelsOf) Refold(ctx context.Context, account string) error {
	return m.projector.Refold(ctx, account)
}

func (m readModelsOf) Rebuild(ctx context.Context, name string) error {
	_, err := m.projector.Rebuild(ctx, name)
	if errors.Is(err, projector.ErrUnknownModel) {
		return problem.NotFound()
	}
	return err
}

func (m readModelsOf) RebuildAll(ctx context.Context) error { return m.projector.RebuildAll(ctx) }

func (m readModelsOf) Prune(ctx context.Context) error {
	_, err := m.projector.Prune(ctx)
	return err
}
