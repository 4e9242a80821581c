package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/customerarea"
	"lieudit/http/throttle"
	"lieudit/queries/account"
	"lieudit/queries/audit"
	"lieudit/queries/locations"
	"lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/table"
)

// openListeners opens the three listeners. Nothing is answered before they serve.
func (s *service) openListeners() (err error) {
	limits, err := s.limitConnections()
	if err != nil {
		return err
	}
	apiHandler := api.New(s.keyRing, api.NewRequestMeter(s.ledger, s.countingRules(), s.Log), s.atlas, api.Locations{
		Commands: s.locations, Queries: locations.New(s.registry), Search: s.newSearchEngine(), CursorSecret: s.cursorKey,
		LastChange: s.changes.LastChange, Wait: s.waitForLocations,
	}, api.Env{
		Limiter: s.waitLimiter, Throttle: s.newThrottle(), Bodies: s.bodyBudget, Prefixes: s.TokenPrefixes, Now: s.Now, Log: s.Log, Version: s.version,
	})
	if s.api, err = s.newListener("API", s.Listen, limits.api, s.withMetrics("api", apiHandler)); err != nil {
		return err
	}
	usageReader := usage.New(s.registry)
	areaHandler := customerarea.New(s.keyRing, customerarea.Accounts{
		Commands: s.accounts, Tokens: s.tokens, Queries: account.New(s.registry, s.Now), Audit: audit.New(s.registry),
		Wait: s.newReadModelWait(accountCategory), WaitTokens: s.newReadModelWait(tokenCategory),
	}, customerarea.Usage{
		Meter: s.ledger, Queries: usageReader, Wait: s.waitForUsage, Reconciler: &reconcile.Reconciler{
			Log: s.logs.usage, Read: usageReader, WaitForUsage: s.waitForUsage, RunningInstances: s.registry.ActiveInstances,
		},
	}, customerarea.Maintenance{ReadModels: projectionAdmin{s.projector}, Repairs: s.repairs}, customerarea.Env{
		Limiter: s.waitLimiter, Bodies: s.bodyBudget, Prefixes: s.TokenPrefixes, Now: s.Now, Log: s.Log,
	})
	if s.area, err = s.newListener("customer area", s.AreaListen, limits.area, s.withMetrics("area", areaHandler)); err != nil {
		return err
	}
	if s.ops, err = s.newListener("ops", s.OpsListen, limits.ops, ops.NewHandler(s.components(), s.metrics)); err != nil {
		return err
	}
	s.registerConnectionMetrics()
	return nil
}

// countingRules is what counts: in the customer's favour, unless the operator has it otherwise.
func (s *service) countingRules() api.CountingPolicy {
	if s.CountToTheLetter {
		return api.CountAll
	}
	return api.CountingPolicy{}
}

// newThrottle is the pace of publishable keys, 20 requests a second and bursts of 100 from one address, unless a proxy
// sees to it.
func (s *service) newThrottle() *throttle.Throttle {
	if s.Unthrottled {
		return &throttle.Throttle{}
	}
	return throttle.New(20, 100)
}

// maxReadModelWait is how long an answer waits for the read models to show what it did.
const maxReadModelWait = 2 * time.Second

// newReadModelWait is a function that returns when this instance shows what the core log held at the position of an event of a category:
// in the key ring, and in the read models it answers from. Where one is known to stand still, or takes too long, the answer
// goes out without it: what it says is on the log.
func (s *service) newReadModelWait(category string) func(context.Context, eventstore.Position) {
	models := readModelsOfCategory(category)
	return func(ctx context.Context, at eventstore.Position) {
		ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
		defer cancel()
		if err := errors.Join(s.keyRing.AwaitPosition(ctx, at), s.projector.AwaitPosition(ctx, at, models...)); err != nil {
			s.Log.Warn("answered before the read models", "position", at, "reason", err)
		}
	}
}

// Categories of the core log's streams that commands write.
const (
	accountCategory = "account"
	tokenCategory   = "token"
)

// waitForUsage returns when the read model of usage shows all that is counted by now.
func (s *service) waitForUsage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxReadModelWait)
	defer cancel()
	if err := s.projector.AwaitCaughtUp(ctx, table.UsageModel.Name); err != nil {
		s.Log.Warn("answered before the read model of usage", "reason", err)
	}
}

// components are what readiness is asked of.
func (s *service) components() []ops.Component {
	health := func(store eventstore.Store) func(context.Context) error {
		return func(context.Context) error { return store.Health() }
	}
	all := []ops.Component{
		{Name: "log", Required: true, Check: health(s.logs.core)},
		{Name: "usage log", Required: true, Check: health(s.logs.usage)},
		{Name: "key ring", Required: true, Check: s.checkKeyRing},
		{Name: "vault", Required: true, Check: s.vault.Ready},
		{Name: "data keys", Check: s.vault.Reachable},
		{Name: "read models", Check: s.checkReadModels},
		{Name: "addresses", Check: s.checkAddresses},
		{Name: "connections", Check: s.checkConnections},
		{Name: "start", Required: true, Check: s.checkStarted},
	}
	if s.siteIndexer != nil {
		all = append(all, ops.Component{Name: "site search", Check: s.siteIndexer.Ready})
	}
	if s.addressIndex != nil {
		all = append(all, ops.Component{Name: "address index", Check: s.checkAddressIndex})
	}
	return all
}

// checkReadModels is nil while every read model goes on and none of them has stopped an account or passed over an empty commit.
func (s *service) checkReadModels(ctx context.Context) error {
	return errors.Join(s.projector.Ready(ctx), s.projector.Incidents(ctx))
}

// checkKeyRing is nil while the key ring is fresh. One that was a moment ago waits for a log that stalls.
func (s *service) checkKeyRing(context.Context) error {
	now := s.Now()
	status := s.keyRing.Status(now)
	reason := errors.New(status.Reason)
	switch silence := now.Sub(status.LastPollStart); {
	case status.Fresh:
		return nil
	case s.keyRing.FreshUntil().IsZero() || silence >= waitlimit.MaxSilence:
		return reason
	default:
		return &eventstore.StallError{Duration: silence, Err: reason}
	}
}

// checkStarted is nil once the read models have caught up for the first time: before that an instance is not to be relied
// on, after it the API does without them when it must.
func (s *service) checkStarted(ctx context.Context) error {
	if s.hasCaughtUp.Load() {
		return nil
	}
	if err := s.projector.Ready(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	s.hasCaughtUp.Store(true)
	return nil
}
