// Package usage fills the tables of what was counted, from the log of usage. Whether an event counts is what
// schemas/ledger says and nothing else: each stream's book is kept beside its lines and folded on, so that lines, book
// and checkpoint are always of the same place in the log.
package usage

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
	ReadModel:     table.UsageModel,
	Categories:    eventstore.Filter{usageCategory, "incarnation"},
	OmitsMetadata: true,
	StreamStates:  []projector.AnyStreamState{periodStates},
	Handlers: []projector.EventHandler{
		projector.On(foldEvent[event.UsageOpened]),
		projector.On(foldEvent[event.UsageCapSet]),
		projector.On(foldEvent[event.UsageKeyRevoked]),
		projector.On(foldEvent[event.UsageAccountClosed]),
		projector.On(foldEvent[event.UsageTicked]),
		projector.On(foldEvent[event.UsageRefunded]),
		projector.On(foldEvent[event.UsageSnapshotTaken]),
		projector.On(foldEvent[event.UsageClosed]),
		projector.On(foldEvent[event.UsageAdjusted]),
		projector.Ignore[event.InstanceStarted](),
		projector.Ignore[event.InstanceEnded](),
	},
	DropRows:    dropRows,
	BatchSize:   4000,
	MinInterval: 200 * time.Millisecond, // ticks of one account go together: a row costs more than they do
}

const usageCategory = "usage"

// dropRows takes a contract's period away. When its keys were used last stays: it only ever rises.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	stream := strings.TrimPrefix(owner, "/")
	projector.DeleteRows(b, table.UsagePeriods, "stream", stream)
	if contract, first, ok := ledger.ParseStreamName(stream); ok {
		projector.DeleteRowsWhere(b, table.UsageLines, "contract = ? and first = ?", contract, first.String())
	}
}

var periodStates = projector.StreamState[table.UsagePeriod, *period]{
	Table: table.UsagePeriods, Category: usageCategory, Restore: restorePeriod, Save: savePeriod,
}

// period is a stream's state while events of it are folded: its row, its book, and the lines this batch adds.
type period struct {
	row        table.UsagePeriod
	state      *ledger.PeriodState
	addedLines ledger.Lines
	keyUses    map[string]table.KeyUse
}

// restorePeriod is where the row left off.
func restorePeriod(row *table.UsagePeriod) (*period, error) {
	p := &period{state: &ledger.PeriodState{}, addedLines: ledger.Lines{}, keyUses: map[string]table.KeyUse{}}
	if row == nil {
		return p, nil
	}
	p.row = *row
	var snapshot event.UsageSnapshotTaken
	if err := json.Unmarshal([]byte(row.PeriodState), &snapshot); err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	p.state = ledger.RestorePeriod(snapshot)
	if row.Closed != 0 { // which a balance does not tell
		p.state.Apply(event.UsageClosed{}, row.Closed.Time())
	}
	return p, nil
}

// foldEvent applies an event to its stream's book and keeps what that comes to.
func foldEvent[E event.Event](b *projector.Changeset, e E, r projector.Record) {
	p := periodStates.ForEvent(b, r)
	verdict := p.state.Apply(e, r.Time)
	p.row.Revision = int64(r.Revision)
	if verdict != ledger.Counted {
		return
	}
	p.addedLines.Apply(e, verdict)
	switch e := event.Event(e).(type) {
	case event.UsageOpened:
		p.row.Stream, p.row.Opened = r.Stream, table.InstantOf(r.Time)
	case event.UsageTicked:
		p.recordKeyUses(e.Counts, table.InstantOf(r.Time))
	case event.UsageClosed:
		p.row.Closed, p.row.Total, p.row.Lines, p.row.Digest = table.InstantOf(r.Time), e.Total, e.LineCount, fmt.Sprintf("%x", e.Digest)
	}
}

func (p *period) recordKeyUses(counts []event.UsageCount, at table.Instant) {
	for _, c := range counts {
		if at > p.keyUses[c.Key].LastUsed { // the log's clock may be set back
			p.keyUses[c.Key] = table.KeyUse{Key: c.Key, Account: c.Account, LastUsed: at}
		}
	}
}

// savePeriod writes what a batch did to a period. Of a stream that was never opened there is nothing to keep.
func savePeriod(b *projector.Changeset, _ string, p *period) error {
	if p.row.Stream == "" {
		return nil
	}
	snapshot, err := json.Marshal(p.state.Snapshot(p.row.Revision))
	if err != nil {
		return err
	}
	p.row.PeriodState, p.row.Contract, p.row.Used = string(snapshot), p.state.Contract, p.state.Used(p.state.Contract)
	p.row.First, p.row.Next = p.state.Period.First.String(), p.state.Period.Next.String()
	p.row.Cap, _, _ = p.state.Cap(p.state.Contract)
	projector.PutRow(b, table.UsagePeriods, p.row)
	for at, requests := range p.addedLines {
		projector.MergeRow(b, table.UsageLines, table.UsageLine{
			Account: at.Account, First: p.row.First, Contract: p.row.Contract, Day: at.Day.String(),
			Key: at.Key, Endpoint: at.Endpoint, Requests: requests,
		})
	}
	for _, use := range p.keyUses {
		projector.MergeRow(b, table.KeyUses, use)
	}
	return nil
}
