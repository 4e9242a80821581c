package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Accounts takes the commands on accounts. Each command returns the position to wait for before its effect
// shows in a read model.
type Accounts struct {
	desk   *commands.Desk[State]
	store  eventstore.Store
	codec  *eventstore.Codec
	tokens token.Prefixes
	now    func() time.Time
}

// New takes commands on the accounts of a log. Tokens it makes have the prefixes given.
func New(store eventstore.Store, codec *eventstore.Codec, tokens token.Prefixes, now func() time.Time) *Accounts {
	return &Accounts{commands.NewDesk(Aggregate, store, codec), store, codec, tokens, now}
}

// do decides on an account that must exist.
func (a *Accounts) do(ctx context.Context, id string, in commands.Intent, decide commands.Decision[State]) (eventstore.Position, error) {
	return a.desk.Do(ctx, id, in, func(s *State) commands.Result {
		if !s.Exists() {
			return commands.Refuse(ErrUnknown)
		}
		return decide(s)
	})
}

// agency is what a sub-client's decisions need of its agency.
type agency struct {
	exists, active, nested bool
	plan                   plan.Name
}

func (a *Accounts) agency(ctx context.Context, id string) (agency, error) {
	var g agency
	err := a.desk.View(ctx, id, func(s *State) {
		now := a.now()
		g = agency{
			exists: s.Exists(), active: s.AgencyMode && !s.Closed(), nested: s.Agency.At(now) != "",
			plan: s.Terms.At(now).Plan,
		}
	})
	return g, err
}

// PlanOf is the plan that limits an account now: its agency's, for a sub-client.
func (a *Accounts) PlanOf(ctx context.Context, id string) (plan.Plan, error) {
	var name plan.Name
	var parent string
	err := a.desk.View(ctx, id, func(s *State) {
		name, parent = s.Terms.At(a.now()).Plan, s.Agency.At(a.now())
	})
	if err == nil && parent != "" {
		var g agency
		g, err = a.agency(ctx, parent)
		name = g.plan
	}
	p, _ := plan.Lookup(name)
	return p, err
}

// Current is the account as its stream tells it now, with its name in clear and without its keys.
func (a *Accounts) Current(ctx context.Context, id string) (State, error) {
	var s State
	err := a.desk.View(ctx, id, func(now *State) { s = *now })
	if err != nil {
		return State{}, err
	}
	if s.Keys = nil; !s.Exists() {
		return State{}, ErrUnknown
	}
	s.Name, err = a.codec.Reveal(ctx, Aggregate.Category+"-"+id, s.Name)
	return s, err
}

// AgencyOf is the account that id is a sub-client of at this moment, or "". An account that does not exist is
// ErrUnknown.
func (a *Accounts) AgencyOf(ctx context.Context, id string) (parent string, err error) {
	known := false
	err = a.desk.View(ctx, id, func(s *State) { parent, known = s.Agency.At(a.now()), s.Exists() })
	if err == nil && !known {
		err = ErrUnknown
	}
	return parent, err
}

// stamp is now, as finely as the log records it.
func (a *Accounts) stamp() time.Time { return a.now().UTC().Truncate(time.Microsecond) }

// newID makes an id no other thing has.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// State is the account as its stream tells it at an instant, with its name in clear, and the last event that says so.
// The zero instant is the end of the stream: its events may bear times of a clock that is ahead. An account not opened
// by then is ErrUnknown.
func (a *Accounts) State(ctx context.Context, id string, asOf time.Time) (s State, last eventstore.Recorded, err error) {
	stream := Aggregate.Category + "-" + id
	voided, err := commands.Voided(ctx, a.store, stream, 0)
	if err != nil {
		return State{}, last, err
	}
	for r, err := range a.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return State{}, last, err
		}
		if !asOf.IsZero() && r.Time.After(asOf) {
			break
		}
		if voided[r.Revision] {
			continue
		}
		e, err := a.codec.Decode(ctx, r)
		if err != nil {
			return State{}, last, err
		}
		f, err := commands.FactOf(r, e)
		if err != nil {
			return State{}, last, err
		}
		Evolve(&s, f)
		last = r
	}
	if !s.Exists() {
		return State{}, last, ErrUnknown
	}
	return s, last, nil
}

// Volume is how many requests a month an account may make at an instant, and the position of the last event of its
// stream.
func (a *Accounts) Volume(ctx context.Context, id string, at time.Time) (requests int64, asOf eventstore.Position, err error) {
	known := false
	asOf, err = a.desk.Do(ctx, id, commands.Intent{}, func(s *State) commands.Result {
		requests, known = s.Terms.At(at).Quota, s.Exists()
		return commands.Result{}
	})
	if err == nil && !known {
		err = ErrUnknown
	}
	return requests, asOf, err
}
