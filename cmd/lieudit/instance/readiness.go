package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
)

// Components are what readiness reports of the parts, checked one after the other. While a required one fails, the instance
// is not ready: then it cannot check keys, count requests or seal personal fields. The other parts are reported and leave the
// instance ready, since some requests can be served without them.
func (i *Instance) Components() []ops.Component {
	health := func(store eventstore.Store) func(context.Context) error {
		return func(context.Context) error { return store.Health() }
	}
	all := []ops.Component{
		{Name: "log", Required: true, Check: health(i.Core)},
		{Name: "usage log", Required: true, Check: health(i.Usage)},
		{Name: "clock", Required: true, Check: i.checkClock},
		{Name: "log times", Check: func(ctx context.Context) error { return errors.Join(i.checkLogTimes(ctx), i.checkPeriodsAhead(ctx)) }},
		{Name: "key ring", Required: true, Check: i.checkKeyRing},
		{Name: "vault", Required: true, Check: i.vault.Ready},
		{Name: "data keys", Check: i.vault.Reachable},
		{Name: "read models", Check: i.checkReadModels},
		{Name: "proxies", Check: i.clients.Check},
	}
	if i.SiteIndexer != nil {
		all = append(all, ops.Component{Name: "site search", Check: i.SiteIndexer.Ready})
	}
	return all
}

// checkReadModels returns nil while every read model advances and none has stopped an account or skipped an empty
// commit, which is a sync's last event without the id of the sync.
func (i *Instance) checkReadModels(ctx context.Context) error {
	return errors.Join(i.checkUsageLoss(ctx), i.projector.Ready(ctx), i.projector.Incidents(ctx))
}

// checkKeyRing returns nil while the key ring is fresh: it holds every event up to a moment ago. For a ring whose last
// successful poll began less than waitlimit.MaxSilence ago it returns an *eventstore.StallError, which does not make the
// instance unready: the log is silent, and requests wait for it.
func (i *Instance) checkKeyRing(context.Context) error {
	now := time.Now()
	status := i.keyRing.Status(now)
	reason := errors.New(status.Reason)
	switch silence := now.Sub(status.LastPollStart); {
	case status.Fresh:
		return nil
	case i.keyRing.FreshUntil().IsZero() || silence >= waitlimit.MaxSilence:
		return reason
	default:
		return &eventstore.StallError{Duration: silence, Err: reason}
	}
}

// CheckCaughtUp returns nil once the read models have caught up for the first time, or are not asked, because an older copy of the
// log was put back. Before that an instance would answer from old rows; after it a read model that stops leaves the instance ready,
// since authentication, metering and addresses do not need one.
func (i *Instance) CheckCaughtUp(ctx context.Context) error {
	if i.hasCaughtUp.Load() {
		return nil
	}
	if err := i.projector.CaughtUp(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	i.hasCaughtUp.Store(true)
	return nil
}

// AwaitKeys waits until keys can be checked, which is when the key ring reaches the log's end. If ctx ends first, the error says why it
// has not.
func (i *Instance) AwaitKeys(ctx context.Context) error {
	if err := i.keyRing.AwaitFresh(ctx); err != nil {
		return fmt.Errorf("%s: %w", i.keyRing.Status(time.Now()).Reason, err)
	}
	return nil
}
