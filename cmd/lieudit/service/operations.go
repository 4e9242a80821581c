package service

import (
	"context"
	"errors"
	"fmt"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
)

// components are the parts that readiness reports, checked one after the other. While a required one fails, the instance
// answers 503 on /readyz: then it cannot check keys, count requests or seal personal fields. The other parts are
// reported and leave the instance ready, since a part of the requests can be served without them.
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
		{Name: "routes", Check: s.checkRoads},
		{Name: "connections", Check: s.checkConnections},
		{Name: "proxies", Check: s.clients.Check},
		{Name: "start", Required: true, Check: s.checkStarted},
		{Name: "stop", Required: true, Check: s.checkStopping},
	}
	if s.siteIndexer != nil {
		all = append(all, ops.Component{Name: "site search", Check: s.siteIndexer.Ready})
	}
	if s.addressIndex != nil {
		all = append(all, ops.Component{Name: "address index", Check: s.checkAddressIndex})
	}
	return all
}

// isReady says what /readyz answers now.
func (s *service) isReady(ctx context.Context) bool { return ops.Check(ctx, s.components()).Ready }

// checkReadModels returns nil while every read model advances and none has stopped an account or passed over an empty
// commit, which is a sync's last event without the id of the sync.
func (s *service) checkReadModels(ctx context.Context) error {
	return errors.Join(s.checkUsageLoss(ctx), s.projector.Ready(ctx), s.projector.Incidents(ctx))
}

// checkKeyRing returns nil while the key ring is fresh: it holds every event up to a moment ago. For a ring whose last
// successful poll began less than waitlimit.MaxSilence ago it returns an *eventstore.StallError, which does not make the
// instance unready: the log is silent, and requests wait for it.
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

// checkStarted returns nil once the socket of the API is open and the read models have caught up for the first time, or are not
// asked, because an older copy of the log was put back. Before that an instance would answer from old rows; after it a read model
// that stops leaves the instance ready, since authentication, metering and addresses do not need one.
func (s *service) checkStarted(ctx context.Context) error {
	if s.hasCaughtUp.Load() {
		return nil
	}
	if !s.api.isOpen() {
		return errAPINotOpen
	}
	if err := s.projector.CaughtUp(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	s.hasCaughtUp.Store(true)
	return nil
}
