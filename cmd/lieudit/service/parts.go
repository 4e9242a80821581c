package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
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
		Ring: s.ring, Meter: server.Metered(s.ledger, s.counting(), s.Log), Throttle: s.throttle(), Atlas: s.atlas, Bodies: s.bodies,
		Locations: s.locations, Places: places.New(s.shelf), Search: s.search(), Cursors: s.cursorKey, Changed: s.pulse.Changed, Wait: s.found,
		Tokens: s.Tokens, Now: s.Now, Log: s.Log, Version: s.version,
	})
	if s.api, err = s.listener("API", s.Listen, room.api, s.measured("api", api)); err != nil {
		return err
	}
	customers := area.New(area.Parts{
		Accounts: s.accounts, Tokens: s.tokens, Passes: s.ring,
		Register: keys.New(s.shelf, s.Now), Trail: trail.New(s.shelf), Consumption: consumption.New(s.shelf),
		ReadModels: readModelsOf{s.projector}, Wait: s.wait(ofAccounts), WaitTokens: s.wait(ofTokens), Tallied: s.tallied, Ledger: s.ledger, Bodies: s.bodies, Alive: s.shelf.Instances,
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
		{Name: "key ring", Required: true, Check: func(context.Context) error {
			if st := s.ring.Status(s.Now()); !st.Fresh {
				return errors.New(st.Reason)
			}
			return nil
		}},
		{Name: "read models", Check: s.projector.Ready},
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
