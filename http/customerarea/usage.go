package customerarea

import (
	"context"
	"net/http"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/problem"
	"lieudit/queries/account"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

func (h *handler) showUsage(r *http.Request, c call, in body.UsageQuery) (response, error) {
	owner, err := h.loadAccount(r, c.account())
	if err != nil {
		return response{}, err
	}
	q := buildUsageQuery(owner, in, h.Now())
	h.WaitForUsage(r.Context())
	u, err := h.UsageQueries.SummarizeAccount(r.Context(), q)
	if err != nil {
		return response{}, err
	}
	if u.Next == (plan.Date{}) { // nothing was counted in it
		period := plan.PeriodAt(owner.Anchor, q.First.Start())
		if period.First != q.First {
			return response{}, unknownPeriod(in)
		}
		u.Next = period.Next
	}
	return okResponse(toUsage(q, u))
}

func buildUsageQuery(owner body.Account, in body.UsageQuery, now time.Time) usagequeries.Query {
	q := usagequeries.Query{Account: owner.ID, Contract: owner.ID, Quota: owner.Quota, First: in.Period}
	if owner.Agency != "" {
		q.Contract = owner.Agency
	}
	if in.Period == (plan.Date{}) {
		q.First = plan.PeriodAt(owner.Anchor, now).First
	}
	for _, by := range in.GroupBy {
		q.GroupBy = append(q.GroupBy, usagequeries.Dimension(by))
	}
	if in.GroupBy == nil {
		q.GroupBy = []usagequeries.Dimension{usagequeries.ByKey, usagequeries.ByEndpoint, usagequeries.ByDay}
	}
	return q
}

func toUsage(q usagequeries.Query, u usagequeries.Summary) body.Usage {
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

func unknownPeriod(in body.UsageQuery) error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "period"}, Msg: "Value error, no period of the account begins on that day",
		Input: map[string]any{"period": in.Period},
	})
}

func (h *handler) adjustUsage(r *http.Request, c call, in body.AdjustUsage) (response, error) {
	if in.Account == "" {
		in.Account = in.Contract
	}
	done, err := h.UsageMeter.AdjustPeriod(r.Context(), c.metadata(in.Reason), usage.Adjustment{
		Contract: in.Contract, First: in.Period, Requests: in.Requests,
		Line: ledger.LineKey{Day: in.Day, Account: in.Account, Key: in.Key, Endpoint: in.Endpoint},
	})
	if err != nil {
		return response{}, err
	}
	h.WaitForUsage(r.Context())
	return okResponse(body.BilledLine{
		Account: in.Account, Contract: in.Contract, Period: in.Period.String(), Day: in.Day.String(), Key: in.Key, Endpoint: in.Endpoint,
		Requests: done.Requests,
	})
}

// loadLastUsed is when keys of a list were used last.
func (h *handler) loadLastUsed(ctx context.Context, listed []account.Key) (map[string]time.Time, error) {
	ids := make([]string, len(listed))
	for i, k := range listed {
		ids[i] = k.ID
	}
	return h.UsageQueries.LastUsed(ctx, ids)
}
