package account

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// ActivateAgency lets the account have sub-clients. Twice is once.
func (a *Accounts) ActivateAgency(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, func(s *State) ([]event.Event, error) { return activateAgency(s, a.now()) })
}

func activateAgency(s *State, now time.Time) ([]event.Event, error) {
	const action = "activate-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case s.belongs(now):
		return refuse(action, ErrNested)
	case s.AgencyMode:
		return nil, nil
	}
	return []event.Event{event.AgencyActivated{}}, nil
}

// JoinAgency makes the account a sub-client of an agency from its next period on.
func (a *Accounts) JoinAgency(ctx context.Context, id string, in commands.Intent, parent string) (eventstore.Position, error) {
	g, err := a.agency(ctx, parent)
	if err != nil {
		return 0, err
	}
	return a.do(ctx, id, in, func(s *State) ([]event.Event, error) { return joinAgency(s, parent, g, a.now()) })
}

func joinAgency(s *State, parent string, g agency, now time.Time) ([]event.Event, error) {
	const action = "join-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case s.bound(now) == parent:
		return nil, nil
	case s.AgencyMode || g.nested:
		return refuse(action, ErrNested)
	case s.belongs(now):
		return refuse(action, ErrSubClient)
	case !g.active:
		return refuse(action, ErrNoAgency)
	}
	return []event.Event{event.AgencyJoined{Agency: parent, Effective: s.nextPeriod(now).UTC()}}, nil
}

// LeaveAgency gives a sub-client its own plan back from its next period on.
func (a *Accounts) LeaveAgency(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, func(s *State) ([]event.Event, error) { return leaveAgency(s, a.now()) })
}

func leaveAgency(s *State, now time.Time) ([]event.Event, error) {
	const action = "leave-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case !s.belongs(now):
		return refuse(action, ErrNotSubClient)
	case s.bound(now) == "":
		return nil, nil
	}
	parent := s.bound(now)
	effective := s.nextPeriod(now)
	if s.Agency.At(now) == "" { // it has not begun: it never does
		effective = now
	}
	return []event.Event{event.AgencyLeft{Agency: parent, Effective: effective.UTC()}}, nil
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
