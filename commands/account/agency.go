package account

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// ActivateAgency lets the account have sub-clients. Twice is once.
func (a *Accounts) ActivateAgency(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, func(s *State) commands.Result { return activateAgency(s, a.now()) })
}

func activateAgency(s *State, now time.Time) commands.Result {
	const action = "activate-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case s.belongs(now):
		return refuse(action, ErrNested)
	case s.AgencyMode:
		return commands.Result{}
	}
	return commands.Append(event.AgencyActivated{})
}

// JoinAgency makes the account a sub-client of an agency from its next period on.
func (a *Accounts) JoinAgency(ctx context.Context, id string, in commands.Intent, parent string) (eventstore.Position, error) {
	g, err := a.agency(ctx, parent)
	if err != nil {
		return 0, err
	}
	return a.do(ctx, id, in, func(s *State) commands.Result { return joinAgency(s, parent, g, a.now()) })
}

func joinAgency(s *State, parent string, g agency, now time.Time) commands.Result {
	const action = "join-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case s.bound(now) == parent:
		return commands.Result{}
	case s.AgencyMode:
		return refuse(action, ErrNested)
	case s.belongs(now): // before a word on the other account, which may be none of the asker's business
		return refuse(action, ErrSubClient)
	case g.nested:
		return refuse(action, ErrNested)
	case !g.active:
		return refuse(action, ErrNoAgency)
	}
	return commands.Append(event.AgencyJoined{Agency: parent, Effective: s.nextPeriod(now).UTC()})
}

// LeaveAgency makes a sub-client an account of its own from its next period on, with its own plan and that plan's own
// volume, whatever its agency had set. Only an operator can: what an agency asks for is recorded, and refused.
func (a *Accounts) LeaveAgency(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, func(s *State) commands.Result { return leaveAgency(s, !in.ByAgency(), a.now()) })
}

func leaveAgency(s *State, confirmed bool, now time.Time) commands.Result {
	const action = "leave-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case !s.belongs(now):
		return refuse(action, ErrNotSubClient)
	case !confirmed:
		return refuse(action, ErrUnconfirmed)
	case s.Agency.At(now) == "": // it has not begun: it never does, and no agency has set anything
		return commands.Append(event.AgencyLeft{Agency: s.bound(now), Effective: now.UTC()})
	case s.bound(now) == "":
		return commands.Append(s.settleLeaving(now)...)
	}
	effective := s.nextPeriod(now)
	left := event.AgencyLeft{Agency: s.bound(now), Effective: effective.UTC()}
	return commands.Append(append([]event.Event{left}, s.fallBack(effective, now)...)...)
}

// settleLeaving adds what a leaving lacks that a release before this rule recorded. Terms that were set since stay.
func (s *State) settleLeaving(now time.Time) []event.Event {
	if _, _, ok := s.Terms.Next(now); ok {
		return nil
	}
	_, effective, _ := s.Agency.Next(now)
	return s.fallBack(effective, now)
}

// fallBack is what gives a leaving sub-client the volume of its own plan. Terms that have not begun never do.
func (s *State) fallBack(effective, now time.Time) []event.Event {
	own := s.Terms.At(now)
	p, _ := plan.Lookup(own.Plan)
	if _, _, scheduled := s.Terms.Next(now); !scheduled && own.Quota == p.Requests {
		return nil
	}
	return []event.Event{event.PlanChanged{From: own.Plan, To: own.Plan, Quota: p.Requests, Effective: effective.UTC()}}
}

// belongs says whether the account is, or is about to be, somebody's sub-client.
func (s *State) belongs(now time.Time) bool { return s.Agency.At(now) != "" || s.bound(now) != "" }

// bound is the agency the account is to belong to once all that is scheduled has happened.
func (s *State) bound(now time.Time) string {
	if next, _, ok := s.Agency.Next(now); ok {
		return next
	}
	return s.Agency.At(now)
}
