// Package reconcile compares the usage on the log with the read model of usage, which is what customers see and invoices bill. It
// only reads. It folds the log from its first event, by the rules of schemas/usagefold alone, so that no stored state can hide a
// mistake.
//
//	log ── FoldLog ──> Refold: a RefoldedStream for each period, an Instance for each process ──┐
//	                                                                                            ├─> comparison ──> body.Reconciliation
//	read model ── usage.Reader.ReadPeriods ──> StoredPeriod ────────────────────────────────────┘
//
// The read model is read and compared chunk by chunk, and the fold of a period is dropped once it is compared. The log grows
// meanwhile. A chunk is read again until it has caught up with the fold (readWhenCaughtUp), and the fold then catches up with the
// read model (Refold.CatchUp), so that both are of one revision.
//
// A period is one stream of usage events, or a part of a stream that several share (shared.go). A tick (event.UsageTicked) asks for
// requests to be counted in the period; it counts as a whole or not at all. Snapshots and closings are events that state what the events
// before them add up to; a wrong one is a misstatement. An instance is one run of the service's process.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lieudit/eventstore"
	"lieudit/queries/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// Reconciler compares a log of usage with its read model. Every part is required. It is safe for concurrent use.
type Reconciler struct {
	Log  eventstore.Store
	Read *usage.Reader
	// WaitForUsage returns when the read model shows everything that is on the log now, or when that takes too long.
	WaitForUsage func(context.Context)
	// RunningInstances returns the ids of the instances that are running.
	RunningInstances func(context.Context) (map[string]bool, error)
}

