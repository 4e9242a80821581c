// Package usage fills the tables of counted requests from the usage log. Only schemas/usagefold decides whether an event
// counts. A period is counted in its own stream or in one that the periods of several contracts share; the rows are the same.
//
// For each batch loadState reads what its events need: the states of periods (usagefold.PeriodState) and, for shared streams, the
// numbers of keys and endpoints and the last sequences of instances (usagefold.SharedPart). foldEvent applies each event to that
// state and collects what counts. saveState writes the state along with the lines that the batch adds. So lines, state and
// checkpoint always belong to the same position.
//
//	rows ──loadState──► batchState ──foldEvent──► period: row, state, added lines ──saveState──► rows
//	                        └─ sharedStream (shared.go)
//
// An event of a shared stream that cannot be decoded stops the period that it names, and the whole stream only if it names none.
package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
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
	StreamStates:  []projector.AnyStreamState{states},
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
		projector.On(foldEvent[event.UsageMonthOpened]),
		projector.On(foldEvent[event.UsageCountedIn]),
		projector.On(foldEvent[event.UsageLinesStated]),
		projector.On(foldEvent[event.SharedUsageCapSet]),
		projector.On(foldEvent[event.SharedUsageKeyRevoked]),
		projector.On(foldEvent[event.SharedUsageAccountClosed]),
		projector.On(foldEvent[event.SharedUsageTicked]),
		projector.On(foldEvent[event.SharedUsageRefunded]),
		projector.On(foldEvent[event.SharedUsageEnded]),
		projector.On(foldEvent[event.SharedUsageSnapshotTaken]),
	},
	DropRows:     dropRows,
	SharedOwner:  sharedOwner,
	NeedsRebuild: needsRebuild,
	BatchSize:    4000,
	MinInterval:  time.Second, // ticks of one account share a row, which costs more than they do
}

// dropRows deletes a contract's period that is counted in its own stream. The time of its keys' last use stays, since it only ever
// rises. The owner is a slash and the stream's name (table.StreamOwner): no account owns a usage stream.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	stream := strings.TrimPrefix(owner, "/")
	projector.DeleteRows(b, table.UsagePeriods, "stream", stream)
	if contract, first, ok := usagefold.ParseStreamName(stream); ok {
		projector.DeleteRowsWhere(b, table.UsageLines, "contract = ? and first = ?", contract, first.String())
	}
}

// sharedOwner is what an event of a shared stream stops that cannot be decoded: the period that it names, or the stream.
func sharedOwner(r eventstore.RecordedEvent) string {
	if _, _, isShared := usagefold.ParseSharedStreamName(r.Stream); !isShared {
		return ""
	}
	named, ok := event.DecodePeriodRef(r.Data)
	if !ok {
		return table.StreamOwner(r.Stream)
	}
	return table.StreamOwner(usagefold.StreamName(named.Contract, named.First))
}

// needsRebuild reports whether an owner is a shared stream, or a period that is counted in one.
func needsRebuild(ctx context.Context, q sqldb.Querier, owner string) (bool, error) {
	stream := strings.TrimPrefix(owner, "/")
	if _, _, isShared := usagefold.ParseSharedStreamName(stream); isShared {
		return true, nil
	}
	rows, err := sqldb.LoadByKeys(ctx, q, table.UsageCountedIns, []string{stream})
	return len(rows) > 0, err
}

// states is the state of a batch.
var states = projector.BatchState[*batchState]{Name: "usage", Load: loadState, Save: saveState}

// batchState is what the events of a batch need, and what they change.
type batchState struct {
	periods   map[string]*period // by own stream
	byRef     map[event.PeriodRef]*period
	countedIn map[string]*table.UsageCountedIn // by own stream
	shared    map[string]*sharedStream         // by name
}

