// Package commands is the write side: a Handler loads the state of one stream, a pure Decision decides what happens, and the
// Handler appends the events of its Result. Nothing is decided or refused on a stale state: the handler first reads the stream
// to its end, checks that the state is of this log, and appends with the revision that the decision saw. After a conflict it
// decides again.
//
//	Handler.Handle(id, Metadata, Decision)
//	  │ acquireState   stateCache: one streamState a stream, one command at a time
//	  │ catchUp        snapshotFiles, then Store.ReadStream ──> Record ──> Aggregate.Evolve
//	  │ Decision       state ──> Result: events, a refusal, a failure, or what must be prepared before it can decide
//	  │ Result's work  slow things outside of the decision: geocode, open sealed texts, stage rows
//	  │ Codec.Encode   events and Metadata ──> batch
//	  └ AppendUntilKnown ──> the position that readers wait for; a conflict leads back to catchUp
//
// Each aggregate has a package below this one: account, areatoken (customer-area tokens), locations. Package usage does not
// use Handler: it appends without an expected revision. Package repair appends corrections to any stream.
package commands

import (
	"context"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// Metadata is who gives a command, for whom and why.
type Metadata struct {
	Actor      string // opaque: "token:…", "system"
	OnBehalfOf string // the account that an agency acts for, or ""
	Reason     string // free text, for the audit

	sealedReason event.Personal // takes the place of Reason (Handler.SealReason)
}

// IsByAgency reports whether an agency acts with its own token. Whatever an agency sets must stay within its contract.
func (meta Metadata) IsByAgency() bool { return meta.OnBehalfOf != "" }

// EventMetadata returns the envelope of the events of a command. The command's id correlates them.
func (meta Metadata) EventMetadata(commandID uuid.UUID) eventstore.Metadata {
	return eventstore.Metadata{
		CorrelationID: commandID.String(), CausationID: commandID.String(),
		Actor: meta.Actor, OnBehalfOf: meta.OnBehalfOf, Reason: meta.Reason, SealedReason: meta.sealedReason,
	}
}

// Record is an event with its point in its stream, the log's time, and who caused it and why.
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

// readRecords returns the records that one event of a stream adds to the state: the event itself, preceded by the staged
// events if it commits any. An empty commit adds none. bytesRead is the size of the event data that was read for them.
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

	// Evolve changes a state by one record. Any earlier record may have been voided by a correction, so Evolve must accept a
	// record about something that the state does not have. It sees personal fields sealed: no decision depends on them.
	Evolve func(*S, Record)

	Weight    func(*S) int // the weight of a state in memory; nil: every state weighs 1
	MaxWeight int          // the maximum total weight of the states in memory; 0: 10,000

	// MarshalSnapshot and UnmarshalSnapshot encode and decode a state, for a handler that keeps snapshots. SnapshotFormat
	// names the encoding: another encoding needs another name.
	SnapshotFormat    string
	MarshalSnapshot   func(*S) []byte
	UnmarshalSnapshot func([]byte) (S, error)
}

// Decision is the pure part of a command: it reads a state and decides what happens. It must not change or keep the state, nor
// wait for anything: whatever the command must ask others for is work of its Result. It is called again, on a newer state,
// after each conflict and after each PrepareFirst.
type Decision[S any] func(*S) Result

// Result is what a Decision returns, one of four: events, a refusal, a failure, or work to do before the decision. A refusal
// may carry the event that records it. A failure carries no events: no constructor gives it any. The zero Result changes
// nothing.
type Result struct {
	events  []event.Event
	build   func(context.Context) ([]event.Event, error) // makes the events of AppendBuilt
	refusal error
	failure error
	work    func(context.Context) error // of PrepareFirst
}

// PrepareFirst is the Result of a decision that needs something that is not in the state. The Handler calls work, which gets
// it, and calls the decision again. An error is a failure.
func PrepareFirst(work func(context.Context) error) Result { return Result{work: work} }

// AppendBuilt appends the events that build returns. build may seal, read, and append to other streams; an error is a failure.
// It is called once each time the command is decided.
func AppendBuilt(build func(context.Context) ([]event.Event, error)) Result {
	return Result{build: build}
}

// Append appends events.
func Append(events ...event.Event) Result { return Result{events: events} }

// Refuse refuses a command that a rule forbids. Nothing is recorded.
func Refuse(refusal error) Result { return Result{refusal: refusal} }

// RefuseAndRecord refuses a command that a rule forbids, and records who tried it on the log.
func RefuseAndRecord(refusal error, record event.Event) Result {
	return Result{refusal: refusal, events: []event.Event{record}}
}

// Fail means that no decision was possible: the vault, the log, the disk or the context failed. Nothing is recorded.
func Fail(err error) Result { return Result{failure: err} }

// Events returns the events that the command appends, except those of AppendBuilt.
func (r Result) Events() []event.Event { return r.events }

// Err returns why the command does not do what was asked: the refusal or the failure. It is nil if it does.
func (r Result) Err() error {
	if r.failure != nil {
		return r.failure
	}
	return r.refusal
}

// Failed reports whether Err is a failure rather than a refusal.
func (r Result) Failed() bool { return r.failure != nil }
