// Package commands is the write side: a Handler loads the state of one stream, lets a pure Decision say what happens, and
// appends the events of its Result. The constraint: nothing is decided, and nothing is refused, on a stale state. The
// handler reads the stream to its end first, checks that the state is of this log, and appends with the revision that the
// decision saw; after a conflict it decides again.
//
//	Handler.Handle(id, Metadata, Decision)
//	  │ acquireState   stateCache: one streamState a stream, one command at a time
//	  │ catchUp        snapshotFiles, then Store.ReadStream ──> Record ──> Aggregate.Evolve
//	  │ Decision       state ──> Result: events, a refusal, a failure, or what must be prepared before it can decide
//	  │ Result's work  slow things outside of the decision: geocode, open sealed texts, stage rows
//	  │ Codec.Encode   events and Metadata ──> batch
//	  └ AppendUntilKnown ──> the position that readers wait for; a conflict leads back to catchUp
//
// Each aggregate has a package below this one: account, access (customer-area tokens), locations. Package usage does not use
// Handler: it appends without an expected revision. Package repair appends corrections to any stream.
package commands

import (
	"context"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Metadata says who gives a command, for whom and why.
type Metadata struct {
	Actor      string // opaque: "token:…", "system"
	OnBehalfOf string // the account that an agency acts for; "": nobody acts for another
	Reason     string // free text, for the audit

	sealedReason event.Personal // takes the place of Reason (Handler.SealReason)
}

// IsByAgency reports whether an agency acts with its own token. What an agency sets must stay within its contract.
func (meta Metadata) IsByAgency() bool { return meta.OnBehalfOf != "" }

// EventMetadata returns the envelope of the events of a command. The command's id correlates them.
func (meta Metadata) EventMetadata(commandID uuid.UUID) eventstore.Metadata {
	return eventstore.Metadata{
		CorrelationID: commandID.String(), CausationID: commandID.String(),
		Actor: meta.Actor, OnBehalfOf: meta.OnBehalfOf, Reason: meta.Reason, SealedReason: meta.sealedReason,
	}
}

// Record is an event with its place in its stream, the log's time, and who caused it why.
type Record struct {
	Event    event.Event
	At       time.Time
	Actor    string
	Reason   event.Personal // as eventstore.Codec.Open takes it
	Revision eventstore.Revision
}

// NewRecord makes the Record of a recorded event and its decoded form. It fails if the envelope cannot be decoded.
func NewRecord(r eventstore.RecordedEvent, e event.Event) (Record, error) {
	m, err := r.DecodeMetadata()
	return Record{e, r.Time, m.Actor, m.StoredReason(), r.Revision}, err
}

// readRecords returns the records that one event of a stream adds to the state: the event itself and, before a commit, the
// staged events that it makes real. An empty commit adds none. bytesRead counts the event data that was read for them.
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

// decodeRecord decodes an event and leaves its personal fields sealed.
func decodeRecord(r eventstore.RecordedEvent) (Record, error) {
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return Record{}, err
	}
	return NewRecord(r, e)
}

// Aggregate describes how one kind of stream is folded. The streams are named Category-id.
type Aggregate[S any] struct {
	Category string

	// Evolve changes a state by one record. A correction may have taken out any record before it, so it must accept a record
	// about something that the state does not have. Personal fields are sealed in what it sees: no decision depends on them.
	Evolve func(*S, Record)

	Weight    func(*S) int // the weight of a state in memory; nil: every state weighs 1
	MaxWeight int          // the most that all states in memory may weigh together; 0: 10,000

	// MarshalSnapshot and UnmarshalSnapshot turn a state into bytes and back, for a handler that keeps snapshots.
	// SnapshotFormat names the encoding: another encoding needs another name.
	SnapshotFormat    string
	MarshalSnapshot   func(*S) []byte
	UnmarshalSnapshot func([]byte) (S, error)
}

// Decision is the pure part of a command: it reads a state and says what happens. It must not change or keep the state, nor wait for
// anything: what the command has to ask others for is work of its Result. It is called again, on a newer state, after each conflict and
// after each PrepareFirst.
type Decision[S any] func(*S) Result

// Result is what a Decision returns. It is one of four: events that happen, a refusal, a failure, or work that the decision needs done
// first. A refusal may carry the event that records it. A failure carries no events, because no constructor can give it any. The zero
// Result changes nothing.
type Result struct {
	events  []event.Event
	build   func(context.Context) ([]event.Event, error) // makes the events of AppendBuilt
	refusal error
	failure error
	work    func(context.Context) error // of PrepareFirst
}

// PrepareFirst says that the decision needs something that is not in the state, and that work gets it. The Handler does the work, and
// asks for the decision again. An error is a failure.
func PrepareFirst(work func(context.Context) error) Result { return Result{work: work} }

// AppendBuilt says that the events happen that build makes of the decision. build may seal, read and append to other streams; an error is
// a failure. It is called once for each time that the command is decided.
func AppendBuilt(build func(context.Context) ([]event.Event, error)) Result {
	return Result{build: build}
}

// Append says that events happen.
func Append(events ...event.Event) Result { return Result{events: events} }

// Refuse says that a rule forbids the command. Nothing is recorded.
func Refuse(refusal error) Result { return Result{refusal: refusal} }

// RefuseAndRecord says that a rule forbids the command, and that the log records who tried.
func RefuseAndRecord(refusal error, record event.Event) Result {
	return Result{refusal: refusal, events: []event.Event{record}}
}

// Fail says that no decision was possible: the vault, the log, the disk or the context failed. Nothing is recorded.
func Fail(err error) Result { return Result{failure: err} }

// Events returns the events that the command appends, but for those of AppendBuilt.
func (r Result) Events() []event.Event { return r.events }

// Err returns why the command does not do what was asked: the refusal or the failure. It is nil when it does.
func (r Result) Err() error {
	if r.failure != nil {
		return r.failure
	}
	return r.refusal
}

// Failed reports whether the error of Err is a failure, not a refusal.
func (r Result) Failed() bool { return r.failure != nil }
