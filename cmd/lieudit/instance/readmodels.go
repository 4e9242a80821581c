package instance

import (
	"context"
	"errors"
	"slices"
	"time"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	accountprojections "lieudit/projections/account"
	auditprojections "lieudit/projections/audit"
	locationsprojections "lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
	"lieudit/schemas/table"
)

// coreReadModels are the read models of the core log. A new read model is added here. The read model of usage is not
// among them: connectParts adds it with its own log. The parameter of the one of locations reports whether it writes an
// outbox; configuredReadModels decides that.
func coreReadModels() []projector.Model {
	return []projector.Model{accountprojections.Model, auditprojections.Model, locationsprojections.Model(false)}
}

// readModelsOfCategory names the read models that handle events of a stream category.
func readModelsOfCategory(category string) (names []string) {
	for _, m := range coreReadModels() {
		if slices.Contains(m.Categories(), category) {
			names = append(names, m.Name)
		}
	}
	return names
}

// projectionAdmin adapts the projector's maintenance to the customer area: it returns bodies instead of the projector's
// types. It implements customerarea.ReadModels. It is here because neither package may import the other.
type projectionAdmin struct{ projector *projector.Projector }

// Status reports every generation of every read model with its lag in events, unless that is unknown, and the accounts that
// it has stopped. If only the accounts cannot be read, it returns the rest along with the error.
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

// stoppedAccountsOf selects the accounts that a generation has stopped: it shows no rows of theirs, because an event of
// theirs cannot be used or not be read yet.
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

// Refold requests that the rows of one account are written again from its streams, in every read model that has stopped
// it. It does not wait for that.
func (m projectionAdmin) Refold(ctx context.Context, account string) error {
	return m.projector.Refold(ctx, account)
}

// Rebuild starts a new generation of a read model while the present one serves. An unknown name is a 404.
func (m projectionAdmin) Rebuild(ctx context.Context, name string) error {
	_, err := m.projector.Rebuild(ctx, name)
	if errors.Is(err, projector.ErrUnknownModel) {
		return refusal.NotFound
	}
	return err
}

// RebuildAll starts a new generation of every read model, as is needed after an older copy of the log was restored.
func (m projectionAdmin) RebuildAll(ctx context.Context) error { return m.projector.RebuildAll(ctx) }

// Prune drops the generations that no release in use reads.
func (m projectionAdmin) Prune(ctx context.Context) error {
	_, err := m.projector.Prune(ctx)
	return err
}

// maxReadModelWait is how long an answer waits until the read models show what the request wrote.
const maxReadModelWait = 2 * time.Second

// newReadModelWait returns a function that blocks until the key ring and the read models of a category have passed a
// position of the core log, so that a client reads its own writes. When one has stopped, or maxReadModelWait is over, it
// returns all the same: what the request did is on the log.
func (i *Instance) newReadModelWait(category string) func(context.Context, eventstore.Position) {
	models := readModelsOfCategory(category)
	return func(ctx context.Context, at eventstore.Position) {
		ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
		defer cancel()
		if err := errors.Join(i.keyRing.AwaitPosition(ctx, at), i.projector.AwaitPosition(ctx, at, models...)); err != nil {
			i.Log.Warn("answered before the read models", "position", at, "reason", err)
		}
	}
}

// Categories of the core log's streams whose writers wait for read models.
const (
	accountCategory = "account"
	tokenCategory   = "token"
)

// waitForUsage blocks until the read model of usage shows all that the usage log holds now, at most maxReadModelWait.
func (i *Instance) waitForUsage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
	defer cancel()
	if err := i.projector.AwaitCaughtUp(ctx, table.UsageModel.Name); err != nil {
		i.Log.Warn("answered before the read model of usage", "reason", err)
	}
}

// maxOwnWait is how long an export waits until it shows what the account has written.
const maxOwnWait = 15 * time.Second

// awaitOwnLocations returns when the read model of this instance shows all that the log holds of an account's locations now,
// whichever instance wrote it. It fails with refusal.ReadModelBehind if maxOwnWait is over or the read model has stopped.
func (i *Instance) awaitOwnLocations(ctx context.Context, account string) error {
	at, err := awaitEnd(ctx, i.Core, locations.Aggregate.Category+"-"+account, i.projector, table.LocationsModel.Name)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	i.Log.Warn("an export is refused: the places do not show what was written", "account", account, "position", at, "reason", err)
	return refusal.ReadModelBehind
}

// positionAwaiter is a projector.Projector.
type positionAwaiter interface {
	AwaitPosition(ctx context.Context, at eventstore.Position, models ...string) error
}

// awaitEnd waits, maxOwnWait at most, until a read model has passed the last event that a stream has now, and returns its position.
func awaitEnd(ctx context.Context, log eventstore.Store, stream string, p positionAwaiter, model string) (at eventstore.Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxOwnWait)
	defer cancel()
	if at, err = readEnd(ctx, log, stream); err != nil {
		return 0, err
	}
	return at, p.AwaitPosition(ctx, at, model)
}

// readEnd returns the position of the last event of a stream, 0 if it has none.
func readEnd(ctx context.Context, log eventstore.Store, stream string) (eventstore.Position, error) {
	for r, err := range log.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		return r.Position, err
	}
	return 0, nil
}

// waitForLocations blocks until locations show, and searches find, what the core log held at a position, at most
// maxReadModelWait. It does not wait for the other read models: a large sync keeps the audit busy for longer.
func (i *Instance) waitForLocations(ctx context.Context, at eventstore.Position) {
	ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
	defer cancel()
	err := i.projector.AwaitPosition(ctx, at, table.LocationsModel.Name)
	if err == nil { // the notifier starts at the read model's checkpoint, so it is waited for second
		err = i.changes.AwaitPosition(ctx, at)
	}
	if err == nil {
		err = i.waitForSearch(ctx, at)
	}
	if err != nil {
		i.Log.Warn("answered before the places", "position", at, "reason", err)
	}
}
