package customerarea

import (
	"fmt"
	"strconv"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// usageComparison is the log beside the read model, period by period.
type usageComparison struct {
	log    *usage.Refold
	result body.Reconciliation
}

// addDifference notes one difference.
func (c *usageComparison) addDifference(p usagequeries.PeriodID, d body.UsageDifference) {
	d.Contract, d.Period = p.Contract, p.First
	c.result.Differences = append(c.result.Differences, d)
}

// compareValues notes a difference if there is one.
func (c *usageComparison) compareValues(p usagequeries.PeriodID, kind string, log, shown any) {
	if l, s := fmt.Sprint(log), fmt.Sprint(shown); l != s {
		c.addDifference(p, body.UsageDifference{Kind: kind, InLog: l, Shown: s})
	}
}

// comparePeriod compares all there is of one comparePeriod.
func (c *usageComparison) comparePeriod(p usagequeries.PeriodID, shown usagequeries.StoredPeriod) {
	c.result.Periods++
	s, isOnLog := c.log.Streams[p.Stream()]
	if !isOnLog {
		s = &usage.RefoldedStream{PeriodUsage: *ledger.NewPeriodUsage(), Revision: eventstore.NoStream}
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

// checkStatements is what the log says of checkStatements and what is not so.
func (c *usageComparison) checkStatements(p usagequeries.PeriodID, s *usage.RefoldedStream) {
	kinds := map[string]string{event.UsageSnapshotTaken{}.EventType(): "solde", event.UsageClosed{}.EventType(): "cloture"}
	for _, w := range s.Misstatements {
		c.addDifference(p, body.UsageDifference{Kind: kinds[w.Type], InLog: "other", Shown: fmt.Sprintf("%s@%d", p.Stream(), w.Revision)})
	}
}

func (c *usageComparison) compareRow(p usagequeries.PeriodID, s *usage.RefoldedStream, shown usagequeries.StoredPeriod) {
	limit, _, _ := s.Cap(s.Contract)
	c.compareValues(p, "retard", int64(s.Revision), shown.Row.Revision)
	c.compareValues(p, "limite", limit, shown.Row.Cap)
	c.compareValues(p, "utilise", s.Used(s.Contract), shown.Row.Used)
	c.compareValues(p, "cloture", s.IsClosed(), shown.Row.Closed != 0)
	if e := s.Closing; e != nil {
		c.compareValues(p, "total", e.Total, shown.Row.Total)
		c.compareValues(p, "lignes", e.LineCount, shown.Row.Lines)
		c.compareValues(p, "empreinte", fmt.Sprintf("%x", e.Digest), shown.Row.Digest)
	}
}

// compareLines compares line by line: those of the log, then those it does not have.
func (c *usageComparison) compareLines(p usagequeries.PeriodID, log, shown ledger.Lines) {
	all := ledger.Lines{}
	for at := range log {
		all[at] = log[at]
	}
	for at := range shown {
		all[at] = log[at]
	}
	for _, at := range all.SortedKeys() {
		if log[at] != shown[at] {
			c.addDifference(p, body.UsageDifference{
				Kind: "ligne", Day: at.Day, Account: at.Account, Key: at.Key, Endpoint: at.Endpoint,
				InLog: strconv.FormatInt(log[at], 10), Shown: strconv.FormatInt(shown[at], 10),
			})
		}
	}
}
