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
// change nothing.
func (a *Accounts) ChangePlan(ctx context.Context, id string, in commands.Intent, to Terms) (eventstore.Position, error) {
	limit, err := a.PlanOf(ctx, id)
	if err != nil {
		return 0, err
	}
	return a.do(ctx, id, in, func(s *State) commands.Result {
		return changePlan(s, to, limit.Name, a.now())
	})
}

func changePlan(s *State, to Terms, agencyPlan plan.Name, now time.Time) commands.Result {
	const action = "change-plan"
	own := s.Terms.At(now)
	if s.Closed() {
		return refuse(action, ErrClosed)
	}
	if s.Agency.At(now) != "" && to.Plan != agencyPlan {
		return refuse(action, ErrAgencyPlan)
	}
	quota, err := volume(to.Plan, to.Quota)
	if err != nil {
		return refuse(action, err)
	}
	to.Quota = quota
	target := own
	if next, _, ok := s.Terms.Next(now); ok {
		target = next
	}
	if to == target {
		return commands.Result{}
	}
	effective := now
	if !to.above(own) && to != own {
		effective = s.nextPeriod(now)
	}
	return commands.Append(event.PlanChanged{From: own.Plan, To: to.Plan, Quota: to.Quota, Effective: effective.UTC()})
}

// above says whether t gives more than u: the larger plan, or more volume on the same.
func (t Terms) above(u Terms) bool {
	return t.Plan.Above(u.Plan) || t.Plan == u.Plan && t.Quota > u.Quota
}
