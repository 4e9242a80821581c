package customerarea

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
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/body"
)

// reconcileUsage compares all that was counted. It takes as long as reading the log takes.
func (h *handler) reconcileUsage(_ *http.Request, _ call, in body.ReconcileUsage) (response, error) {
	return response{stream: func(ctx context.Context, w http.ResponseWriter) error {
		result, err := h.compareUsage(ctx, in.Period)
		if err != nil {
			return err
		}
		return answer.WriteJSON(w, http.StatusOK, result)
	}}, nil
}

func (h *handler) compareUsage(ctx context.Context, period string) (body.Reconciliation, error) {
	log, err := h.UsageMeter.Refold(ctx, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	shown, err := h.UsageQueries.PeriodIDs(ctx, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	c := usageComparison{log: log, result: body.Reconciliation{Differences: []body.UsageDifference{}, Unanswered: []body.Unanswered{}}}
	for _, p := range mergePeriods(log, shown) {
		kept, err := h.readWhenCaughtUp(ctx, log.Streams[p.Stream()], p)
		if err == nil {
			err = c.foldForward(ctx, p, kept)
		}
		if err != nil {
			return c.result, err
		}
		c.comparePeriod(p, kept)
	}
	running, err := h.RunningInstances(ctx)
	c.listUnanswered(running)
	return c.result, err
}

// maxReads is how often the read model is given time to get where the log was.
const maxReads = 5

// readWhenCaughtUp is what the read model holds of a period, once it is as far as the log was.
func (h *handler) readWhenCaughtUp(ctx context.Context, log *usage.RefoldedStream, p usagequeries.PeriodID) (kept usagequeries.StoredPeriod, err error) {
	for range maxReads {
		kept, err = h.UsageQueries.ReadPeriod(ctx, p)
		if err != nil || log == nil || kept.Row != nil && eventstore.Revision(kept.Row.Revision) >= log.Revision {
			break
		}
		h.WaitForUsage(ctx)
	}
	return kept, err
}

// mergePeriods are the periods that the log or the read model know of, in one order.
func mergePeriods(log *usage.Refold, shown []usagequeries.PeriodID) []usagequeries.PeriodID {
	all := map[usagequeries.PeriodID]bool{}
	for _, p := range shown {
		all[p] = true
	}
	for stream, s := range log.Streams {
		if s.IsOpen() || s.IsClosed() {
			all[parseStream(stream)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b usagequeries.PeriodID) int {
		return cmp.Or(strings.Compare(a.First, b.First), strings.Compare(a.Contract, b.Contract))
	})
}

// parseStream is the period whose stream is called so: usage-contract-2026-11-21.
func parseStream(stream string) usagequeries.PeriodID {
	subject := eventstore.EntityID(stream)
	contractEnd := max(len(subject)-len("-2026-11-21"), 0)
	return usagequeries.PeriodID{Contract: subject[:contractEnd], First: strings.TrimPrefix(subject[contractEnd:], "-")}
}

// foldForward folds a stream on to where the read model is, which goes on meanwhile.
func (c *usageComparison) foldForward(ctx context.Context, p usagequeries.PeriodID, shown usagequeries.StoredPeriod) error {
	s := c.log.Streams[p.Stream()]
	if shown.Row == nil || s != nil && eventstore.Revision(shown.Row.Revision) <= s.Revision {
		return nil
	}
	return c.log.CatchUp(ctx, p.Stream(), eventstore.Revision(shown.Row.Revision))
}

// listUnanswered lists what instances counted last that have not ended in good order.
func (c *usageComparison) listUnanswered(running map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(c.log.Instances)) {
		i := c.log.Instances[id]
		u := body.Unanswered{InstanceID: id, Started: i.Started, Running: running[id], Lines: []body.BilledLine{}}
		for _, stream := range slices.Sorted(maps.Keys(i.Last)) {
			p, tick := parseStream(stream), i.Last[stream].Tick
			for _, n := range tick.Counts {
				u.Requests += n.Requests
				u.Lines = append(u.Lines, body.BilledLine{
					Account: n.Account, Contract: p.Contract, Period: p.First, Day: tick.Day.String(), Key: n.Key, Endpoint: n.Endpoint, Requests: n.Requests,
				})
			}
		}
		if u.Requests > 0 {
			c.result.Unanswered = append(c.result.Unanswered, u)
		}
	}
}
