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
	case s.AgencyMode || g.nested:
		return refuse(action, ErrNested)
	case s.belongs(now):
		return refuse(action, ErrSubClient)
	case !g.active:
		return refuse(action, ErrNoAgency)
	}
	return commands.Append(event.AgencyJoined{Agency: parent, Effective: s.nextPeriod(now).UTC()})
}

// LeaveAgency gives a sub-client its own plan back from its next period on.
func (a *Accounts) LeaveAgency(ctx context.Context, id string, in commands.Intent) (eventstore.Position, error) {
	return a.do(ctx, id, in, func(s *State) commands.Result { return leaveAgency(s, a.now()) })
}

func leaveAgency(s *State, now time.Time) commands.Result {
	const action = "leave-agency"
	switch {
	case s.Closed():
		return refuse(action, ErrClosed)
	case !s.belongs(now):
		return refuse(action, ErrNotSubClient)
	case s.bound(now) == "":
		return commands.Result{}
	}
	parent := s.bound(now)
	effective := s.nextPeriod(now)
	if s.Agency.At(now) == "" { // it has not begun: it never does
		effective = now
	}
	return commands.Append(event.AgencyLeft{Agency: parent, Effective: effective.UTC()})
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
