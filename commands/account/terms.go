package account

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// ChangePlan gives an account other terms. A larger plan, or a larger quota on the same plan, is in force at once. Smaller
// terms are in force from the next period on. A quota of 0 is the plan's default. Terms that the account has, or that are
// already scheduled, change nothing. An agency only sets the quota of a sub-client, within its own: when the sub-client
// leaves, it returns to the plan that an operator gave it.
func (a *Accounts) ChangePlan(ctx context.Context, id string, meta commands.Metadata, to Terms) (eventstore.Position, error) {
	return a.handleExisting(ctx, id, meta, func(s *State, agency agencyState) commands.Result {
		if meta.IsByAgency() {
			return changeSubClientQuota(s, to, agency, a.logTime())
		}
		return changePlan(s, to, agency, a.logTime())
	})
}

// changePlan is the decision for an operator. A sub-client keeps the plan of its agency, but may get another quota.
func changePlan(s *State, to Terms, agency agencyState, now time.Time) commands.Result {
	if s.Closed() {
		return refuseAndRecord(actionChangePlan, refusal.AccountClosed)
	}
	if s.AgencyAt(now) != "" && to.Plan != agency.plan {
		return refuseAndRecord(actionChangePlan, refusal.PlanOfAgency)
	}
	quota, err := resolveQuota(to.Plan, to.Quota, 0)
	if err != nil {
		return refuseAndRecord(actionChangePlan, err)
	}
	return commands.Append(s.changeTerms(Terms{to.Plan, quota}, agency, now)...)
}

// changeSubClientQuota is changePlan for an agency. It cannot change the terms of a sub-client that is about to leave.
func changeSubClientQuota(s *State, to Terms, agency agencyState, now time.Time) commands.Result {
	switch {
	case s.Closed():
		return refuseAndRecord(actionChangePlan, refusal.AccountClosed)
	case s.AgencyAt(now) == "":
		return refuseAndRecord(actionChangePlan, refusal.NotSubClient)
	case s.eventualAgency(now) == "":
		return refuseAndRecord(actionChangePlan, refusal.SubClientLeaving)
	case to.Plan != agency.plan:
		return refuseAndRecord(actionChangePlan, refusal.PlanOfAgency)
	}
	quota, err := resolveQuota(to.Plan, to.Quota, agency.quota)
	if err != nil {
		return refuseAndRecord(actionChangePlan, err)
	}
	return commands.Append(s.changeTerms(Terms{s.Terms.At(now).Plan, quota}, agency, now)...)
}

// actionChangePlan is the name of the command in AccountActionRefused.
const actionChangePlan = "change-plan"

// changeTerms returns the event that gives the account other terms, or none if it has them or they are already scheduled. The
// terms that it has now cancel a scheduled change and stay in force without a break. For a sub-client only quotas are
// compared: the plan in force is its agency's.
func (s *State) changeTerms(to Terms, agency agencyState, now time.Time) []event.Event {
	current := s.Terms.At(now)
	target := current
	if next, _, ok := s.Terms.Next(now); ok {
		target = next
	}
	if to == target {
		return nil
	}
	period, inForce := s.period(agency, now), current
	effective := period.Start() // at once, but not now: the log's clock may be behind
	if s.AgencyAt(now) != "" {
		inForce.Plan = to.Plan
	}
	if !to.isAbove(inForce) && to != inForce {
		effective = period.End()
	}
	return []event.Event{event.PlanChanged{From: current.Plan, To: to.Plan, Quota: to.Quota, Effective: effective.UTC()}}
}

// isAbove reports whether t gives more than u: the larger plan, or a larger quota on the same plan. Plans count before quotas.
func (t Terms) isAbove(u Terms) bool {
	return t.Plan.IsAbove(u.Plan) || t.Plan == u.Plan && t.Quota > u.Quota
}

// ActivateAgency lets the account have sub-clients. It is idempotent.
func (a *Accounts) ActivateAgency(ctx context.Context, id string, meta commands.Metadata) (eventstore.Position, error) {
	return a.handleExisting(ctx, id, meta, func(s *State, _ agencyState) commands.Result { return activateAgency(s, a.logTime()) })
}

// activateAgency refuses an account that is, or is about to be, a sub-client: agencies have depth one.
func activateAgency(s *State, now time.Time) commands.Result {
	const action = "activate-agency"
	switch {
	case s.Closed():
		return refuseAndRecord(action, refusal.AccountClosed)
	case s.isOrWillBeSubClient(now):
		return refuseAndRecord(action, refusal.NestedAgency)
	case s.IsAgency:
		return commands.Result{}
	}
	return commands.Append(event.AgencyActivated{})
}

