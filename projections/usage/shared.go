package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// sharedStream is a stream that several periods share while events of a batch are folded.
type sharedStream struct {
	name   string
	needs  usagefold.SharedNeeds
	part   *usagefold.SharedPart
	row    table.SharedUsageStream
	status table.AccountStatus
	isNew  bool // the status has a new note
}

// loadShared restores what the batch needs of its shared streams, and adds the periods that their events are about.
func (s *batchState) loadShared(ctx context.Context, q sqldb.Querier) error {
	rows, err := sqldb.LoadByKeys(ctx, q, table.SharedUsageStreams, slices.Sorted(maps.Keys(s.shared)))
	if err != nil {
		return err
	}
	for _, row := range rows {
		s.shared[row.Stream].row = row
	}
	for _, shared := range s.shared {
		shared.row.Stream = shared.name
		shared.part = usagefold.NewSharedPart(shared.row.Keys, shared.row.Endpoints)
		if err := shared.load(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", shared.name, err)
		}
		for ref := range shared.needs.Periods {
			if s.byRef[ref] == nil {
				s.addPeriod(usagefold.StreamName(ref.Contract, ref.First))
			}
		}
	}
	return s.markStopped(ctx, q)
}

// markStopped marks the periods that are stopped.
func (s *batchState) markStopped(ctx context.Context, q sqldb.Querier) error {
	stopped, err := sqldb.Select(ctx, q, table.AccountStatuses, "where kind <> ''")
	for _, status := range stopped {
		if p := s.periods[strings.TrimPrefix(status.Account, "/")]; p != nil {
			p.isStopped = status.IsStopped()
		}
	}
	return err
}

// load restores the numbers and sequences that the needs name, and adds the periods of numbered keys to the needs.
func (s *sharedStream) load(ctx context.Context, q sqldb.Querier) error {
	var ids, names, sequences []string
	for number := range s.needs.KeyNumbers {
		ids = append(ids, s.numberID("k", number))
	}
	for number := range s.needs.EndpointNumbers {
		ids = append(ids, s.numberID("e", number))
	}
	for key := range s.needs.NamedKeys {
		names = append(names, key.Key)
	}
	for endpoint := range s.needs.NamedEndpoints {
		names = append(names, endpoint)
	}
	for id := range s.needs.Instances {
		sequences = append(sequences, table.SharedUsageID(s.name, id))
	}
	numbered, err := sqldb.LoadByKeys(ctx, q, table.SharedUsageNumbers, ids)
	if err != nil {
		return err
	}
	named, err := sqldb.LoadByColumn(ctx, q, table.SharedUsageNumbers, "name", names) // of all streams
	if err != nil {
		return err
	}
	if err := s.addNumbers(append(numbered, named...)); err != nil {
		return err
	}
	last, err := sqldb.LoadByKeys(ctx, q, table.SharedUsageSequences, sequences)
	for _, row := range last {
		s.part.AddSequence(row.InstanceID, row.Sequence)
	}
	if err == nil {
		s.status, err = sqldb.LoadAccountStatus(ctx, q, table.StreamOwner(s.name))
	}
	return err
}

// numberID is the key of the row of a number, of a key (k) or an endpoint (e).
func (s *sharedStream) numberID(kind string, number int64) string {
	return table.SharedUsageID(s.name, kind+strconv.FormatInt(number, 10))
}

// addNumbers restores numbers from their rows, without those of other streams.
func (s *sharedStream) addNumbers(rows []table.SharedUsageNumber) error {
	for _, row := range rows {
		switch row.ID {
		case s.numberID("e", row.Number):
			s.part.AddEndpoint(row.Number, row.Name)
		case s.numberID("k", row.Number):
			first, err := plan.ParseDate(row.First)
			if err != nil {
				return err
			}
			key := event.UsedKey{PeriodRef: event.PeriodRef{Contract: row.Contract, First: first}, Account: row.Account, Key: row.Name}
			s.part.AddKey(row.Number, key)
			s.needs.Periods[key.PeriodRef] = true
		}
	}
	return nil
}