// period is a period while events of a batch are folded: its row, the state of its fold, and the lines that the batch adds.
type period struct {
	ref        event.PeriodRef
	row        table.UsagePeriod
	state      *usagefold.PeriodState
	addedLines usagefold.Lines
	sharedIn   map[usagefold.LineKey]revisions // where the events of lines are in the shared stream
	keyUses    map[string]table.KeyUse
	isChanged  bool
	isStopped  bool // the events of a shared stream about it change nothing
}

// loadState reads what events need.
func loadState(ctx context.Context, q sqldb.Querier, events iter.Seq2[event.Event, projector.Record]) (*batchState, error) {
	s := &batchState{periods: map[string]*period{}, byRef: map[event.PeriodRef]*period{}, countedIn: map[string]*table.UsageCountedIn{}, shared: map[string]*sharedStream{}}
	for e, r := range events {
		if shared := s.findShared(r.Stream); shared != nil {
			shared.needs.Add(e)
		}
	}
	own := make([]string, 0, len(s.periods)) // that may be counted in a shared stream
	for stream := range s.periods {
		own = append(own, stream)
	}
	for _, shared := range s.shared {
		for ref := range shared.needs.Periods {
			own = append(own, usagefold.StreamName(ref.Contract, ref.First))
		}
	}
	rows, err := sqldb.LoadByKeys(ctx, q, table.UsageCountedIns, own)
	for i := range rows {
		s.countedIn[rows[i].Stream] = &rows[i]
	}
	if err == nil && len(s.shared) > 0 {
		err = s.loadShared(ctx, q)
	}
	if err == nil {
		err = s.loadPeriods(ctx, q)
	}
	return s, err
}

// findShared returns the shared stream of a name. It is nil for other streams, whose period it adds.
func (s *batchState) findShared(stream string) *sharedStream {
	if shared := s.shared[stream]; shared != nil || s.periods[stream] != nil {
		return shared
	}
	if _, _, isShared := usagefold.ParseSharedStreamName(stream); isShared {
		s.shared[stream] = &sharedStream{name: stream}
		return s.shared[stream]
	}
	s.addPeriod(stream)
	return nil
}

// addPeriod adds the period of an own stream, in the state that it has without a row.
func (s *batchState) addPeriod(stream string) *period {
	p := &period{state: &usagefold.PeriodState{}}
	s.periods[stream] = p
	if contract, first, ok := usagefold.ParseStreamName(stream); ok {
		p.ref = event.PeriodRef{Contract: contract, First: first}
		s.byRef[p.ref] = p
	}
	return p
}

// loadPeriods restores the periods from their rows.
func (s *batchState) loadPeriods(ctx context.Context, q sqldb.Querier) error {
	streams := make([]string, 0, len(s.periods))
	for stream := range s.periods {
		streams = append(streams, stream)
	}
	rows, err := sqldb.LoadByKeys(ctx, q, table.UsagePeriods, streams)
	if err != nil {
		return err
	}
	for _, row := range rows {
		p := s.periods[row.Stream]
		if err := p.restore(row); err != nil {
			return fmt.Errorf("%s: %w", row.Stream, err)
		}
		if shared := s.shared[row.Shared]; shared != nil && !p.isStated() {
			shared.part.AddPeriod(p.ref, p.state)
		}
	}
	return nil
}

// restore sets the state to that of a row.
func (p *period) restore(row table.UsagePeriod) error {
	var snapshot event.UsageSnapshotTaken
	if err := json.Unmarshal([]byte(row.PeriodState), &snapshot); err != nil {
		return fmt.Errorf("state of the period: %w", err)
	}
	p.row, p.state = row, usagefold.RestorePeriod(snapshot)
	if p.isStated() {
		p.state = &usagefold.PeriodState{}
		p.state.Apply(event.UsageLinesStated{
			PeriodRef: p.ref, Next: snapshot.Next, Used: snapshot.Used, Accounts: snapshot.Accounts,
		}, row.Ended.Time())
	}
	if row.Ended != 0 { // a snapshot holds neither
		p.state.Apply(event.SharedUsageEnded{}, row.Ended.Time())
	}
	if row.Closed != 0 {
		p.state.Apply(event.UsageClosed{}, row.Closed.Time())
	}
	return nil
}

