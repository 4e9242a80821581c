package commands

import "lieudit/schemas/event"

// Result is what a decision comes to. It is one of three: events that happen, a refusal, or a failure. A refusal may
// carry the event that records it; a failure carries no events, because no constructor can give it any. The zero Result
// changes nothing.
type Result struct {
	events  []event.Event
	refusal error
	failure error
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

// Events are the events that the command appends.
func (r Result) Events() []event.Event { return r.events }

// Err is why the command does not do what was asked: the refusal, or the failure. It is nil when it does.
func (r Result) Err() error {
	if r.failure != nil {
		return r.failure
	}
	return r.refusal
}

// Failed says whether the error is a failure.
func (r Result) Failed() bool { return r.failure != nil }

// Refused says whether a rule forbids the command.
func (r Result) Refused() bool { return r.refusal != nil }
