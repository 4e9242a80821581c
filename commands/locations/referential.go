package locations

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// Referential is a named group of an account's sites. Archived is zero while it takes writes.
type Referential struct {
	Code, Name        string
	Created, Archived time.Time
	Active            int // sites
}

func (g *group) shown() Referential {
	return Referential{g.code, g.name, g.created, g.archived, g.active}
}

// Open gives an account a referential. The cap of active ones has no tolerance and is looked at first; then the code,
// which is taken for ever.
func (l *Locations) Open(ctx context.Context, account string, in commands.Intent, code, name string) (Referential, eventstore.Position, error) {
	limit, err := l.plans.PlanOf(ctx, account)
	if err != nil {
		return Referential{}, 0, err
	}
	return l.decide(ctx, account, in, code, func(s *State) commands.Result {
		return open(s, limit, event.ReferentialOpened{Code: code, Name: name})
	})
}

func open(s *State, limit plan.Plan, e event.ReferentialOpened) commands.Result {
	if s.open >= limit.Referentials {
		return commands.Refuse(&ReferentialCapError{Active: s.open, Maximum: limit.Referentials})
	}
	if _, taken := s.groups[e.Code]; taken {
		return commands.Refuse(ErrCodeTaken)
	}
	return commands.Append(e)
}

// Rename gives a referential another name. The name it has changes nothing.
func (l *Locations) Rename(ctx context.Context, account string, in commands.Intent, code, name string) (Referential, eventstore.Position, error) {
	return l.decide(ctx, account, in, code, func(s *State) commands.Result { return rename(s, code, name) })
}

func rename(s *State, code, name string) commands.Result {
	g, err := s.writable(code)
	switch {
	case err != nil:
		return commands.Refuse(err)
	case g.name == name:
		return commands.Result{}
	}
	return commands.Append(event.ReferentialRenamed{Code: code, Before: g.name, Name: name})
}

// Archive ends a referential for writes and makes its sites inactive, all at once. Twice is once.
func (l *Locations) Archive(ctx context.Context, account string, in commands.Intent, code string) (Referential, eventstore.Position, error) {
	limit, err := l.plans.PlanOf(ctx, account)
	if err != nil {
		return Referential{}, 0, err
	}
	stage := l.stager(account, in)
	return l.decide(ctx, account, in, code, func(s *State) commands.Result {
		g, err := s.find(code)
		switch {
		case err != nil:
			return commands.Refuse(err)
		case !g.archived.IsZero():
			return commands.Result{}
		}
		events, err := stage.events(ctx, archive(s, g, account, limit))
		if err != nil {
			return commands.Fail(err)
		}
		return commands.Append(append(events, event.ReferentialArchived{Code: code})...)
	})
}

func archive(s *State, g *group, account string, limit plan.Plan) change {
	c := change{SitesWritten: s.figures(g, "archive", limit)}
	for id, x := range g.sites {
		if x.active {
			c.deactivate(account, id, x)
		}
	}
	c.sort()
	return c
}

// decide takes a decision on a referential and shows what it is then.
func (l *Locations) decide(ctx context.Context, account string, in commands.Intent, code string, decision commands.Decision[State]) (Referential, eventstore.Position, error) {
	at, err := l.desk.Do(ctx, account, in, decision)
	if err != nil {
		return Referential{}, at, err
	}
	var shown Referential
	err = l.desk.View(ctx, account, func(s *State) {
		if g, ok := s.groups[code]; ok {
			shown = g.shown()
		}
	})
	return shown, at, err
}
