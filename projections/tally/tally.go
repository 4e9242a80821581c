// Package tally fills the tables of what was counted, from the log of usage. Whether an event counts is what
// schemas/ledger says and nothing else: each stream's book is kept beside its lines and folded on, so that lines, book
// and checkpoint are always of the same place in the log.
package tally

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

// Model is usage. Its log is that of usage, which need not be the one of accounts.
var Model = projector.Model{
	Model:      table.Usage,
	Categories: eventstore.Filter{category, "incarnation"},
	Bare:       true,
	States:     []projector.Stateful{periods},
	Rules: []projector.Rule{
		projector.On(fold[event.UsageOpened]),
		projector.On(fold[event.UsageCapSet]),
		projector.On(fold[event.UsageKeyRevoked]),
		projector.On(fold[event.UsageAccountClosed]),
		projector.On(fold[event.UsageTicked]),
		projector.On(fold[event.UsageRefunded]),
		projector.On(fold[event.UsageBalanced]),
		projector.On(fold[event.UsageClosed]),
		projector.On(fold[event.UsageAdjusted]),
		projector.Ignore[event.IncarnationStarted](),
		projector.Ignore[event.IncarnationEnded](),
	},
	Drop:  drop,
	Batch: 4000,
	Pace:  200 * time.Millisecond, // ticks of one account go together: a row costs more than they do
}

const category = "usage"

// drop takes a contract's period away. When its keys were used last stays: it only ever rises.
func drop(b *projector.Batch, owner string, _ eventstore.Position) {
	stream := strings.TrimPrefix(owner, "/")
	projector.Wipe(b, table.UsagePeriods, "stream", stream)
	if contract, first, ok := ledger.Parse(stream); ok {
		projector.WipeWhere(b, table.UsageLines, "contract = ? and first = ?", contract, first.String())
	}
}

var periods = projector.State[table.UsagePeriod, *period]{
	Table: table.UsagePeriods, Category: category, Open: resume, Close: settle,
}

// period is a stream's state while events of it are folded: its row, its book, and the lines this batch adds.
type period struct {
	row  table.UsagePeriod
	book *ledger.Book
	more ledger.Lines
	uses map[string]table.KeyUse
}

// resume is where the row left off.
func resume(row *table.UsagePeriod) (*period, error) {
	p := &period{book: &ledger.Book{}, more: ledger.Lines{}, uses: map[string]table.KeyUse{}}
	if row == nil {
		return p, nil
	}
	p.row = *row
	var balance event.UsageBalanced
	if err := json.Unmarshal([]byte(row.Book), &balance); err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	p.book = ledger.Resume(balance)
	if row.Closed != 0 { // which a balance does not tell
		p.book.Apply(event.UsageClosed{}, row.Closed.Time())
	}
	return p, nil
}

// fold applies an event to its stream's book and keeps what that comes to.
func fold[E event.Event](b *projector.Batch, e E, r projector.Record) {
	p := periods.Of(b, r)
	verdict := p.book.Apply(e, r.Time)
	p.row.Revision = int64(r.Revision)
	if verdict != ledger.Counts {
		return
	}
	p.more.Apply(e, verdict)
	switch e := event.Event(e).(type) {
	case event.UsageOpened:
		p.row.Stream, p.row.Opened = r.Stream, table.At(r.Time)
	case event.UsageTicked:
		p.use(e.Counts, table.At(r.Time))
	case event.UsageClosed:
		p.row.Closed, p.row.Total, p.row.Lines, p.row.Digest = table.At(r.Time), e.Total, e.Lines, fmt.Sprintf("%x", e.Digest)
	}
}

func (p *period) use(counts []event.UsageCount, at table.Instant) {
	for _, c := range counts {
		if at > p.uses[c.Key].Last { // the log's clock may be set back
			p.uses[c.Key] = table.KeyUse{Key: c.Key, Account: c.Account, Last: at}
		}
	}
}

// settle writes what a batch did to a period. Of a stream that was never opened there is nothing to keep.
func settle(b *projector.Batch, _ string, p *period) error {
	if p.row.Stream == "" {
		return nil
	}
	balance, err := json.Marshal(p.book.Balance(p.row.Revision))
	if err != nil {
		return err
	}
	p.row.Book, p.row.Contract, p.row.Used = string(balance), p.book.Contract, p.book.Used(p.book.Contract)
	p.row.First, p.row.Next = p.book.Period.First.String(), p.book.Period.Next.String()
	p.row.Cap, _, _ = p.book.Cap(p.book.Contract)
	projector.Put(b, table.UsagePeriods, p.row)
	for at, requests := range p.more {
		projector.Add(b, table.UsageLines, table.UsageLine{
			Account: at.Account, First: p.row.First, Contract: p.row.Contract, Day: at.Day.String(),
			Key: at.Key, Endpoint: at.Endpoint, Requests: requests,
		})
	}
	for _, use := range p.uses {
		projector.Add(b, table.KeyUses, use)
	}
	return nil
}
