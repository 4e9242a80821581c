package account

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Accounts handles the commands on accounts. Each command returns the position to wait for before its effect shows in a read
// model. A command on an account that was never opened is refused with ErrUnknownAccount. Accounts is safe for concurrent use.
type Accounts struct {
	handler *commands.Handler[State]
	store   eventstore.Store
	codec   *eventstore.Codec
	tokens  token.Prefixes
	now     func() time.Time
}

// New returns the handler for the accounts of a log. tokens are the prefixes of the tokens that it makes, and now is the wall
// clock.
func New(store eventstore.Store, codec *eventstore.Codec, tokens token.Prefixes, now func() time.Time) *Accounts {
	return &Accounts{commands.NewHandler(Aggregate, store, codec), store, codec, tokens, now}
}

// decision decides on an account that exists. agency is the agency that it is a sub-client of now, or the zero agencyState.
type decision func(s *State, agency agencyState) commands.Result

// handleExisting handles a command on an account that must exist, and that may be a sub-client. A closed account exists: the
// decisions refuse it themselves, so that the refusal is recorded.
func (a *Accounts) handleExisting(ctx context.Context, id string, meta commands.Metadata, decide decision) (eventstore.Position, error) {
	s, agencies, err := a.readResolved(ctx, id)
	if err == nil {
		err = agencies[s.AgencyAt(a.now())].unusable
	}
	if err != nil {
		return 0, err
	}
	return a.handleAlone(ctx, id, meta, func(s *State) commands.Result {
		own := *s // the State is shared
		own.dropVoidMemberships(agencies)
		return decide(&own, agencies[own.AgencyAt(a.now())])
	})
}

// handleAlone is handleExisting for a command that does not depend on an agency: it reads only the account's own stream, and
// so works whatever the state of the agency's.
func (a *Accounts) handleAlone(ctx context.Context, id string, meta commands.Metadata, decide commands.Decision[State]) (eventstore.Position, error) {
	return a.handler.Handle(ctx, id, meta, func(s *State) commands.Result {
		if !s.Exists() {
			return commands.Refuse(ErrUnknownAccount)
		}
		return decide(s)
	})
}

// agencyState is what decisions about a sub-client need of its agency. isActive is false for a closed agency. The zero
// agencyState is not an agency.
type agencyState struct {
	exists, isActive bool
	isSubClient      bool      // it has an agency itself; set only by readAgencyToJoin
	closed           time.Time // when it was closed, zero if it is open
	plan             plan.Name
	quota            int64     // requests a month: the smaller of its quota now and the one that is scheduled
	anchor           plan.Date // of its periods, which are its sub-clients' too
	unusable         error     // set if an event of its stream cannot be used: it exists, but nothing is known about it
}

// agencyStates are agencies by id. An id that is missing has the zero agencyState.
type agencyStates map[string]agencyState

// readAgency reads what another account allows now as an agency. It locks that account's stream briefly, and never two streams
// at once, so two accounts that name each other cannot deadlock.
func (a *Accounts) readAgency(ctx context.Context, id string) (agencyState, error) {
	var agency agencyState
	err := a.handler.View(ctx, id, func(s *State) {
		now := a.now()
		agency = agencyState{
			exists: s.Exists(), isActive: s.IsAgency && !s.Closed(), closed: s.ClosedAt,
			plan: s.Terms.At(now).Plan, quota: s.Terms.At(now).Quota, anchor: s.Anchor,
		}
		if next, _, ok := s.Terms.Next(now); ok {
			agency.quota = min(agency.quota, next.Quota)
		}
	})
	return agency, err
}

// readAgencyToJoin is readAgency for an account that wants to become a sub-client of it.
func (a *Accounts) readAgencyToJoin(ctx context.Context, id string) (agencyState, error) {
	agency, err := a.readAgency(ctx, id)
	if err != nil {
		return agencyState{}, err
	}
	s, _, err := a.readResolved(ctx, id)
	agency.isSubClient = s.AgencyAt(a.now()) != ""
	return agency, err
}

// asOf returns the agencies with only the closings up to an instant; the zero instant is now.
func (all agencyStates) asOf(t time.Time) agencyStates {
	then := agencyStates{}
	for id, agency := range all {
		if !t.IsZero() && agency.closed.After(t) {
			agency.closed = time.Time{}
		}
		then[id] = agency
	}
	return then
}

// readResolved returns the account's state now, without its keys and without memberships that never begin, and its agencies. The
// state of an account that was never opened is the zero State.
func (a *Accounts) readResolved(ctx context.Context, id string) (s State, agencies agencyStates, err error) {
	if err = a.handler.View(ctx, id, func(current *State) { s = *current }); err != nil {
		return State{}, nil, err
	}
	s.Keys = nil // the map is shared
	if agencies, err = a.readAgencies(ctx, s.Agency); err != nil {
		return State{}, nil, err
	}
	s.dropVoidMemberships(agencies)
	return s, agencies, nil
}

