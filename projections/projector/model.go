// Package projector fills read models from the log. A read model is data: its tables, the categories it reads, and a rule
// for each event of theirs. Rows and checkpoint change in one transaction, by one instance at a time; what
// cannot go on stops, says why, and resumes: no event is ever skipped. An event that cannot be used stops its account
// alone, until the account's rows are written again from its streams.
//
//	feed ──> lane.take ──> Model.facts ──> filterFacts ──> Model.fold ──> rows, checkpoint
//	                                        └> account_status ──> refold ──> rows of one account
package projector

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is a read model as its writer knows it. To add one: its rows and tables in schemas/table, its rules in a package
// beside this one, its line in the program's list of models, and its questions in queries. To add an event to one: a rule.
type Model struct {
	table.ReadModel
	Categories        eventstore.Filter
	NeedsPersonalData bool // its rules see personal fields; without it those are empty
	OmitsMetadata     bool // its rules see no envelopes
	StreamStates      []AnyStreamState
	Handlers          []EventHandler
	// DropRows takes the rows of one account away, for them to be written again from its streams: those that events of the
	// streams of an owner (see table.OwnerOf) have written. at is how far the copy is. A model without it stops as a whole
	// where one with it stops an account.
	DropRows    func(b *Changeset, owner string, at eventstore.Position)
	BatchSize   int           // events that go into one transaction while it catches up; 0 for the feed's own number
	MinInterval time.Duration // least time between two transactions after that
	// OwnerTask, if there is one, runs while this instance fills the copy that serves, and returns when its context ends.
	OwnerTask func(context.Context, OwnedGeneration)
}

// Record is an event in its place, with its envelope. One that was staged is in the place of the event that made it real, and
// bears its envelope.
type Record struct {
	eventstore.RecordedEvent
	Meta         eventstore.Metadata
	Commit       event.StagedCommit // the event that made it real, nil for one that stands on the log itself
	StagedNumber int                // which of those that were made real with it, from 1; 0 for one that stands on the log itself
}

// EventHandler says what becomes of one type of event, or of every one.
type EventHandler struct {
	eventType string // "" for every event
	apply     func(*Changeset, event.Event, Record)
}

// On is what an event does to the rows.
func On[E event.Event](apply func(*Changeset, E, Record)) EventHandler {
	var e E
	return EventHandler{e.EventType(), func(b *Changeset, e event.Event, r Record) { apply(b, e.(E), r) }}
}

// Ignore says that an event changes nothing here.
func Ignore[E event.Event]() EventHandler {
	var e E
	return EventHandler{e.EventType(), func(*Changeset, event.Event, Record) {}}
}

// OnAnyOther is what every event of the catalog does that has no rule of its own.
func OnAnyOther(apply func(*Changeset, event.Event, Record)) EventHandler {
	return EventHandler{"", apply}
}

// handlerFor is the rule for an event.
func (m Model) handlerFor(name string) (EventHandler, bool) {
	for _, eventType := range []string{name, ""} {
		if i := slices.IndexFunc(m.Handlers, func(r EventHandler) bool { return r.eventType == eventType }); i >= 0 {
			return m.Handlers[i], true
		}
	}
	return EventHandler{}, false
}

// Unhandled are the events of the model's categories that it has no rule for, and those that such events make real.
func (m Model) Unhandled() []string {
	categories := slices.Clone(m.Categories)
	for _, t := range event.All() {
		if category, ok := stagedCategory(t); ok && slices.Contains(m.Categories, t.Category()) {
			categories = append(categories, category)
		}
	}
	var names []string
	for _, t := range event.All() {
		if _, ok := m.handlerFor(t.Name); !ok && slices.Contains(categories, t.Category()) {
			names = append(names, t.Name)
		}
	}
	return names
}

// decodedEvent is an event with what becomes of it.
type decodedEvent struct {
	handler       EventHandler
	event         event.Event
	record        Record
	stopErr       error // why it stops its account, nil for one that does not
	isEmptyCommit bool  // it is a commit that makes nothing real, which is passed over
}

// decodeEvent is an event as the model sees it. One of a type that the catalog lacks stops the projection, for it may say
// anything; one of the catalog that the model has no rule for changes nothing.
func (m Model) decodeEvent(ctx context.Context, codec *eventstore.Codec, r eventstore.RecordedEvent) (decodedEvent, error) {
	f := decodedEvent{record: Record{RecordedEvent: r}}
	var err error
	if _, known := event.Lookup(r.Type); !known {
		return f, fmt.Errorf("%s@%d: %w %q", r.Stream, r.Revision, event.ErrUnknownType, r.Type)
	}
	f.handler, _ = m.handlerFor(r.Type)
	if f.handler.apply == nil && !eventstore.IsCorrection(r.Type) {
		return f, nil
	}
	if f.event, err = m.decodePayload(ctx, codec, r); err == nil && !m.OmitsMetadata {
		f.record.Meta, err = r.DecodeMetadata()
	}
	f.isEmptyCommit = eventstore.IsEmptyCommit(f.event)
	if err != nil && m.DropRows != nil {
		return stoppingEvent(r, err)
	}
	return f, err
}

func (m Model) decodePayload(ctx context.Context, codec *eventstore.Codec, r eventstore.RecordedEvent) (event.Event, error) {
	if m.NeedsPersonalData {
		return codec.Decode(ctx, r)
	}
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return nil, err
	}
	return event.MapPersonal(e, func(event.Personal) (event.Personal, error) { return "", nil })
}

// foldEvents is what facts do to the rows. repaired are the owners of streams that are folded without some of their events.
func (m Model) foldEvents(ctx context.Context, tx *sqldb.Tx, decoded []decodedEvent, correctedOwners map[string]bool) (*Changeset, error) {
	b := newChangeset()
	b.correctedOwners = correctedOwners
	for _, s := range m.StreamStates {
		if err := s.open(ctx, tx, b, decoded); err != nil {
			return nil, err
		}
	}
	if err := b.applyEvents(decoded); err != nil {
		return nil, err
	}
	for _, s := range m.StreamStates {
		if err := s.close(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// applyEvents runs the rules. One that panics stops the projection, not the program.
func (b *Changeset) applyEvents(decoded []decodedEvent) (err error) {
	var f decodedEvent
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s@%d: %v", f.record.Stream, f.record.Revision, cause)
		}
	}()
	for _, f = range decoded {
		if f.handler.apply != nil {
			b.toleratesMissing = len(b.correctedOwners) > 0 && b.correctedOwners[table.StreamOwner(f.record.Stream)]
			f.handler.apply(b, f.event, f.record)
		}
	}
	return nil
}
