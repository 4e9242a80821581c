// Package projector fills read models from the log. A read model is data: its tables, the categories it reads, and a rule
// for each event of theirs. Rows and checkpoint change in one transaction, by one instance at a time; what
// cannot go on stops, says why, and resumes: no event is ever skipped.
package projector

import (
	"context"
	"fmt"
	"slices"

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
	Rules      []Rule
}

// Record is an event in its place, with its envelope.
type Record struct {
	eventstore.Recorded
	Meta eventstore.Metadata
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

// Unruled are the events of the model's categories that it has no rule for.
func (m Model) Unruled() []string {
	var names []string
	for _, t := range event.All() {
		if _, ok := m.rule(t.Name); !ok && slices.Contains(m.Categories, t.Category()) {
			names = append(names, t.Name)
		}
	}
	return names
}

// fold applies events to a batch of rows. A rule that panics stops the projection, not the program.
func (m Model) fold(ctx context.Context, codec *eventstore.Codec, b *Batch, events []eventstore.Recorded) (err error) {
	var r eventstore.Recorded
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s@%d: %v", r.Stream, r.Revision, cause)
		}
	}()
	for _, r = range events {
		rule, ok := m.rule(r.Type)
		if !ok {
			return fmt.Errorf("%s@%d: no rule for %s", r.Stream, r.Revision, r.Type)
		}
		e, err := m.decode(ctx, codec, r)
		if err != nil {
			return err
		}
		meta, err := r.Meta()
		if err != nil {
			return err
		}
		rule.apply(b, e, Record{r, meta})
	}
	return nil
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
