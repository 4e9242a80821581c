package area

import (
	"context"
	"net/http"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/problem"
	"lieudit/queries/consumption"
	"lieudit/queries/keys"
	"lieudit/schemas/body"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

func (a *area) usage(r *http.Request, c call, in body.UsageQuery) (reply, error) {
	account, err := a.shown(r, c.account())
	if err != nil {
		return reply{}, err
	}
	q := questionOf(account, in, a.Now())
	a.Tallied(r.Context())
	u, err := a.Consumption.Account(r.Context(), q)
	if err != nil {
		return reply{}, err
	}
	if u.Next == (plan.Date{}) { // nothing was counted in it
		period := plan.PeriodAt(account.Start, q.First.Start())
		if period.First != q.First {
			return reply{}, noPeriod(in)
		}
		u.Next = period.Next
	}
	return ok(shownUsage(q, u))
}

func questionOf(account body.Account, in body.UsageQuery, now time.Time) consumption.Question {
	q := consumption.Question{Account: account.ID, Contract: account.ID, Quota: account.Quota, First: in.Period}
	if account.Agency != "" {
		q.Contract = account.Agency
	}
	if in.Period == (plan.Date{}) {
		q.First = plan.PeriodAt(account.Start, now).First
	}
	for _, by := range in.By {
		q.By = append(q.By, consumption.Dimension(by))
	}
	if in.By == nil {
		q.By = []consumption.Dimension{consumption.ByKey, consumption.ByEndpoint, consumption.ByDay}
	}
	return q
}

func shownUsage(q consumption.Question, u consumption.Usage) body.Usage {
	shown := body.Usage{
		Period: q.First, Interval: body.Interval{Start: q.First.Start(), End: u.Next.Start()},
		Limit: u.Limit, Total: u.Total, Remaining: u.Remaining, Closed: u.Closed, Lines: make([]body.UsageLine, len(u.Lines)),
	}
	if u.Contract != q.Account {
		shown.Agency = u.Contract
	}
	for i, l := range u.Lines {
		shown.Lines[i] = body.UsageLine(l)
	}
	return shown
}

func noPeriod(in body.UsageQuery) error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "period"}, Msg: "Value error, no period of the account begins on that day",
		Input: map[string]any{"period": in.Period},
	})
}

func (a *area) adjust(r *http.Request, c call, in body.AdjustUsage) (reply, error) {
	if in.Account == "" {
		in.Account = in.Contract
	}
	done, err := a.Ledger.Adjust(r.Context(), c.intent(in.Reason), usage.Adjustment{
		Contract: in.Contract, First: in.Period, Requests: in.Requests,
		Line: ledger.Line{Day: in.Day, Account: in.Account, Key: in.Key, Endpoint: in.Endpoint},
	})
	if err != nil {
		return reply{}, err
	}
	a.Tallied(r.Context())
	return ok(body.BilledLine{
		Account: in.Account, Contract: in.Contract, Period: in.Period.String(), Day: in.Day.String(), Key: in.Key, Endpoint: in.Endpoint,
		Requests: done.Requests,
	})
}

// lastUsed is when keys of a list were used last.
func (a *area) lastUsed(ctx context.Context, listed []keys.Key) (map[string]time.Time, error) {
	ids := make([]string, len(listed))
	for i, k := range listed {
		ids[i] = k.ID
	}
	return a.Consumption.LastUsed(ctx, ids)
}
