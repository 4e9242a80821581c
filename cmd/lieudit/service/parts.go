package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/http/area"
	"lieudit/http/server"
	"lieudit/http/throttle"
	"lieudit/queries/consumption"
	"lieudit/queries/keys"
	"lieudit/queries/places"
	"lieudit/queries/trail"
	"lieudit/schemas/table"
)

// listen opens the three listeners. Nothing is answered before they serve.
func (s *service) listen() (err error) {
	room, err := s.shareConnections()
	if err != nil {
		return err
	}
	api := server.New(server.Parts{
		Ring: s.ring, Waiting: s.waiting, Meter: server.Metered(s.ledger, s.counting(), s.Log), Throttle: s.throttle(), Atlas: s.atlas, Bodies: s.bodies,
		Locations: s.locations, Places: places.New(s.shelf), Search: s.search(), Cursors: s.cursorKey, Changed: s.pulse.Changed, Wait: s.found,
		Tokens: s.Tokens, Now: s.Now, Log: s.Log, Version: s.version,
	})
	if s.api, err = s.listener("API", s.Listen, room.api, s.measured("api", api)); err != nil {
		return err
	}
	customers := area.New(area.Parts{
		Accounts: s.accounts, Tokens: s.tokens, Passes: s.ring, Waiting: s.waiting,
		Register: keys.New(s.shelf, s.Now), Trail: trail.New(s.shelf), Consumption: consumption.New(s.shelf),
		ReadModels: readModelsOf{s.projector}, Repairs: s.repairs, Wait: s.wait(ofAccounts), WaitTokens: s.wait(ofTokens), Tallied: s.tallied, Ledger: s.ledger, Bodies: s.bodies, Alive: s.shelf.Instances,
		Prefixes: s.Tokens, Now: s.Now, Log: s.Log,
	})
	if s.area, err = s.listener("customer area", s.AreaListen, room.area, s.measured("area", customers)); err != nil {
		return err
	}
	if s.ops, err = s.listener("ops", s.OpsListen, room.ops, ops.Handler(s.parts(), s.metrics)); err != nil {
		return err
	}
	s.connectionGauges()
	return nil
}

// counting is what counts: in the customer's favour, unless the operator has it otherwise.
func (s *service) counting() server.Counting {
	if s.ToTheLetter {
		return server.ToTheLetter
	}
	return server.Counting{}
}

// throttle is the pace of publishable keys, 20 requests a second and bursts of 100 from one address, unless a proxy
// sees to it.
func (s *service) throttle() *throttle.Throttle {
	if s.Unthrottled {
		return nil
	}
	return throttle.New(20, 100)
}

// maxWait is how long an answer waits for the read models to show what it did.
const maxWait = 2 * time.Second

// wait is a function that returns when this instance shows what the core log held at the position of an event of a category:
// in the key ring, and in the read models it answers from. Where one is known to stand still, or takes too long, the answer
// goes out without it: what it says is on the log.
func (s *service) wait(category string) func(context.Context, eventstore.Position) {
	models := reading(category)
	return func(ctx context.Context, at eventstore.Position) {
		ctx, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		if err := errors.Join(s.ring.Wait(ctx, at), s.projector.Wait(ctx, at, models...)); err != nil {
			s.Log.Warn("answered before the read models", "position", at, "reason", err)
		}
	}
}

// Categories of the core log's streams that commands write.
const (
	ofAccounts = "account"
	ofTokens   = "token"
)

// tallied returns when the read model of usage shows all that is counted by now.
func (s *service) tallied(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := s.projector.WaitAll(ctx, table.Usage.Name); err != nil {
		s.Log.Warn("answered before the read model of usage", "reason", err)
	}
}

// parts are what readiness is asked of.
func (s *service) parts() []ops.Part {
	health := func(store eventstore.Store) func(context.Context) error {
		return func(context.Context) error { return store.Health() }
	}
	all := []ops.Part{
		{Name: "log", Required: true, Check: health(s.logs.core)},
		{Name: "usage log", Required: true, Check: health(s.logs.usage)},
		{Name: "key ring", Required: true, Check: s.followsKeys},
		{Name: "vault", Required: true, Check: s.keys.Ready},
		{Name: "data keys", Check: s.keys.Reachable},
		{Name: "read models", Check: s.readModels},
		{Name: "addresses", Check: s.haveAddresses},
		{Name: "connections", Check: s.haveRoom},
		{Name: "start", Required: true, Check: s.started},
	}
	if s.outbox != nil {
		all = append(all, ops.Part{Name: "site search", Check: s.outbox.Ready})
	}
	if s.listings != nil {
		all = append(all, ops.Part{Name: "address index", Check: s.listed})
	}
	return all
}

// readModels is nil while every read model goes on and none of them has stopped an account or passed over an empty commit.
func (s *service) readModels(ctx context.Context) error {
	return errors.Join(s.projector.Ready(ctx), s.projector.Incidents(ctx))
}

// followsKeys is nil while the key ring is fresh. One that was a moment ago waits for a log that stalls.
func (s *service) followsKeys(context.Context) error {
	now := s.Now()
	st := s.ring.Status(now)
	why := errors.New(st.Reason)
	switch silence := now.Sub(st.Looked); {
	case st.Fresh:
		return nil
	case s.ring.FreshUntil().IsZero() || silence >= waiting.Lost:
		return why
	default:
		return &eventstore.StallError{For: silence, Err: why}
	}
}

// started is nil once the read models have caught up for the first time: before that an instance is not to be relied
// on, after it the API does without them when it must.
func (s *service) started(ctx context.Context) error {
	if s.caughtUp.Load() {
		return nil
	}
	if err := s.projector.Ready(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	s.caughtUp.Store(true)
	return nil
}