// isStated reports whether the period has what its own stream states, without a shared stream that has opened it.
func (p *period) isStated() bool { return p.row.Stream != "" && p.row.Opened == 0 }

// foldEvent applies an event to the state of its stream, and collects what it changes if it counts.
func foldEvent[E event.Event](b *projector.Changeset, e E, r projector.Record) {
	states.Of(b).apply(e, r)
}

// apply is foldEvent for events of any type.
func (s *batchState) apply(e event.Event, r projector.Record) {
	if shared := s.shared[r.Stream]; shared != nil {
		s.applyShared(shared, e, r)
		return
	}
	p := s.periods[r.Stream]
	if counted, ok := e.(event.UsageCountedIn); ok && r.Revision == 0 {
		s.countedIn[r.Stream] = &table.UsageCountedIn{Stream: r.Stream, Shared: counted.Stream}
	}
	if in := s.countedIn[r.Stream]; in != nil {
		in.Revision, p.row.OwnRevision, p.isChanged = int64(r.Revision), int64(r.Revision), true
		if !usagefold.CountsInOwnStream(p.state, e) {
			return
		}
		p.collect(e, p.state.Apply(e, r.Time), r)
		return
	}
	p.row.Revision = int64(r.Revision)
	p.collect(e, p.state.Apply(e, r.Time), r)
}

// collect collects what an event changes, of a type that the period's own stream holds if it is counted there.
func (p *period) collect(e event.Event, verdict usagefold.Verdict, r projector.Record) {
	if p.isChanged = true; verdict != usagefold.Counted {
		return
	}
	if p.addedLines == nil {
		p.addedLines, p.keyUses = usagefold.Lines{}, map[string]table.KeyUse{}
	}
	p.addedLines.Apply(e, verdict)
	switch e := e.(type) {
	case event.UsageOpened:
		p.row.Stream, p.row.Opened = usagefold.StreamName(e.Contract, e.First), table.InstantOf(r.Time)
	case event.UsageTicked:
		p.recordKeyUses(e.Counts, table.InstantOf(r.Time))
	case event.SharedUsageEnded:
		p.row.Ended = table.InstantOf(r.Time)
	case event.UsageLinesStated:
		p.row.Stream, p.row.Ended = r.Stream, table.InstantOf(r.Time)
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

// saveState puts the rows after a batch.
func saveState(b *projector.Changeset, s *batchState) error {
	for stream, p := range s.periods {
		if in := s.countedIn[stream]; in != nil && p.isChanged {
			projector.PutRow(b, table.UsageCountedIns, *in)
			p.row.Shared, p.row.OwnRevision = in.Shared, in.Revision
		}
		if err := p.save(b); err != nil {
			return fmt.Errorf("%s: %w", stream, err)
		}
	}
	for _, shared := range s.shared {
		shared.save(b)
	}
	return nil
}

// save puts the rows of a period after a batch. A period that was never opened gets no rows. Lines and key uses are merged into the
// existing rows: requests are added, and the last use only rises.
func (p *period) save(b *projector.Changeset) error {
	if p.row.Stream == "" || !p.isChanged {
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
		p.mergeLine(b, at, requests)
	}
	for at := range p.sharedIn {
		if _, isAdded := p.addedLines[at]; !isAdded { // refunded in the same batch
			p.mergeLine(b, at, 0)
		}
	}
	for _, use := range p.keyUses {
		projector.MergeRow(b, table.KeyUses, use)
	}
	return nil
}

// mergeLine adds requests to the row of a line.
func (p *period) mergeLine(b *projector.Changeset, at usagefold.LineKey, requests int64) {
	in := p.sharedIn[at]
	projector.MergeRow(b, table.UsageLines, table.UsageLine{
		Account: at.Account, First: p.row.First, Contract: p.row.Contract, Day: at.Day.String(),
		Key: at.Key, Endpoint: at.Endpoint, Requests: requests, SharedFrom: in.from, SharedTo: in.to,
	})
}
