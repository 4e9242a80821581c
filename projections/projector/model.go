package projector

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
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

// stagedCategory is the category of the events that those of a type make real.
func stagedCategory(t event.Type) (category string, ok bool) {
	e, ok := reflect.Zero(t.GoType).Interface().(event.StagedCommit)
	if ok {
		stream, _, _ := e.StagedStream()
		category, _, _ = strings.Cut(stream, "-")
	}
	return category, ok
}

// foldEvents is what facts do to the rows. repaired are the owners of streams that are folded without some of their events.
func (m Model) foldEvents(ctx context.Context, tx *table.Tx, decoded []decodedEvent, correctedOwners map[string]bool) (*Changeset, error) {
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

// StreamState is what the rules of a model know of each stream before they decide. It is kept in the rows of a table whose key
// is the stream: those of a batch are read in its transaction before the first event is applied, and what became of
// them is written with everything else. Nothing of it outlives the batch, so there is nothing to go out of step.
type StreamState[R, S any] struct {
	Table    table.Table[R]
	Category string // of the streams that have a state
	// Restore is the state in a row, or that of a stream that has no row yet when the row is nil.
	Restore func(row *R) (S, error)
	// Save puts what is to be written of the state after the last event of the batch.
	Save func(b *Changeset, stream string, s S) error
}

// ForEvent is the state of the stream an event is in.
func (k StreamState[R, S]) ForEvent(b *Changeset, r Record) S {
	return b.states[k.Table.Name].(statesByStream[S])[r.Stream]
}

type statesByStream[S any] map[string]S

// AnyStreamState is a State of whatever types.
type AnyStreamState interface {
	open(context.Context, *table.Tx, *Changeset, []decodedEvent) error
	close(*Changeset) error
}

func (k StreamState[R, S]) open(ctx context.Context, tx *table.Tx, b *Changeset, decoded []decodedEvent) error {
	states, filter := statesByStream[S]{}, eventstore.Filter{k.Category}
	for _, f := range decoded {
		if filter.Matches(f.record.Stream) {
			states[f.record.Stream] = *new(S)
		}
	}
	rows, err := table.LoadByKeys(ctx, tx, k.Table, slices.Sorted(maps.Keys(states)))
	if err != nil {
		return err
	}
	rowsByStream := make(map[string]*R, len(rows))
	for i := range rows {
		rowsByStream[rowKey(k.Table, &rows[i])] = &rows[i]
	}
	for stream := range states {
		if states[stream], err = k.Restore(rowsByStream[stream]); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	b.states[k.Table.Name] = states
	return nil
}

func (k StreamState[R, S]) close(b *Changeset) error {
	for stream, s := range b.states[k.Table.Name].(statesByStream[S]) {
		if err := k.Save(b, stream, s); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	return nil
}
