package account

import (
	"context"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// OpenRequest describes the account to open. If Agency is set, the account is its sub-client from the start, and Plan may be
// empty: it is the agency's. A Quota of 0 is the plan's default; a zero Anchor is today.
type OpenRequest struct {
	ID     string
	Name   string
	Plan   plan.Name
	Quota  int64
	Anchor plan.Date
	Agency string

	agencyQuota int64 // the quota of the agency that opens it; 0: an operator opens it
}

// OpenAccount opens an account. It is refused with refusal.AccountExists under an id that any account ever had, even a closed
// one. Refusals are not recorded: the account has no stream yet, or the id's stream belongs to another account.
func (a *Accounts) OpenAccount(ctx context.Context, meta commands.Metadata, o OpenRequest) (eventstore.Position, error) {
	if o.Anchor == (plan.Date{}) {
		o.Anchor = plan.DateOf(a.now())
	}
	if o.Agency != "" {
		agency, err := a.readAgencyToJoin(ctx, o.Agency)
		if err != nil {
			return 0, err
		}
		if o, err = o.withAgencyPlan(agency); err != nil {
			return 0, err
		}
		if meta.IsByAgency() {
			o.agencyQuota = agency.quota
		}
	}
	return a.handler.Handle(ctx, o.ID, meta, o.decide)
}

// OpenAccountWithKey opens an account and issues its first secret key in one append: neither exists without the other.
// o.Agency must be empty, and req.Kind must be token.Secret.
func (a *Accounts) OpenAccountWithKey(ctx context.Context, meta commands.Metadata, o OpenRequest, req KeyRequest) (IssuedKey, error) {
	if o.Anchor == (plan.Date{}) {
		o.Anchor = plan.DateOf(a.now())
	}
	generated := a.newKey(meta, req, newID(), a.tokens.New(req.Kind))
	position, err := a.handler.Handle(ctx, o.ID, meta, func(s *State) commands.Result {
		opened := o.decide(s)
		if opened.Err() != nil {
			return opened
		}
		issued, _ := issueKey(s, generated.Key, req.Origins, agencyState{}, a.logTime())
		if err := issued.Err(); err != nil {
			return commands.Refuse(err) // not recorded: the account has no stream
		}
		return commands.Append(append(opened.Events(), issued.Events()...)...)
	})
	generated.Position = position
	return generated, err
}

// withAgencyPlan returns the request with the agency's plan, or why the account cannot be a sub-client of the agency.
func (o OpenRequest) withAgencyPlan(agency agencyState) (OpenRequest, error) {
	switch {
	case !agency.isActive:
		return o, refusal.AgencyUnknown
	case agency.isSubClient:
		return o, refusal.NestedAgency
	case o.Plan != "" && o.Plan != agency.plan:
		return o, refusal.PlanOfAgency
	}
	o.Plan = agency.plan
	return o, nil
}

// decide is the decision on the stream of the new account's id. o.Plan must be set: withAgencyPlan sets that of a sub-client.
func (o OpenRequest) decide(s *State) commands.Result {
	if s.Exists() {
		return commands.Refuse(refusal.AccountExists)
	}
	quota, err := resolveQuota(o.Plan, o.Quota, o.agencyQuota)
	if err != nil {
		return commands.Refuse(err)
	}
	return commands.Append(event.AccountOpened{
		Account: o.ID, Name: event.Personal(o.Name), Plan: o.Plan, Quota: quota, Anchor: o.Anchor, Agency: o.Agency,
	})
}

// resolveQuota returns the monthly quota on a plan: the requested one, or the plan's default for 0. The agency's quota limits
// both; an agencyQuota of 0 is no limit. It fails with a *QuotaError. The caller has checked that the request is not negative.
func resolveQuota(name plan.Name, requested, agencyQuota int64) (int64, error) {
	p, _ := plan.Lookup(name)
	maximum := p.MaxQuota
	if agencyQuota > 0 {
		maximum = min(maximum, agencyQuota)
	}
	switch {
	case requested == 0:
		return min(p.DefaultQuota, maximum), nil
	case requested > maximum:
		return 0, &QuotaError{requested, maximum}
	}
	return requested, nil
}

// CloseAccount ends the account and, with it, all its keys and those of its sub-clients. It is idempotent. It does not wait
// for the vault: without it the account is closed without its reason, which isReasonOmitted reports.
func (a *Accounts) CloseAccount(ctx context.Context, id string, meta commands.Metadata) (position eventstore.Position, isReasonOmitted bool, err error) {
	meta, isReasonOmitted, err = a.handler.SealReason(ctx, id, meta, event.AccountClosed{})
	if err != nil {
		return 0, false, err
	}
	position, err = a.handleAlone(ctx, id, meta, func(s *State) commands.Result {
		if meta.IsByAgency() && s.AgencyAt(a.now()) == "" { // it left the agency after the caller was authorized
			return commands.Refuse(ErrUnknownAccount)
		}
		return closeAccount(s)
	})
	return position, isReasonOmitted, err
}

// closeAccount does nothing for a closed account.
func closeAccount(s *State) commands.Result {
	if s.Closed() {
		return commands.Result{}
	}
	return commands.Append(event.AccountClosed{})
}

// EraseAccount makes the personal data of a closed account permanently unreadable: the log records the erasure, then the
// account's data key is destroyed, and with it the reason of the erasure. It is idempotent, and a second call finishes an
// erasure that stopped between the two steps.
func (a *Accounts) EraseAccount(ctx context.Context, id string, meta commands.Metadata) (eventstore.Position, error) {
	position, err := a.handleAlone(ctx, id, meta, eraseAccount)
	if err != nil {
		return position, err
	}
	return position, a.codec.DestroyKey(ctx, Aggregate.Category+"-"+id)
}

// eraseAccount refuses an open account. Closing comes first, so that no key is in use any more.
func eraseAccount(s *State) commands.Result {
	switch {
	case s.Erased:
		return commands.Result{}
	case !s.Closed():
		return refuseAndRecord("erase", refusal.AccountOpen)
	}
	return commands.Append(event.AccountErased{})
}
