package area

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/answer"
	"lieudit/queries/consumption"
	"lieudit/schemas/body"
)

// reconcile compares all that was counted. It takes as long as reading the log takes.
func (a *area) reconcile(_ *http.Request, _ call, in body.ReconcileUsage) (reply, error) {
	return reply{stream: func(ctx context.Context, w http.ResponseWriter) error {
		compared, err := a.compare(ctx, in.Period)
		if err != nil {
			return err
		}
		return answer.JSON(w, http.StatusOK, compared)
	}}, nil
}

func (a *area) compare(ctx context.Context, period string) (body.Reconciliation, error) {
	log, err := a.Ledger.Refold(ctx, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	shown, err := a.Consumption.Periods(ctx, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	c := comparison{log: log, out: body.Reconciliation{Differences: []body.UsageDifference{}, Unanswered: []body.Unanswered{}}}
	for _, p := range periodsOf(log, shown) {
		kept, err := a.kept(ctx, log.Streams[p.Stream()], p)
		if err == nil {
			err = c.catchUp(ctx, p, kept)
		}
		if err != nil {
			return c.out, err
		}
		c.period(p, kept)
	}
	alive, err := a.Alive(ctx)
	c.unanswered(alive)
	return c.out, err
}

// maxLooks is how often the read model is given time to get where the log was.
const maxLooks = 5

// kept is what the read model holds of a period, once it is as far as the log was.
func (a *area) kept(ctx context.Context, log *usage.Refolded, p consumption.Named) (kept consumption.Kept, err error) {
	for range maxLooks {
		kept, err = a.Consumption.Kept(ctx, p)
		if err != nil || log == nil || kept.Row != nil && eventstore.Revision(kept.Row.Revision) >= log.Revision {
			break
		}
		a.Tallied(ctx)
	}
	return kept, err
}

// periodsOf are the periods that the log or the read model know of, in one order.
func periodsOf(log *usage.Refold, shown []consumption.Named) []consumption.Named {
	all := map[consumption.Named]bool{}
	for _, p := range shown {
		all[p] = true
	}
	for stream, s := range log.Streams {
		if s.Opened() || s.Closed() {
			all[periodOf(stream)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b consumption.Named) int {
		return cmp.Or(strings.Compare(a.First, b.First), strings.Compare(a.Contract, b.Contract))
	})
}

// periodOf is the period whose stream is called so: usage-contract-2026-11-21.
func periodOf(stream string) consumption.Named {
	subject := eventstore.Subject(stream)
	cut := max(len(subject)-len("-2026-11-21"), 0)
	return consumption.Named{Contract: subject[:cut], First: strings.TrimPrefix(subject[cut:], "-")}
}

// catchUp folds a stream on to where the read model is, which goes on meanwhile.
func (c *comparison) catchUp(ctx context.Context, p consumption.Named, kept consumption.Kept) error {
	s := c.log.Streams[p.Stream()]
	if kept.Row == nil || s != nil && eventstore.Revision(kept.Row.Revision) <= s.Revision {
		return nil
	}
	return c.log.Forward(ctx, p.Stream(), eventstore.Revision(kept.Row.Revision))
}

// unanswered lists what instances counted last that have not ended in good order.
func (c *comparison) unanswered(alive map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(c.log.Incarnations)) {
		i := c.log.Incarnations[id]
		u := body.Unanswered{Incarnation: id, Started: i.Started, Running: alive[id], Lines: []body.BilledLine{}}
		for _, stream := range slices.Sorted(maps.Keys(i.Last)) {
			p, tick := periodOf(stream), i.Last[stream].Tick
			for _, n := range tick.Counts {
				u.Requests += n.Requests
				u.Lines = append(u.Lines, body.BilledLine{
					Account: n.Account, Contract: p.Contract, Period: p.First, Day: tick.Day.String(), Key: n.Key, Endpoint: n.Endpoint, Requests: n.Requests,
				})
			}
		}
		if u.Requests > 0 {
			c.out.Unanswered = append(c.out.Unanswered, u)
		}
	}
}
