package locations

import (
	"context"
	"errors"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// errMoved: the site was changed since it was read.
var errMoved = errors.New("site was changed meanwhile")

// Put says all there is to say of one site: it is created, updated or reactivated, or stays as it is.
func (l *Locations) Put(ctx context.Context, account string, in commands.Intent, code string, r Row) (s site.Site, created bool, at eventstore.Position, err error) {
	j, err := newJob(account, code, "put", Batch{Rows: []Row{r}})
	if err != nil {
		return site.Site{}, false, 0, err
	}
	o, at, err := l.run(ctx, in, j)
	if err != nil {
		return site.Site{}, false, at, err
	}
	s, err = l.show(ctx, account, code, r.ExternalID)
	return s, o.Created > 0, at, err
}

// Patch changes what the customer said of a site, as change says, whose error is returned as it is. It may be called
// again, when the site was changed meanwhile. An inactive site stays inactive: who mends a closed shop does not open it.
func (l *Locations) Patch(ctx context.Context, account string, in commands.Intent, code, externalID string, change func(site.Content) (site.Content, error)) (site.Site, eventstore.Position, error) {
	at, err := l.patch(ctx, account, in, code, externalID, change)
	for errors.Is(err, errMoved) {
		at, err = l.patch(ctx, account, in, code, externalID, change)
	}
	if err != nil {
		return site.Site{}, at, err
	}
	s, err := l.show(ctx, account, code, externalID)
	return s, at, err
}

func (l *Locations) patch(ctx context.Context, account string, in commands.Intent, code, externalID string, change func(site.Content) (site.Content, error)) (eventstore.Position, error) {
	x, err := l.look(ctx, account, func(s *State) (standing, error) {
		_, x, err := s.site(code, externalID)
		return x, err
	})
	if err != nil {
		return 0, err
	}
	now, err := l.stored(ctx, account, x.content)
	if err != nil {
		return 0, err
	}
	content, err := change(now.Content)
	if err != nil {
		return 0, err
	}
	j, err := newJob(account, code, "patch", Batch{Rows: []Row{{externalID, content}}})
	if err != nil {
		return 0, err
	}
	j.seen, j.quiet = x.version, true
	_, at, err := l.run(ctx, in, j)
	return at, err
}

// Deactivate takes a site out of every count; it keeps what it is. Twice is once.
func (l *Locations) Deactivate(ctx context.Context, account string, in commands.Intent, code, externalID string) (site.Site, eventstore.Position, error) {
	return l.turn(ctx, in, turn{account: account, code: code, externalID: externalID, action: "deactivate"})
}

// Reactivate makes a site active as it was. Twice is once. It is refused with *SiteCapError.
func (l *Locations) Reactivate(ctx context.Context, account string, in commands.Intent, code, externalID string) (site.Site, eventstore.Position, error) {
	return l.turn(ctx, in, turn{account: account, code: code, externalID: externalID, action: "reactivate"})
}

// turn is the wish to have a site active or not.
type turn struct {
	account, code, externalID string
	action                    string
	limit                     plan.Plan
}

func (l *Locations) turn(ctx context.Context, in commands.Intent, t turn) (site.Site, eventstore.Position, error) {
	var err error
	if t.limit, err = l.plans.PlanOf(ctx, t.account); err != nil {
		return site.Site{}, 0, err
	}
	stage := l.stager(t.account, in)
	at, err := l.desk.Do(ctx, t.account, in, func(s *State) commands.Result {
		c, err := t.decide(s)
		if err != nil {
			return commands.Refuse(err)
		}
		return stage.result(ctx, c)
	})
	if err != nil {
		return site.Site{}, at, err
	}
	shown, err := l.show(ctx, t.account, t.code, t.externalID)
	return shown, at, err
}

func (t turn) decide(s *State) (change, error) {
	g, x, err := s.site(t.code, t.externalID)
	if err != nil {
		return change{}, err
	}
	c := change{SitesWritten: s.figures(g, t.action, t.limit)}
	switch {
	case x.active && t.action == "deactivate":
		c.deactivate(t.account, t.externalID, x)
	case !x.active && t.action == "reactivate":
		c.add(t.account, x, event.SiteRow{ExternalID: t.externalID, Op: event.SiteReactivated, Lost: x.lost})
		c.count(event.SiteReactivated, 1)
		return c, crowded(c.SitesWritten)
	}
	return c, nil
}

// show is a site as it stands now, with its content from the log.
func (l *Locations) show(ctx context.Context, account, code, externalID string) (site.Site, error) {
	x, err := l.look(ctx, account, func(s *State) (standing, error) {
		g, err := s.find(code)
		if err != nil {
			return standing{}, err
		}
		return g.site(externalID)
	})
	if err != nil {
		return site.Site{}, err
	}
	stored, err := l.stored(ctx, account, x.content)
	if err != nil {
		return site.Site{}, err
	}
	s := site.Site{
		ID: siteID(account, code, externalID), Referential: code, ExternalID: externalID,
		Active: x.active, Version: x.version, Created: moment(x.created), Modified: moment(x.modified),
	}
	s.Content, s.Source, s.Score = stored.Show()
	if !x.active {
		s.Deactivated = moment(x.deactivated)
	}
	return s, nil
}

func (l *Locations) look(ctx context.Context, account string, find func(*State) (standing, error)) (x standing, err error) {
	if viewed := l.desk.View(ctx, account, func(s *State) { x, err = find(s) }); viewed != nil {
		return x, viewed
	}
	return x, err
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
