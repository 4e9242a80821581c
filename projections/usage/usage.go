// Package usage fills the tables of counted requests from the usage log. Only schemas/usagefold decides whether an event
// counts.
//
// For each batch restorePeriod reads the state of a stream's period (usagefold.PeriodState) from its row. foldEvent applies
// each event to that state and collects what counts. savePeriod writes the state along with the lines that the batch adds. So
// lines, state and checkpoint always belong to the same position.
package usage

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// Model is the read model of usage. The usage log need not be the log of accounts. Starts and ends of instances are on
// it too, in a category that this model does not read.
var Model = projector.Model{
	ReadModel:     table.UsageModel,
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
	},
	DropRows:    dropRows,
	BatchSize:   4000,
	MinInterval: time.Second, // ticks of one account share a row, which costs more than they do
}

const usageCategory = "usage"

// dropRows deletes a contract's period. The time of its keys' last use stays, since it only ever rises. The owner is a slash
// and the stream's name (table.StreamOwner): no account owns a usage stream.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	stream := strings.TrimPrefix(owner, "/")
	projector.DeleteRows(b, table.UsagePeriods, "stream", stream)
	if contract, first, ok := usagefold.ParseStreamName(stream); ok {
		projector.DeleteRowsWhere(b, table.UsageLines, "contract = ? and first = ?", contract, first.String())
	}
}

// periodStates keeps the state of each period, by the stream of its contract and month.
var periodStates = projector.StreamState[table.UsagePeriod, *period]{
	Table: table.UsagePeriods, Category: usageCategory, Restore: restorePeriod, Save: savePeriod,
}

// period is a stream's state while events of a batch are folded: its row, the state of its fold, and the lines that the batch
// adds.
type period struct {
	row        table.UsagePeriod
	state      *usagefold.PeriodState
	addedLines usagefold.Lines
	keyUses    map[string]table.KeyUse
}

// restorePeriod makes the state from a stream's row, or an empty one without a row.
func restorePeriod(row *table.UsagePeriod) (*period, error) {
	p := &period{state: &usagefold.PeriodState{}, addedLines: usagefold.Lines{}, keyUses: map[string]table.KeyUse{}}
	if row == nil {
		return p, nil
	}
	p.row = *row
	var snapshot event.UsageSnapshotTaken
	if err := json.Unmarshal([]byte(row.PeriodState), &snapshot); err != nil {
		return nil, fmt.Errorf("state of the period: %w", err)
	}
	p.state = usagefold.RestorePeriod(snapshot)
	if row.Closed != 0 { // a snapshot does not hold it
		p.state.Apply(event.UsageClosed{}, row.Closed.Time())
	}
	return p, nil
}

// foldEvent applies an event to its stream's state, and collects what it changes if it counts.
func foldEvent[E event.Event](b *projector.Changeset, e E, r projector.Record) {
	p := periodStates.ForEvent(b, r)
	verdict := p.state.Apply(e, r.Time)
	p.row.Revision = int64(r.Revision)
	if verdict != usagefold.Counted {
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

// recordKeyUses notes when keys were last used, which never goes back.
func (p *period) recordKeyUses(counts []event.UsageCount, at table.Instant) {
	for _, c := range counts {
		if at > p.keyUses[c.Key].LastUsed { // the log's clock may have been set back
			p.keyUses[c.Key] = table.KeyUse{Key: c.Key, Account: c.Account, LastUsed: at}
		}
	}
}

// savePeriod puts the rows of a period after a batch. A stream that was never opened gets no rows. Lines and key uses are
// merged into the existing rows: requests are added, and the last use only rises.
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
