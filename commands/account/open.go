package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// Open is the wish to open an account. Where Agency is set the account is its sub-client from the start, and Plan may
// be empty. A Quota of 0 is the plan's own volume; a zero Anchor is today.
type Open struct {
	ID     string
	Name   string
	Plan   plan.Name
	Quota  int64
	Anchor plan.Date
	Agency string
}

// Open opens an account under an id that no account ever had.
func (a *Accounts) Open(ctx context.Context, in commands.Intent, o Open) (eventstore.Position, error) {
	if o.Anchor == (plan.Date{}) {
		o.Anchor = plan.DateOf(a.now())
	}
	if o.Agency != "" {
		g, err := a.agency(ctx, o.Agency)
		if err != nil {
			return 0, err
		}
		if o, err = o.under(g); err != nil {
			return 0, err
		}
	}
	return a.desk.Do(ctx, o.ID, in, o.decide)
}

// OpenWithKey opens an account and issues its first secret key in one append: there is never one without the other.
func (a *Accounts) OpenWithKey(ctx context.Context, in commands.Intent, o Open, i Issue) (Issued, error) {
	if o.Anchor == (plan.Date{}) {
		o.Anchor = plan.DateOf(a.now())
	}
	made := a.mint(in, i)
	at, err := a.desk.Do(ctx, o.ID, in, func(s *State) commands.Result {
		opened := o.decide(s)
		if opened.Err() != nil {
			return opened
		}
		issued, _ := issue(s, made.Key, i.Origins, plan.Plan{})
		if err := issued.Err(); err != nil {
			return commands.Refuse(err) // not recorded: there is no account it could be recorded in
		}
		return commands.Append(append(opened.Events(), issued.Events()...)...)
	})
	made.Position = at
	return made, err
}

// under is the wish with the agency's plan, or why the agency cannot have the account.
func (o Open) under(g agency) (Open, error) {
	switch {
	case !g.active:
		return o, ErrNoAgency
	case g.nested:
		return o, ErrNested
	case o.Plan != "" && o.Plan != g.plan:
		return o, ErrAgencyPlan
	}
	o.Plan = g.plan
	return o, nil
}

func (o Open) decide(s *State) commands.Result {
	if s.Exists() {
		return commands.Refuse(ErrAlreadyOpen)
	}
	quota, err := volume(o.Plan, o.Quota)
	if err != nil {
		return commands.Refuse(err)
	}
	return commands.Append(event.AccountOpened{
		Account: o.ID, Name: event.Personal(o.Name), Plan: o.Plan, Quota: quota, Anchor: o.Anchor, Agency: o.Agency,
	})
}

// volume is the monthly volume on a plan: the one asked for, or the plan's own.
func volume(name plan.Name, asked int64) (int64, error) {
	p, _ := plan.Lookup(name)
	if asked == 0 {
		return p.Requests, nil
	}
	if asked > p.MaxRequests {
		return 0, &QuotaError{asked, p.MaxRequests}
	}
	return asked, nil
}