// readAgencies returns the agencies that memberships name. For an agency whose stream cannot be used only unusable is set: the
// account is shown with what is known about it.
func (a *Accounts) readAgencies(ctx context.Context, memberships grant.Scheduled[grant.Membership]) (agencyStates, error) {
	agencies := agencyStates{}
	for m := range memberships.All() {
		if m.Agency == "" {
			continue
		}
		agency, err := a.readAgency(ctx, m.Agency)
		if unusable, ok := errors.AsType[*eventstore.UnusableError](err); ok {
			agency, err = agencyState{unusable: unusable}, nil
		}
		if err != nil {
			return nil, err
		}
		agencies[m.Agency] = agency
	}
	return agencies, nil
}

// PlanOf returns the plan that limits an account now: its agency's plan, for a sub-client. An unknown account has the zero plan,
// which allows nothing.
func (a *Accounts) PlanOf(ctx context.Context, id string) (plan.Plan, error) {
	s, agencies, err := a.readResolved(ctx, id)
	if err != nil {
		return plan.Plan{}, err
	}
	agency := agencies[s.AgencyAt(a.now())]
	return s.planAt(a.now(), agency), agency.unusable
}

// CurrentState returns the account's state now, with its name in clear and without its keys. With eventstore.ErrUnreadable the
// state has no name and is complete otherwise.
func (a *Accounts) CurrentState(ctx context.Context, id string) (State, error) {
	s, _, err := a.readResolved(ctx, id)
	if err == nil && !s.Exists() {
		err = ErrUnknownAccount
	}
	if err != nil {
		return State{}, err
	}
	s.Name, err = a.codec.Unseal(ctx, Aggregate.Category+"-"+id, s.Name)
	return s, err
}

// AgencyOf returns the account that id is a sub-client of now, or "". It fails with ErrUnknownAccount for an account that does
// not exist.
func (a *Accounts) AgencyOf(ctx context.Context, id string) (parent string, err error) {
	s, _, err := a.readResolved(ctx, id)
	if err == nil && !s.Exists() {
		err = ErrUnknownAccount
	}
	return s.AgencyAt(a.now()), err
}

// CheckExists fails with ErrUnknownAccount for an account that was never opened. It reads the account's own stream alone.
func (a *Accounts) CheckExists(ctx context.Context, id string) error {
	exists := false
	err := a.handler.View(ctx, id, func(s *State) { exists = s.Exists() })
	if err == nil && !exists {
		err = ErrUnknownAccount
	}
	return err
}

// logTime returns the time now in UTC, to the microsecond that the log keeps.
func (a *Accounts) logTime() time.Time { return a.now().UTC().Truncate(time.Microsecond) }

// newID makes a unique id. Ids of version 7 sort by the time they were made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// StateAsOf folds the account's stream up to an instant. It returns the state, with its personal texts in clear, and the last
// event that was folded. The zero instant means the end of the stream, whatever the times of its events: the log's clock may
// be ahead. It fails with ErrUnknownAccount if the account had not been opened by then. Corrections and an erasure count at
// every instant, even before they were made.
func (a *Accounts) StateAsOf(ctx context.Context, id string, asOf time.Time) (s State, last eventstore.RecordedEvent, err error) {
	stream := Aggregate.Category + "-" + id
	voided, err := commands.ReadVoidedRevisions(ctx, a.store, stream, 0)
	if err != nil {
		return State{}, last, err
	}
	isLater := false
	for r, err := range a.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return State{}, last, err
		}
		if isLater = isLater || !asOf.IsZero() && r.Time.After(asOf); isLater {
			if r.Type == (event.AccountErased{}).EventType() {
				s.erase()
			}
			continue
		}
		if voided[r.Revision] {
			continue
		}
		e, err := a.codec.Decode(ctx, r)
		if err != nil {
			return State{}, last, err
		}
		rec, err := commands.NewRecord(r, e)
		if err == nil {
			rec.Reason, err = a.codec.Unseal(ctx, stream, rec.Reason)
		}
		if err != nil {
			return State{}, last, err
		}
		Evolve(&s, rec)
		last = r
	}
	if !s.Exists() {
		return State{}, last, ErrUnknownAccount
	}
	agencies, err := a.readAgencies(ctx, s.Agency)
	if err != nil {
		return State{}, last, err
	}
	s.dropVoidMemberships(agencies.asOf(asOf))
	return s, last, nil
}

// QuotaAt returns how many requests a month an account may make at an instant, and the position of the last event of its
// stream. It fails with ErrUnknownAccount for an account that does not exist. It reads with Handle and a decision that changes
// nothing, because View does not return the position.
func (a *Accounts) QuotaAt(ctx context.Context, id string, at time.Time) (quota int64, asOf eventstore.Position, err error) {
	exists := false
	asOf, err = a.handler.Handle(ctx, id, commands.Metadata{}, func(s *State) commands.Result {
		quota, exists = s.Terms.At(at).Quota, s.Exists()
		return commands.Result{}
	})
	if err == nil && !exists {
		err = ErrUnknownAccount
	}
	return quota, asOf, err
}
