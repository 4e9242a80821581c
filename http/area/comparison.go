package area

import (
	"fmt"
	"strconv"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/queries/consumption"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// comparison is the log beside the read model, period by period.
type comparison struct {
	log *usage.Refold
	out body.Reconciliation
}

// found notes one difference.
func (c *comparison) found(p consumption.Named, d body.UsageDifference) {
	d.Contract, d.Period = p.Contract, p.First
	c.out.Differences = append(c.out.Differences, d)
}

// differ notes a difference if there is one.
func (c *comparison) differ(p consumption.Named, kind string, log, shown any) {
	if l, s := fmt.Sprint(log), fmt.Sprint(shown); l != s {
		c.found(p, body.UsageDifference{Kind: kind, Log: l, Shown: s})
	}
}

// period compares all there is of one period.
func (c *comparison) period(p consumption.Named, kept consumption.Kept) {
	c.out.Periods++
	s, told := c.log.Streams[p.Stream()]
	if !told {
		s = &usage.Refolded{Folding: *ledger.NewFolding(), Revision: eventstore.NoStream}
		c.differ(p, "periode", "absent", "present")
	}
	c.out.Lines += len(s.Lines)
	c.out.Requests += s.Lines.Total()
	c.itself(p, s)
	switch {
	case told && kept.Row == nil:
		c.differ(p, "periode", "present", "absent")
	case told:
		c.row(p, s, kept)
	}
	c.lines(p, s.Lines, kept.Lines)
}

// itself is what the log says of itself and what is not so.
func (c *comparison) itself(p consumption.Named, s *usage.Refolded) {
	kinds := map[string]string{event.UsageBalanced{}.EventType(): "solde", event.UsageClosed{}.EventType(): "cloture"}
	for _, w := range s.Wrong {
		c.found(p, body.UsageDifference{Kind: kinds[w.Type], Log: "other", Shown: fmt.Sprintf("%s@%d", p.Stream(), w.Revision)})
	}
}

func (c *comparison) row(p consumption.Named, s *usage.Refolded, kept consumption.Kept) {
	limit, _, _ := s.Cap(s.Contract)
	c.differ(p, "retard", int64(s.Revision), kept.Row.Revision)
	c.differ(p, "limite", limit, kept.Row.Cap)
	c.differ(p, "utilise", s.Used(s.Contract), kept.Row.Used)
	c.differ(p, "cloture", s.Closed(), kept.Row.Closed != 0)
	if e := s.Closing; e != nil {
		c.differ(p, "total", e.Total, kept.Row.Total)
		c.differ(p, "lignes", e.Lines, kept.Row.Lines)
		c.differ(p, "empreinte", fmt.Sprintf("%x", e.Digest), kept.Row.Digest)
	}
}

// lines compares line by line: those of the log, then those it does not have.
func (c *comparison) lines(p consumption.Named, log, shown ledger.Lines) {
	all := ledger.Lines{}
	for at := range log {
		all[at] = log[at]
	}
	for at := range shown {
		all[at] = log[at]
	}
	for _, at := range all.Sorted() {
		if log[at] != shown[at] {
			c.found(p, body.UsageDifference{
				Kind: "ligne", Day: at.Day, Account: at.Account, Key: at.Key, Endpoint: at.Endpoint,
				Log: strconv.FormatInt(log[at], 10), Shown: strconv.FormatInt(shown[at], 10),
			})
		}
	}
}
