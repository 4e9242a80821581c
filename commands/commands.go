// Package commands is the write side: it loads a stream, folds it, lets a pure decision say what happens, and
// appends that with the revision it decided on. Nothing is decided, and nothing refused, on a stale state:
// the fold is read forward first, and checked to be of this log.
package commands

import (
	"context"
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

// Fact is an event, when and where in its stream the log recorded it, and who caused it why.
type Fact struct {
	Event    event.Event
	At       time.Time
	Actor    string
	Reason   string
	Revision eventstore.Revision
}

// FactOf is a recorded event as an aggregate sees it.
func FactOf(r eventstore.Recorded, e event.Event) (Fact, error) {
	m, err := r.Meta()
	return Fact{e, r.Time, m.Actor, m.Reason, r.Revision}, err
}

// factsOf is what one event of a stream adds: a fact, and before it those that it makes real. A commit that names no
// staging adds nothing. It also says how much of the log had to be read for it, in bytes.
func factsOf(ctx context.Context, store eventstore.Store, r eventstore.Recorded) (facts []Fact, read int, err error) {
	last, err := decoded(r)
	if err == nil && eventstore.IsEmptyCommit(last.Event) {
		return nil, len(r.Data), nil
	}
	commit, ok := last.Event.(event.Staged)
	if err != nil || !ok {
		return []Fact{last}, len(r.Data), err
	}
	rows, err := eventstore.Staged(ctx, store, r, commit)
	if err != nil {
		return nil, 0, err
	}
	read = len(r.Data)
	facts = make([]Fact, len(rows), len(rows)+1)
	for i, row := range rows {
		read += len(row.Data)
		if facts[i], err = decoded(row); err != nil {
			return nil, 0, err
		}
	}
	return append(facts, last), read, nil
}

func decoded(r eventstore.Recorded) (Fact, error) {
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return Fact{}, err
	}
	return FactOf(r, e)
}

// Decision is what a command makes of a state.
type Decision[S any] func(*S) Result

// Aggregate is how one kind of stream is folded: the streams are category-id, and Evolve changes a state by one fact.
// Personal fields are sealed in what it sees: no decision depends on them.
type Aggregate[S any] struct {
	Category string
	Evolve   func(*S, Fact)
	Weight   func(*S) int // what a state takes of Room; nil: 1
	Room     int          // the states kept in memory weigh no more together; 0: 10,000

	// Freeze is a state as bytes, for a desk that keeps files, and Thaw is the state again, or why the bytes are none.
	// Form names the one way they are written.
	Form   string
	Freeze func(*S) []byte
	Thaw   func([]byte) (S, error)
}
