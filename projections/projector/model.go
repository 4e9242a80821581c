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
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is a read model as its writer knows it. To add one: its rows and tables in schemas/table, its rules in a package
// beside this one, its line in the program's list of models, and its questions in queries. To add an event to one: a rule.
type Model struct {
	table.Model
	Categories eventstore.Filter
	Personal   bool // its rules see personal fields; without it those are empty
	Bare       bool // its rules see no envelopes
	States     []Stateful
	Rules      []Rule
	// Drop takes the rows of one account away, for them to be written again from its streams: those that events of the
	// streams of an owner (see table.OwnerOf) have written. at is how far the copy is. A model without it stops as a whole
	// where one with it stops an account.
	Drop  func(b *Batch, owner string, at eventstore.Position)
	Batch int           // events that go into one transaction while it catches up; 0 for the feed's own number
	Pace  time.Duration // least time between two transactions after that
	// Beside, if there is one, runs while this instance fills the copy that serves, and returns when its context ends.
	Beside func(context.Context, Owned)
}

// Record is an event in its place, with its envelope. One that was staged is in the place of the event that made it real, and
// bears its envelope.
type Record struct {
	eventstore.Recorded
	Meta   eventstore.Metadata
	Commit event.Staged // the event that made it real, nil for one that stands on the log itself
	Nth    int          // which of those that were made real with it, from 1; 0 for one that stands on the log itself
}

// Rule says what becomes of one type of event, or of every one.
type Rule struct {
	name  string // "" for every event
	apply func(*Batch, event.Event, Record)
}

// On is what an event does to the rows.
func On[E event.Event](apply func(*Batch, E, Record)) Rule {
	var e E
	return Rule{e.EventType(), func(b *Batch, e event.Event, r Record) { apply(b, e.(E), r) }}
}

// Ignore says that an event changes nothing here.
func Ignore[E event.Event]() Rule {
	var e E
	return Rule{e.EventType(), func(*Batch, event.Event, Record) {}}
}

// Each is what every event of the catalog does that has no rule of its own.
func Each(apply func(*Batch, event.Event, Record)) Rule { return Rule{"", apply} }

// rule is the rule for an event.
func (m Model) rule(name string) (Rule, bool) {
	for _, wanted := range []string{name, ""} {
		if i := slices.IndexFunc(m.Rules, func(r Rule) bool { return r.name == wanted }); i >= 0 {
			return m.Rules[i], true
		}
	}
	return Rule{}, false
}

// Unruled are the events of the model's categories that it has no rule for, and those that such events make real.
func (m Model) Unruled() []string {
	wanted := slices.Clone(m.Categories)
	for _, t := range event.All() {
		if category, ok := staging(t); ok && slices.Contains(m.Categories, t.Category()) {
			wanted = append(wanted, category)
		}
	}
	var names []string
	for _, t := range event.All() {
		if _, ok := m.rule(t.Name); !ok && slices.Contains(wanted, t.Category()) {
			names = append(names, t.Name)
		}
	}
	return names
}

// fact is an event with what becomes of it.
type fact struct {
	rule   Rule
	event  event.Event
	record Record
	stop   error // why it stops its account, nil for one that does not
	empty  bool  // it is a commit that makes nothing real, which is passed over
}

// fact is an event as the model sees it. One of a type that the catalog lacks stops the projection, for it may say
// anything; one of the catalog that the model has no rule for changes nothing.
func (m Model) fact(ctx context.Context, codec *eventstore.Codec, r eventstore.Recorded) (fact, error) {
	f := fact{record: Record{Recorded: r}}
	var err error
	if _, known := event.Lookup(r.Type); !known {
		return f, fmt.Errorf("%s@%d: %w %q", r.Stream, r.Revision, event.ErrUnknownType, r.Type)
	}
	f.rule, _ = m.rule(r.Type)
	if f.rule.apply == nil && !eventstore.IsCorrection(r.Type) {
		return f, nil
	}
	if f.event, err = m.decode(ctx, codec, r); err == nil && !m.Bare {
		f.record.Meta, err = r.Meta()
	}
	f.empty = eventstore.IsEmptyCommit(f.event)
	if err != nil && m.Drop != nil {
		return stopFact(r, err)
	}
	return f, err
}

func (m Model) decode(ctx context.Context, codec *eventstore.Codec, r eventstore.Recorded) (event.Event, error) {
	if m.Personal {
		return codec.Decode(ctx, r)
	}
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return nil, err
	}
	return event.MapPersonal(e, func(event.Personal) (event.Personal, error) { return "", nil })
}

// fold is what facts do to the rows. repaired are the owners of streams that are folded without some of their events.
func (m Model) fold(ctx context.Context, tx *table.Tx, facts []fact, repaired map[string]bool) (*Batch, error) {
	b := newBatch()
	b.repaired = repaired
	for _, s := range m.States {
		if err := s.open(ctx, tx, b, facts); err != nil {
			return nil, err
		}
	}
	if err := b.apply(facts); err != nil {
		return nil, err
	}
	for _, s := range m.States {
		if err := s.close(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// apply runs the rules. One that panics stops the projection, not the program.
func (b *Batch) apply(facts []fact) (err error) {
	var f fact
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s@%d: %v", f.record.Stream, f.record.Revision, cause)
		}
	}()
	for _, f = range facts {
		if f.rule.apply != nil {
			b.lenient = len(b.repaired) > 0 && b.repaired[table.OwnerOf(f.record.Stream)]
			f.rule.apply(b, f.event, f.record)
		}
	}
	return nil
}
