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

// ChangePlan gives an account other terms: at once when the plan is larger, or the volume on the same plan; at the
// next period when smaller. A quota of 0 is the plan's own volume. Terms it has, or is about to have,
// change nothing. What an agency sets for a sub-client is the volume alone, within its contract: the plan it goes back
// to when it leaves stays what an operator gave it.
func (a *Accounts) ChangePlan(ctx context.Context, id string, meta commands.Metadata, to Terms) (eventstore.Position, error) {
	agency, _, err := a.readParentAgency(ctx, id)
	if err != nil {
		return 0, err
	}
	return a.handleExisting(ctx, id, meta, func(s *State) commands.Result {
		if meta.IsByAgency() {
			return changeSubClientQuota(s, to, agency, a.now())
		}
		return changePlan(s, to, agency.plan, a.now())
	})
}

func changePlan(s *State, to Terms, agencyPlan plan.Name, now time.Time) commands.Result {
	if s.Closed() {
		return refuseAndRecord(actionChangePlan, refusal.AccountClosed)
	}
	if s.Agency.At(now) != "" && to.Plan != agencyPlan {
		return refuseAndRecord(actionChangePlan, refusal.PlanOfAgency)
	}
	quota, err := resolveQuota(to.Plan, to.Quota, 0)
	if err != nil {
		return refuseAndRecord(actionChangePlan, err)
	}
	return commands.Append(s.changeTerms(Terms{to.Plan, quota}, now)...)
}

// changeSubClientQuota is changePlan as the agency g may do it. A sub-client that is about to leave has its terms settled.
func changeSubClientQuota(s *State, to Terms, agency agencyState, now time.Time) commands.Result {
	switch {
	case s.Closed():
		return refuseAndRecord(actionChangePlan, refusal.AccountClosed)
	case s.Agency.At(now) == "":
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
	return commands.Append(s.changeTerms(Terms{s.Terms.At(now).Plan, quota}, now)...)
}

const actionChangePlan = "change-plan"

// changeTerms is what gives the account other terms, unless it has them or is about to.
func (s *State) changeTerms(to Terms, now time.Time) []event.Event {
	current := s.Terms.At(now)
	target := current
	if next, _, ok := s.Terms.Next(now); ok {
		target = next
	}
	if to == target {
		return nil
	}
	effective := now
	if !to.isAbove(current) && to != current {
		effective = s.nextPeriodStart(now)
	}
	return []event.Event{event.PlanChanged{From: current.Plan, To: to.Plan, Quota: to.Quota, Effective: effective.UTC()}}
}

// isAbove says whether t gives more than u: the larger plan, or more volume on the same.
func (t Terms) isAbove(u Terms) bool {
	return t.Plan.IsAbove(u.Plan) || t.Plan == u.Plan && t.Quota > u.Quota
}
