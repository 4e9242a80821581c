package projector

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is a read model as its writer knows it: tables, and a handler for each type of event that changes them. The handlers
// are the subscription: Categories is derived from them.
//
// To add a model: its rows and tables in schemas/table, its handlers in a package next to this one, its line in the
// program's list of models, and its queries in queries. To add an event to a model: one handler.
type Model struct {
	table.ReadModel
	// Handlers must hold at least one handler. A type of the catalog without a handler changes nothing here.
	Handlers []EventHandler
	// IsExhaustive means that every event of the model's categories must have a handler, unless the catalog marks the event
	// as only for the record. A test over the program's list of models checks it with Unhandled.
	IsExhaustive      bool
	NeedsPersonalData bool             // handlers see personal fields; otherwise those are empty
	NeedsReasons      bool             // with NeedsPersonalData, handlers see the reasons in metadata; otherwise those are empty
	OmitsMetadata     bool             // handlers see no metadata, which saves decoding it
	StreamStates      []AnyStreamState // states that handlers ask for: StreamState or BatchState
	// EraseRows removes the personal data of an account from rows written by the streams of other owners, the tokens; nil if
	// there are none. DropRows leaves those rows, so both are called when a stopped account is erased.
	EraseRows func(b *Changeset, account string)
	// DropRows deletes the rows that the streams of one owner (table.StreamOwner) have written, so that a refold can rewrite
	// them. at is the position of the generation. With DropRows an unusable event stops only its account, without it the
	// whole model.
	DropRows func(b *Changeset, owner string, at eventstore.Position)
	// SharedOwner, if not nil, returns what stops at an event of a stream that several owners share, if this program does not know
	// its type or cannot decode its data; "" for other streams. It needs DropRows.
	SharedOwner func(r eventstore.RecordedEvent) (owner string)
	// NeedsRebuild, if not nil, reports whether a refold from the streams of an owner would not be enough, since its rows come from
	// a stream that it shares. A new generation is built then.
	NeedsRebuild func(ctx context.Context, q sqldb.Querier, owner string) (bool, error)
	BatchSize    int // feed.Source.BatchEvents: events after which a transaction ends; 0 means the feed's default
	// MinInterval is the shortest time between two transactions once the model has caught up, unless somebody on this instance awaits
	// a position. See maxSharedInterval for other instances.
	MinInterval time.Duration
	// OwnerTask, if not nil, runs while this instance fills the serving generation. It returns when its context ends.
	OwnerTask func(context.Context, OwnedGeneration)
}

// Record is an event with its log position and its metadata. A staged event has the position and the metadata of the commit
// that made it real.
type Record struct {
	eventstore.RecordedEvent
	Meta         eventstore.Metadata
	Commit       event.StagedCommit // the commit that made it real; nil for an event on the log itself
	StagedNumber int                // its number among the events of that commit, from 1; 0 for an event on the log itself
}

// Account is the id of the account whose stream the event is in.
func (r Record) Account() string { return eventstore.EntityID(r.Stream) }

// EventHandler changes rows for one type of event, or for every type that has no handler of its own.
type EventHandler struct {
	eventType  string   // "" for every type
	categories []string // that the handler subscribes to
	isSealed   bool     // the handler needs no personal fields, whatever its model says
	apply      func(*Changeset, event.Event, Record)
}

// On is the handler of events of type E, a struct of the catalog. An event that only commits make real adds no category to
// the subscription.
func On[E event.Event](apply func(*Changeset, E, Record)) EventHandler {
	var e E
	h := EventHandler{eventType: e.EventType(), apply: func(b *Changeset, e event.Event, r Record) { apply(b, e.(E), r) }}
	if t, ok := event.Lookup(h.eventType); ok && !isStaged(t) {
		h.categories = []string{t.Category()}
	}
	return h
}

// OnSealed is On for a handler that needs no personal fields although its model does: they are empty, and no vault is asked
// to open them.
func OnSealed[E event.Event](apply func(*Changeset, E, Record)) EventHandler {
	h := On(apply)
	h.isSealed = true
	return h
}

// OnAnyOther is the handler of every event of some categories that has no handler of its own.
func OnAnyOther(apply func(*Changeset, event.Event, Record), categories ...string) EventHandler {
	return EventHandler{categories: categories, apply: apply}
}

