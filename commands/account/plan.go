package account

import (
	"context"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// ChangePlan gives an account other terms: at once when the plan is larger, or the volume on the same plan; at the
// next period when smaller. A quota of 0 is the plan's own volume. Terms it has, or is about to have,
// change nothing. What an agency sets for a sub-client is the volume alone, within its contract: the plan it goes back
// to when it leaves stays what an operator gave it.
func (a *Accounts) ChangePlan(ctx context.Context, id string, in commands.Intent, to Terms) (eventstore.Position, error) {
	g, _, err := a.agencyAbove(ctx, id)
	if err != nil {
		return 0, err
	}
	return a.do(ctx, id, in, func(s *State) commands.Result {
		if in.ByAgency() {
			return changeVolume(s, to, g, a.now())
		}
		return changePlan(s, to, g.plan, a.now())
	})
}

func changePlan(s *State, to Terms, agencyPlan plan.Name, now time.Time) commands.Result {
	if s.Closed() {
		return refuse(changingPlan, ErrClosed)
	}
	if s.Agency.At(now) != "" && to.Plan != agencyPlan {
		return refuse(changingPlan, ErrAgencyPlan)
	}
	quota, err := volume(to.Plan, to.Quota, 0)
	if err != nil {
		return refuse(changingPlan, err)
	}
	return commands.Append(s.become(Terms{to.Plan, quota}, now)...)
}

// changeVolume is changePlan as the agency g may do it. A sub-client that is about to leave has its terms settled.
func changeVolume(s *State, to Terms, g agency, now time.Time) commands.Result {
	switch {
	case s.Closed():
		return refuse(changingPlan, ErrClosed)
	case s.Agency.At(now) == "":
		return refuse(changingPlan, ErrNotSubClient)
	case s.bound(now) == "":
		return refuse(changingPlan, ErrLeaving)
	case to.Plan != g.plan:
		return refuse(changingPlan, ErrAgencyPlan)
	}
	quota, err := volume(to.Plan, to.Quota, g.volume)
	if err != nil {
		return refuse(changingPlan, err)
	}
	return commands.Append(s.become(Terms{s.Terms.At(now).Plan, quota}, now)...)
}

const changingPlan = "change-plan"

// become is what gives the account other terms, unless it has them or is about to.
func (s *State) become(to Terms, now time.Time) []event.Event {
	own := s.Terms.At(now)
	target := own
	if next, _, ok := s.Terms.Next(now); ok {
		target = next
	}
	if to == target {
		return nil
	}
	effective := now
	if !to.above(own) && to != own {
		effective = s.nextPeriod(now)
	}
	return []event.Event{event.PlanChanged{From: own.Plan, To: to.Plan, Quota: to.Quota, Effective: effective.UTC()}}
}

// above says whether t gives more than u: the larger plan, or more volume on the same.
func (t Terms) above(u Terms) bool {
	return t.Plan.Above(u.Plan) || t.Plan == u.Plan && t.Quota > u.Quota
}
