// Package deployment handles the commands on the log as a whole: which format its events may have, which log counts the
// requests of its accounts, that it was restored from a backup, and which reference data its instances serve. There are two
// streams, deployment-log and deployment-releases. They bind every instance on the log, and every program that will open it
// later.
//
//	Deployment.RaiseFormat, BindUsageLog, RecordRestore ──> commands.Handler ──> event.FormatRaised, UsageLogBound, LogRestored
//	Deployment.ReleaseData, AnnounceInstance, RemoveInstance ──> event.DataReleased, InstanceAnnounced, InstanceLeft
//	Deployment.Fleet ──> the fold of the releases and of the instances, as the log has it now
//	Deployment.State ──> commands.Handler.View, the fold of the stream as the log has it now
//	Deployment.CheckFormat ──> *UnknownFormatError for a log that a later program has raised
//	Deployment.HasFormat ──> whether a new type of event or a new form of stream may be written
package deployment

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// streamID is the id of the stream deployment-log, after its category.
const streamID = "log"

// State is the fold of the stream. The zero State is that of a log without its events.
type State struct {
	RaisedFormat int                // 0 if it was never raised
	UsageLog     uuid.UUID          // uuid.Nil if it is not bound yet
	LastRestore  *event.LogRestored // nil if the log was never restored
	RestoredAt   time.Time          // when LastRestore was recorded
}

// Format returns the format of the log.
func (s State) Format() int { return max(s.RaisedFormat, event.FirstFormat) }

// Aggregate describes how the stream is folded.
var Aggregate = commands.Aggregate[State]{Category: "deployment", Evolve: Evolve}

// Evolve changes the state by one record. A usage log whose UUID cannot be read counts as not bound.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.FormatRaised:
		s.RaisedFormat = max(s.RaisedFormat, e.Format)
	case event.LogRestored:
		s.LastRestore, s.RestoredAt = &e, rec.At
	case event.UsageLogBound:
		s.UsageLog, _ = uuid.Parse(e.Log)
	}
}

// OtherUsageLogError means that the given usage log is not the one that counts the requests of this log's accounts.
type OtherUsageLogError struct{ Bound, Found uuid.UUID }

func (e *OtherUsageLogError) Error() string {
	return fmt.Sprintf("the usage log is %s and the accounts' requests are counted in %s", e.Found, e.Bound)
}

// Deployment handles the commands on the log as a whole. It is safe for concurrent use.
type Deployment struct {
	handler *commands.Handler[State]
	fleet   *commands.Handler[Fleet]
	store   eventstore.Store
	program string
	seen    atomic.Int64 // the highest format that was found on the log
}

// New returns the handler for a log. program is the version of the program, for the events.
func New(store eventstore.Store, codec *eventstore.Codec, program string) *Deployment {
	return &Deployment{handler: commands.NewHandler(Aggregate, store, codec), fleet: commands.NewHandler(FleetAggregate, store, codec), store: store, program: program}
}

// State returns the state as the log has it now.
func (d *Deployment) State(ctx context.Context) (current State, err error) {
	err = d.handler.View(ctx, streamID, func(s *State) { current = *s })
	return current, err
}

// BindUsageLog records which log counts the requests. It appends nothing if that log is already bound. If another one is
// bound, it appends nothing and returns an *OtherUsageLogError.
func (d *Deployment) BindUsageLog(ctx context.Context, meta commands.Metadata, usageLog uuid.UUID) error {
	_, err := d.handler.Handle(ctx, streamID, meta, func(s *State) commands.Result {
		switch s.UsageLog {
		case usageLog:
			return commands.Result{}
		case uuid.Nil:
			return commands.Append(event.UsageLogBound{Log: usageLog.String()})
		}
		return commands.Refuse(&OtherUsageLogError{Bound: s.UsageLog, Found: usageLog})
	})
	return err
}

// ReplaceUsageLog records that another log counts the requests from now on: the operator accepts that the usage on the former
// one is lost. It appends nothing if that log is already bound.
func (d *Deployment) ReplaceUsageLog(ctx context.Context, meta commands.Metadata, usageLog uuid.UUID) error {
	_, err := d.handler.Handle(ctx, streamID, meta, func(s *State) commands.Result {
		if s.UsageLog == usageLog {
			return commands.Result{}
		}
		return commands.Append(event.UsageLogBound{Log: usageLog.String()})
	})
	return err
}

// RecordRestore records that the log was restored from a copy taken at takenAt, whose last event is at position. Each call
// appends one event.
func (d *Deployment) RecordRestore(ctx context.Context, meta commands.Metadata, takenAt time.Time, position eventstore.Position) error {
	_, err := d.handler.Handle(ctx, streamID, meta, func(*State) commands.Result {
		return commands.Append(event.LogRestored{TakenAt: takenAt.UTC().Truncate(time.Microsecond), Position: uint64(position), Program: d.program})
	})
	return err
}
