// Package commands is the write side: it loads a stream, folds it, lets a pure decision say what happens, and
// appends that with the revision it decided on. Nothing is decided, and nothing refused, on a stale state:
// the fold is read forward first, and checked to be of this log.
package commands

import (
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Intent is who wants something done, for whom and why.
type Intent struct {
	Actor       string // opaque: "token:…", "system"
	OnBehalfOf  string // the account an agency acts for
	Reason      string
	Correlation string // empty: the command's own id
}

// Metadata is the envelope of the events of a command.
func (in Intent) Metadata(command uuid.UUID) eventstore.Metadata {
	m := eventstore.Metadata{
		Correlation: in.Correlation, Causation: command.String(),
		Actor: in.Actor, OnBehalfOf: in.OnBehalfOf, Reason: in.Reason,
	}
	if m.Correlation == "" {
		m.Correlation = m.Causation
	}
	return m
}

// Fact is an event, when the log recorded it, and who caused it why.
type Fact struct {
	Event  event.Event
	At     time.Time
	Actor  string
	Reason string
}

// FactOf is a recorded event as an aggregate sees it.
func FactOf(r eventstore.Recorded, e event.Event) (Fact, error) {
	m, err := r.Meta()
	return Fact{e, r.Time, m.Actor, m.Reason}, err
}

// Decision is what a command makes of a state: what happens, and why it is refused if it is. A refusal may come
// with the event that records it.
type Decision[S any] func(*S) ([]event.Event, error)

// Aggregate is how one kind of stream is folded: the streams are category-id, and Evolve changes a state by one fact.
// Personal fields are sealed in what it sees: no decision depends on them.
type Aggregate[S any] struct {
	Category string
	Evolve   func(*S, Fact)
}