// Run compares the periods whose first day begins with the text period; "" compares all. It takes as long as reading the
// log takes. Without an error the result is complete; with one it holds the differences found before.
func (r *Reconciler) Run(ctx context.Context, period string) (body.Reconciliation, error) {
	log, err := FoldLog(ctx, r.Log, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	shown, err := r.Read.PeriodIDs(ctx, period)
	if err != nil {
		return body.Reconciliation{}, err
	}
	c := comparison{log: log, result: body.Reconciliation{Differences: []body.UsageDifference{}, Unanswered: []body.Unanswered{}}}
	for chunk := range chunkPeriods(mergePeriods(log, shown)) {
		stored, err := r.readWhenCaughtUp(ctx, log, chunk)
		if err == nil {
			err = c.comparePeriods(ctx, chunk, stored)
		}
		if err != nil {
			return c.result, err
		}
	}
	c.checkSharedSnapshots()
	running, err := r.RunningInstances(ctx)
	c.listUnanswered(running)
	return c.result, err
}

// chunkSize is how many periods of the read model are in memory at once.
const chunkSize = 5000

// chunkPeriods divides sorted periods into chunks of at most chunkSize that begin on the same day.
func chunkPeriods(all []usage.PeriodID) iter.Seq[[]usage.PeriodID] {
	return func(yield func([]usage.PeriodID) bool) {
		for len(all) > 0 {
			n := 1
			for n < min(len(all), chunkSize) && all[n].First == all[0].First {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// maxReads is how often a chunk is read again to let the read model catch up with the log.
const maxReads = 5

// readWhenCaughtUp returns what the read model holds of a chunk of periods, once it has caught up with the fold of the log, or after
// maxReads.
func (r *Reconciler) readWhenCaughtUp(ctx context.Context, log *Refold, chunk []usage.PeriodID) (stored map[usage.PeriodID]usage.StoredPeriod, err error) {
	for range maxReads {
		stored, err = r.Read.ReadPeriods(ctx, chunk)
		if err != nil || log.isCaughtUp(stored) {
			break
		}
		r.WaitForUsage(ctx)
	}
	return stored, err
}

// isCaughtUp reports whether the read model's periods have caught up with the fold.
func (f *Refold) isCaughtUp(stored map[usage.PeriodID]usage.StoredPeriod) bool {
	for p, shown := range stored {
		s := f.Streams[p.Stream()]
		if s != nil && (shown.Row == nil || eventstore.Revision(shown.Row.Revision) < s.Revision || eventstore.Revision(shown.Row.OwnRevision) < s.OwnRevision) {
			return false
		}
	}
	return true
}

// mergePeriods returns the periods that the log or the read model holds, by first day, then contract.
func mergePeriods(log *Refold, shown []usage.PeriodID) []usage.PeriodID {
	all := map[usage.PeriodID]bool{}
	for _, p := range shown {
		all[p] = true
	}
	for stream, s := range log.Streams {
		if s.IsOpen() || s.IsEnded() {
			all[parseStream(stream)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b usage.PeriodID) int {
		return cmp.Or(strings.Compare(a.First, b.First), strings.Compare(a.Contract, b.Contract))
	})
}

// parseStream returns the period of a stream. The name is usage-, the contract, and the first day: usage-mende-2026-11-21.
func parseStream(stream string) usage.PeriodID {
	subject := eventstore.EntityID(stream)
	contractEnd := max(len(subject)-len("-2026-11-21"), 0)
	return usage.PeriodID{Contract: subject[:contractEnd], First: strings.TrimPrefix(subject[contractEnd:], "-")}
}

// comparison collects the differences, period by period. The kinds of differences are those of body.UsageDifference.
type comparison struct {
	log    *Refold
	result body.Reconciliation
}

// comparePeriods compares the periods of a chunk in order, and drops the fold of each.
func (c *comparison) comparePeriods(ctx context.Context, chunk []usage.PeriodID, stored map[usage.PeriodID]usage.StoredPeriod) error {
	for _, p := range chunk {
		if err := c.foldForward(ctx, p, stored[p]); err != nil {
			return err
		}
		c.comparePeriod(p, stored[p])
		c.log.drop(p.Stream())
	}
	return nil
}

// foldForward folds a period up to the read model's revisions, which may advance meanwhile. The own stream of a period that is counted in
// a shared one names that first, and goes on once the counting there has ended.
func (c *comparison) foldForward(ctx context.Context, p usage.PeriodID, stored usage.StoredPeriod) error {
	if stored.Row == nil {
		return nil
	}
	revision := eventstore.Revision(stored.Row.Revision)
	s := c.log.Streams[p.Stream()]
	if stored.Row.Shared != "" {
		if s == nil || s.Shared == "" {
			if err := c.log.CatchUp(ctx, p.Stream(), 0); err != nil {
				return err
			}
		}
		if err := c.log.catchUpShared(ctx, p.Stream(), revision); err != nil {
			return err
		}
		revision = eventstore.Revision(stored.Row.OwnRevision)
	}
	if s != nil && revision <= s.foldedRevision() {
		return nil
	}
	return c.log.CatchUp(ctx, p.Stream(), revision)
}

// addDifference records one difference.
func (c *comparison) addDifference(p usage.PeriodID, d body.UsageDifference) {
	d.Contract, d.Period = p.Contract, p.First
	c.result.Differences = append(c.result.Differences, d)
}

// compareValues records a difference if the two values print differently.
func (c *comparison) compareValues(p usage.PeriodID, kind string, log, shown any) {
	if l, s := fmt.Sprint(log), fmt.Sprint(shown); l != s {
		c.addDifference(p, body.UsageDifference{Kind: kind, InLog: l, Shown: s})
	}
}

// comparePeriod compares everything that is known of one period.
func (c *comparison) comparePeriod(p usage.PeriodID, shown usage.StoredPeriod) {
	c.result.Periods++
	s, isOnLog := c.log.Streams[p.Stream()]
	if !isOnLog {
		s = newRefoldedStream()
		c.compareValues(p, "periode", "absent", "present")
	}
	c.result.Lines += len(s.Lines)
	c.result.Requests += s.Lines.Total()
	c.checkStatements(p, s)
	switch {
	case isOnLog && shown.Row == nil:
		c.compareValues(p, "periode", "present", "absent")
	case isOnLog:
		c.compareRow(p, s, shown)
	}
	c.compareLines(p, s.Lines, shown.Lines)
}

// checkStatements records the snapshots and closings on the stream that differ from what its events add up to.
func (c *comparison) checkStatements(p usage.PeriodID, s *RefoldedStream) {
	kinds := map[string]string{event.UsageSnapshotTaken{}.EventType(): "solde", event.UsageClosed{}.EventType(): "cloture", event.UsageLinesStated{}.EventType(): "cloture"}
	for _, m := range s.Misstatements {
		c.addDifference(p, body.UsageDifference{Kind: kinds[m.Type], InLog: "other", Shown: fmt.Sprintf("%s@%d", p.Stream(), m.Revision)})
	}
}

// checkSharedSnapshots records the snapshots of shared streams that differ from what their events add up to. They are of no one contract.
func (c *comparison) checkSharedSnapshots() {
	for _, name := range slices.Sorted(maps.Keys(c.log.shared)) {
		month, _, _ := usagefold.ParseSharedStreamName(name)
		for _, m := range c.log.shared[name].misstatements {
			c.addDifference(usage.PeriodID{First: month}, body.UsageDifference{Kind: "solde", InLog: "other", Shown: fmt.Sprintf("%s@%d", name, m.Revision)})
		}
	}
}

// compareRow compares the period's row. The values that a closing states are compared only if the log holds a closing: the row must
// then agree with the event.
func (c *comparison) compareRow(p usage.PeriodID, s *RefoldedStream, shown usage.StoredPeriod) {
	used, limit, isEnded := s.totals()
	c.compareValues(p, "periode", s.Shared, shown.Row.Shared)
	c.compareValues(p, "retard", s.shownRevision(), shown.Row.Revision)
	c.compareValues(p, "retard", int64(s.OwnRevision), shown.Row.OwnRevision)
	c.compareValues(p, "limite", limit, shown.Row.Cap)
	c.compareValues(p, "utilise", used, shown.Row.Used)
	c.compareValues(p, "cloture", s.IsClosed(), shown.Row.Closed != 0)
	c.compareValues(p, "cloture", isEnded, shown.Row.Ended != 0 || shown.Row.Closed != 0)
	if e := s.Closing; e != nil {
		c.compareValues(p, "total", e.Total, shown.Row.Total)
		c.compareValues(p, "lignes", e.LineCount, shown.Row.Lines)
		c.compareValues(p, "empreinte", fmt.Sprintf("%x", e.Digest), shown.Row.Digest)
	}
}

// compareLines compares the lines of the log and those that only the read model has, in the order of their keys.
func (c *comparison) compareLines(p usage.PeriodID, log, shown usagefold.Lines) {
	if maps.Equal(log, shown) {
		return
	}
	all := maps.Clone(log)
	if all == nil {
		all = usagefold.Lines{}
	}
	for key := range shown {
		all[key] = log[key]
	}
	for _, key := range all.SortedKeys() {
		if log[key] != shown[key] {
			c.addDifference(p, body.UsageDifference{
				Kind: "ligne", Day: key.Day, Account: key.Account, Key: key.Key, Endpoint: key.Endpoint,
				InLog: strconv.FormatInt(log[key], 10), Shown: strconv.FormatInt(shown[key], 10),
			})
		}
	}
}

// listUnanswered lists the last ticks of each instance that has not ended cleanly: it may have ended before it answered those
// requests.
func (c *comparison) listUnanswered(running map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(c.log.Instances)) {
		i := c.log.Instances[id]
		u := body.Unanswered{InstanceID: id, Started: i.Started, Running: running[id], Lines: []body.BilledLine{}}
		for _, stream := range slices.Sorted(maps.Keys(i.Last)) {
			last := i.Last[stream]
			if last.Shared == nil {
				addUnanswered(&u, parseStream(stream), last.Tick)
			}
			for _, part := range last.Shared {
				tick, _ := part.Event.(event.UsageTicked)
				addUnanswered(&u, usage.PeriodID{Contract: part.Contract, First: part.First.String()}, tick)
			}
		}
		if u.Requests > 0 {
			c.result.Unanswered = append(c.result.Unanswered, u)
		}
	}
}

// addUnanswered adds the lines of a tick of a period.
func addUnanswered(u *body.Unanswered, p usage.PeriodID, tick event.UsageTicked) {
	for _, n := range tick.Counts {
		u.Requests += n.Requests
		u.Lines = append(u.Lines, body.BilledLine{
			Account: n.Account, Contract: p.Contract, Period: p.First, Day: tick.Day.String(), Key: n.Key, Endpoint: n.Endpoint, Requests: n.Requests,
		})
	}
}
