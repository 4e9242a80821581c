// Package projector fills read models from the log. A read model is data: its tables, the categories it reads, and a rule
// for each event of theirs. Rows and checkpoint change in one transaction, by one instance at a time; what
// cannot go on stops, says why, and resumes: no event is ever skipped.
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
	Batch      int           // events that go into one transaction while it catches up; 0 for the feed's own number
	Pace       time.Duration // least time between two transactions after that
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
}

func (m Model) fact(ctx context.Context, codec *eventstore.Codec, r eventstore.Recorded) (f fact, err error) {
	var ok bool
	if f.rule, ok = m.rule(r.Type); !ok {
		return f, fmt.Errorf("%s@%d: no rule for %s", r.Stream, r.Revision, r.Type)
	}
	f.record.Recorded = r
	if f.event, err = m.decode(ctx, codec, r); err == nil && !m.Bare {
		f.record.Meta, err = r.Meta()
	}
	return f, err
}

func (m Model) decode(ctx context.Context, codec *eventstore.Codec, r eventstore.Recorded) (event.Event, error) {
	if m.Personal {
		return codec.Decode(ctx, r)
	}
	e, err := event.Decode(r.Type, r.Data)
	if err == nil {
		e, err = event.MapPersonal(e, func(event.Personal) (event.Personal, error) { return "", nil })
	}
	if err != nil {
		return nil, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	return e, nil
}

// fold is what facts do to the rows.
func (m Model) fold(ctx context.Context, tx *table.Tx, facts []fact) (*Batch, error) {
	b := newBatch()
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
		f.rule.apply(b, f.event, f.record)
	}
	return nil
}