// applyShared folds an event of a shared stream. The stream opens only periods whose own stream says that they are counted in it.
func (s *batchState) applyShared(shared *sharedStream, e event.Event, r projector.Record) {
	shared.row.Revision = int64(r.Revision)
	if opened, ok := e.(event.UsageOpened); ok {
		stream := usagefold.StreamName(opened.Contract, opened.First)
		if in := s.countedIn[stream]; in == nil || in.Shared != shared.name || s.periods[stream].isStated() {
			return
		}
	}
	for _, what := range shared.part.Apply(e, r.Time) {
		if what.Verdict == usagefold.Unnumbered {
			shared.noteUnnumbered(what, r)
			continue
		}
		p := s.byRef[what.PeriodRef]
		if p.isStopped || what.State == nil {
			continue
		}
		p.state, p.row.Revision = what.State, int64(r.Revision)
		p.collect(what.Event, what.Verdict, r)
		if what.Verdict == usagefold.Counted {
			p.noteRevision(what.Event, int64(r.Revision))
		}
	}
}

// revisions are those of the first and the last event of a line in a shared stream.
type revisions struct{ from, to int64 }

// noteRevision notes where an event is in the shared stream, for the lines that it changes.
func (p *period) noteRevision(e event.Event, revision int64) {
	switch e := e.(type) {
	case event.UsageTicked:
		p.noteLines(e.Day, e.Counts, revision)
	case event.UsageRefunded:
		p.noteLines(e.Day, e.Counts, revision)
	}
}

func (p *period) noteLines(day plan.Date, counts []event.UsageCount, revision int64) {
	if p.sharedIn == nil {
		p.sharedIn = map[usagefold.LineKey]revisions{}
	}
	for _, c := range counts {
		at := usagefold.LineKey{Day: day, Account: c.Account, Key: c.Key, Endpoint: c.Endpoint}
		in, known := p.sharedIn[at]
		if !known {
			in.from = revision
		}
		in.to = revision
		p.sharedIn[at] = in
	}
}

// noteUnnumbered notes the first event with lines that count nothing, for whoever looks after the service.
func (s *sharedStream) noteUnnumbered(what usagefold.PeriodEvent, r projector.Record) {
	if s.status.Reason != "" {
		return
	}
	lines := len(what.Event.(event.UsageTicked).Counts)
	s.status.Stream, s.status.Revision, s.status.Position = r.Stream, int64(r.Revision), int64(r.Position)
	s.status.Reason = fmt.Sprintf("lines without a key or an endpoint: %d; they count nothing", lines)
	s.isNew = true
}

// save puts the rows of the stream after a batch.
func (s *sharedStream) save(b *projector.Changeset) {
	s.row.Keys, s.row.Endpoints = s.part.Counts()
	projector.PutRow(b, table.SharedUsageStreams, s.row)
	keys, endpoints := s.part.Numbered()
	for _, k := range keys {
		projector.PutRow(b, table.SharedUsageNumbers, table.SharedUsageNumber{
			ID: s.numberID("k", k.Number), Name: k.Value.Key, Account: k.Value.Account, Contract: k.Value.Contract, First: k.Value.First.String(), Number: k.Number,
		})
	}
	for _, e := range endpoints {
		projector.PutRow(b, table.SharedUsageNumbers, table.SharedUsageNumber{ID: s.numberID("e", e.Number), Name: e.Value, Number: e.Number})
	}
	for id := range s.needs.Instances {
		projector.PutRow(b, table.SharedUsageSequences, table.SharedUsageSequence{
			ID: table.SharedUsageID(s.name, id), InstanceID: id, Sequence: s.part.LastSequence(id),
		})
	}
	if s.isNew {
		projector.PutRow(b, table.AccountStatuses, s.status)
	}
}
