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

// Metadata is who wants something done, for whom and why.
type Metadata struct {
	Actor         string // opaque: "token:…", "system"
	OnBehalfOf    string // the account an agency acts for
	Reason        string
	CorrelationID string // empty: the command's own id
}

// IsByAgency says whether an agency acts by its own token: what it sets stays within its contract.
func (meta Metadata) IsByAgency() bool { return meta.OnBehalfOf != "" }

// EventMetadata is the envelope of the events of a command.
func (meta Metadata) EventMetadata(commandID uuid.UUID) eventstore.Metadata {
	m := eventstore.Metadata{
		CorrelationID: meta.CorrelationID, CausationID: commandID.String(),
		Actor: meta.Actor, OnBehalfOf: meta.OnBehalfOf, Reason: meta.Reason,
	}
	if m.CorrelationID == "" {
		m.CorrelationID = m.CausationID
	}
	return m
}

// Record is an event, when and where in its stream the log recorded it, and who caused it why.
type Record struct {
	Event    event.Event
	At       time.Time
	Actor    string
	Reason   string
	Revision eventstore.Revision
}

// NewRecord is a recorded event as an aggregate sees it.
func NewRecord(r eventstore.RecordedEvent, e event.Event) (Record, error) {
	m, err := r.DecodeMetadata()
	return Record{e, r.Time, m.Actor, m.Reason, r.Revision}, err
}

// readRecords is what one event of a stream adds: a fact, and before it those that it makes real. A commit that names no
// staging adds nothing. It also says how much of the log had to be read for it, in bytes.
func readRecords(ctx context.Context, store eventstore.Store, r eventstore.RecordedEvent) (records []Record, bytesRead int, err error) {
	last, err := decodeRecord(r)
	if err == nil && eventstore.IsEmptyCommit(last.Event) {
		return nil, len(r.Data), nil
	}
	commit, ok := last.Event.(event.StagedCommit)
	if err != nil || !ok {
		return []Record{last}, len(r.Data), err
	}
	rows, err := eventstore.ReadStagedEvents(ctx, store, r, commit)
	if err != nil {
		return nil, 0, err
	}
	bytesRead = len(r.Data)
	records = make([]Record, len(rows), len(rows)+1)
	for i, row := range rows {
		bytesRead += len(row.Data)
		if records[i], err = decodeRecord(row); err != nil {
			return nil, 0, err
		}
	}
	return append(records, last), bytesRead, nil
}

func decodeRecord(r eventstore.RecordedEvent) (Record, error) {
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return Record{}, err
	}
	return NewRecord(r, e)
}

// Decision is what a command makes of a state.
type Decision[S any] func(*S) Result

// Aggregate is how one kind of stream is folded: the streams are category-id, and Evolve changes a state by one fact.
// Personal fields are sealed in what it sees: no decision depends on them.
type Aggregate[S any] struct {
	Category  string
	Evolve    func(*S, Record)
	Weight    func(*S) int // what a state takes of Room; nil: 1
	MaxWeight int          // the states kept in memory weigh no more together; 0: 10,000

	// Freeze is a state as bytes, for a desk that keeps files, and Thaw is the state again, or why the bytes are none.
	// SnapshotFormat names the one way they are written.
	SnapshotFormat    string
	MarshalSnapshot   func(*S) []byte
	UnmarshalSnapshot func([]byte) (S, error)
}