// JoinAgency makes the account a sub-client of an agency from its next period on. Until then the account's own plan limits it.
// It is refused with refusal.AgencyUnknown if parent is not an active agency.
func (a *Accounts) JoinAgency(ctx context.Context, id string, meta commands.Metadata, parent string) (eventstore.Position, error) {
	agency, err := a.readAgencyToJoin(ctx, parent)
	if err != nil {
		return 0, err
	}
	return a.handleExisting(ctx, id, meta, func(s *State, _ agencyState) commands.Result {
		return joinAgency(s, parent, agency, a.logTime())
	})
}

// joinAgency changes nothing for an account that belongs, or is about to belong, to the same agency.
func joinAgency(s *State, parent string, agency agencyState, now time.Time) commands.Result {
	const action = "join-agency"
	switch {
	case s.Closed():
		return refuseAndRecord(action, refusal.AccountClosed)
	case s.eventualAgency(now) == parent:
		return commands.Result{}
	case s.IsAgency:
		return refuseAndRecord(action, refusal.NestedAgency)
	case s.isOrWillBeSubClient(now): // checked first: the refusals below reveal something about another account
		return refuseAndRecord(action, refusal.AlreadySubClient)
	case agency.isSubClient:
		return refuseAndRecord(action, refusal.NestedAgency)
	case !agency.isActive:
		return refuseAndRecord(action, refusal.AgencyUnknown)
	}
	return commands.Append(event.AgencyJoined{Agency: parent, Effective: s.period(agency, now).End().UTC()})
}

// LeaveAgency makes a sub-client an independent account from its agency's next period on, with its own plan and that plan's
// default quota, whatever the agency had set. Only an operator may do this: an agency's request is recorded and refused.
func (a *Accounts) LeaveAgency(ctx context.Context, id string, meta commands.Metadata) (eventstore.Position, error) {
	return a.handleExisting(ctx, id, meta, func(s *State, agency agencyState) commands.Result {
		return leaveAgency(s, agency, !meta.IsByAgency(), a.logTime())
	})
}

// leaveAgency records the leaving and, in the same append, the quota from then on. confirmed is false for an agency's request.
func leaveAgency(s *State, agency agencyState, confirmed bool, now time.Time) commands.Result {
	const action = "leave-agency"
	switch {
	case s.Closed():
		return refuseAndRecord(action, refusal.AccountClosed)
	case !s.isOrWillBeSubClient(now):
		return refuseAndRecord(action, refusal.NotSubClient)
	case !confirmed:
		return refuseAndRecord(action, refusal.LeavingUnconfirmed)
	case s.AgencyAt(now) == "": // the membership has not begun: it ends at once, and no agency has set a quota
		return commands.Append(event.AgencyLeft{Agency: s.eventualAgency(now), Effective: now.UTC()})
	case s.eventualAgency(now) == "":
		return commands.Append(s.completeLeaving(now)...)
	}
	effective := s.period(agency, now).End()
	left := event.AgencyLeft{Agency: s.eventualAgency(now), Effective: effective.UTC()}
	return commands.Append(append([]event.Event{left}, s.resetQuotaToPlan(effective, now)...)...)
}

// completeLeaving returns the change of quota that earlier releases did not record with AgencyLeft. It leaves terms that were
// set since then.
func (s *State) completeLeaving(now time.Time) []event.Event {
	if _, _, ok := s.Terms.Next(now); ok {
		return nil
	}
	_, effective, _ := s.Agency.Next(now)
	return s.resetQuotaToPlan(effective, now)
}

// resetQuotaToPlan returns the event that gives a leaving sub-client the default quota of its own plan, if it needs one. The
// event also replaces scheduled terms.
func (s *State) resetQuotaToPlan(effective, now time.Time) []event.Event {
	current := s.Terms.At(now)
	p, _ := plan.Lookup(current.Plan)
	if _, _, scheduled := s.Terms.Next(now); !scheduled && current.Quota == p.DefaultQuota {
		return nil
	}
	return []event.Event{event.PlanChanged{From: current.Plan, To: current.Plan, Quota: p.DefaultQuota, Effective: effective.UTC()}}
}

// isOrWillBeSubClient reports whether the account is, or is about to be, an agency's sub-client.
func (s *State) isOrWillBeSubClient(now time.Time) bool {
	return s.AgencyAt(now) != "" || s.eventualAgency(now) != ""
}

// eventualAgency returns the agency of the account after every scheduled change, or "".
func (s *State) eventualAgency(now time.Time) string {
	if next, _, ok := s.Agency.Next(now); ok {
		return next.Agency
	}
	return s.AgencyAt(now)
}