// Categories are the categories of streams that the handlers subscribe to, sorted. A category whose events only commits make
// real (the staged rows of a sync) is not included: such events come with their commit.
//
// The subscription is by category and never by type, so that an event whose type is not in this program's catalog is seen and
// stops the projection: a newer program may have written it.
func (m Model) Categories() eventstore.Filter {
	var all []string
	for _, h := range m.Handlers {
		all = append(all, h.categories...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// handlerFor finds the handler of a type of event. Events of an earlier version are of the latest version once decoded.
func (m Model) handlerFor(eventType string) (EventHandler, bool) {
	if t, ok := event.Lookup(eventType); ok {
		eventType = t.Latest()
	}
	for _, wanted := range []string{eventType, ""} {
		if i := slices.IndexFunc(m.Handlers, func(h EventHandler) bool { return h.eventType == wanted }); i >= 0 {
			return m.Handlers[i], true
		}
	}
	return EventHandler{}, false
}

// Unhandled returns the types of the model's categories, and of the events that their commits make real, that have no
// handler. Types that are only for the record are left out.
func (m Model) Unhandled() []string {
	subscribed := m.Categories()
	categories := slices.Clone(subscribed)
	for _, t := range event.All() {
		if staged, ok := stagedCategory(t); ok && slices.Contains(subscribed, t.Category()) {
			categories = append(categories, staged)
		}
	}
	var names []string
	for _, t := range event.All() {
		if _, ok := m.handlerFor(t.Name); !ok && !t.IsRecordOnly() && slices.Contains(categories, t.Category()) {
			names = append(names, t.Name)
		}
	}
	return names
}

// isStaged reports whether events of a type are made real by commits of another category.
func isStaged(t event.Type) bool {
	return slices.ContainsFunc(event.All(), func(commit event.Type) bool {
		category, ok := stagedCategory(commit)
		return ok && category == t.Category()
	})
}

// stagedCategory is the category of the events that a commit of type t makes real. It is false if t is not a commit.
func stagedCategory(t event.Type) (category string, ok bool) {
	e, ok := reflect.Zero(t.GoType).Interface().(event.StagedCommit)
	if ok {
		stream, _, _ := e.StagedStream()
		category, _, _ = strings.Cut(stream, "-")
	}
	return category, ok
}

// foldEvents applies decoded events to a new changeset: states of streams are loaded before and saved after. correctedOwners
// are the owners of streams that are folded without the events that corrections void.
func (m Model) foldEvents(ctx context.Context, tx *sqldb.Tx, decoded []decodedEvent, correctedOwners map[string]bool) (*Changeset, error) {
	b := newChangeset()
	b.correctedOwners = correctedOwners
	for _, s := range m.StreamStates {
		if err := s.loadStates(ctx, tx, b, decoded); err != nil {
			return nil, err
		}
	}
	if err := b.applyEvents(decoded); err != nil {
		return nil, err
	}
	for _, s := range m.StreamStates {
		if err := s.saveStates(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// applyEvents runs the handlers. A handler that panics stops the projection, not the program.
func (b *Changeset) applyEvents(decoded []decodedEvent) (err error) {
	var e decodedEvent
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s@%d: %v", e.record.Stream, e.record.Revision, cause)
		}
	}()
	for _, e = range decoded {
		if e.handler.apply != nil {
			b.toleratesMissing = len(b.correctedOwners) > 0 && b.correctedOwners[table.StreamOwner(e.record.Stream)]
			e.handler.apply(b, e.event, e.record)
		}
	}
	return nil
}

// StreamState keeps what the handlers of a model must know about a stream before they decide, in the rows of a table whose
// key is the stream. The rows of a batch are read in its transaction before the first event is applied, and written with all
// other rows. No state outlives the batch, so it cannot get out of step with the rows.
//
// R is the row. S is a pointer, so that a change a handler makes to the state is visible at the next event.
type StreamState[R, S any] struct {
	Table    table.Table[R]
	Category string // of the streams that have a state
	// Restore makes the state from a row, or the state of a stream that has no row yet when row is nil.
	Restore func(row *R) (S, error)
	// Save writes rows for the state after the last event of the batch.
	Save func(b *Changeset, stream string, s S) error
}

// ForEvent is the state of the event's stream, the zero S (nil) if the batch holds no event of that stream. The StreamState
// must be among the model's StreamStates.
func (k StreamState[R, S]) ForEvent(b *Changeset, r Record) S {
	return b.states[k.Table.Name].(statesByStream[S])[r.Stream]
}

// statesByStream holds the states of the streams that a batch touches.
type statesByStream[S any] map[string]S

// BatchState is a StreamState for a model whose handlers need more than one row for each stream: what a batch needs follows from its
// events. S is a pointer, so that a change a handler makes to the state is visible at the next event.
type BatchState[S any] struct {
	Name string // of no table
	// Load makes the state that the events need. It reads rows in the transaction of the batch.
	Load func(ctx context.Context, q sqldb.Querier, events iter.Seq2[event.Event, Record]) (S, error)
	// Save writes rows for the state after the last event of the batch.
	Save func(b *Changeset, s S) error
}

// Of is the state of the batch. The BatchState must be among the model's StreamStates.
func (k BatchState[S]) Of(b *Changeset) S { return b.states[k.Name].(S) }

func (k BatchState[S]) loadStates(ctx context.Context, tx *sqldb.Tx, b *Changeset, decoded []decodedEvent) error {
	s, err := k.Load(ctx, tx, func(yield func(event.Event, Record) bool) {
		for _, d := range decoded {
			if d.handler.apply != nil && !yield(d.event, d.record) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("state of %s: %w", k.Name, err)
	}
	b.states[k.Name] = s
	return nil
}

func (k BatchState[S]) saveStates(b *Changeset) error { return k.Save(b, k.Of(b)) }

// AnyStreamState is a StreamState or BatchState of any state. foldEvents calls loadStates before the handlers and saveStates after
// them, in the same transaction.
type AnyStreamState interface {
	loadStates(context.Context, *sqldb.Tx, *Changeset, []decodedEvent) error
	saveStates(*Changeset) error
}

// loadStates restores the states of the streams of k's category that have decoded events.
func (k StreamState[R, S]) loadStates(ctx context.Context, tx *sqldb.Tx, b *Changeset, decoded []decodedEvent) error {
	states, filter := statesByStream[S]{}, eventstore.Filter{k.Category}
	for _, e := range decoded {
		if filter.Matches(e.record.Stream) {
			states[e.record.Stream] = *new(S)
		}
	}
	rows, err := sqldb.LoadByKeys(ctx, tx, k.Table, slices.Sorted(maps.Keys(states)))
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

// saveStates calls Save for each stream, in no particular order.
func (k StreamState[R, S]) saveStates(b *Changeset) error {
	for stream, s := range b.states[k.Table.Name].(statesByStream[S]) {
		if err := k.Save(b, stream, s); err != nil {
			return fmt.Errorf("state of %s: %w", stream, err)
		}
	}
	return nil
}
