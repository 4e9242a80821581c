package usagefold

import (
	"time"

	"lieudit/schemas/event"
)

// StreamState is the fold of a stream in which requests are counted: an *OwnState or a *SharedState.
type StreamState interface {
	// Apply folds the next event of the stream and returns what it is to each period that it is about, as SharedState.Apply does.
	Apply(e event.Event, recorded time.Time) []PeriodEvent
	// Period returns the state of a period, or nil if the stream has none of it.
	Period(event.PeriodRef) *PeriodState
	// Event returns an event about a period in the form that the stream has for it.
	Event(event.PeriodRef, event.Event) event.Event
}

// OwnState is the fold of the stream of one period.
type OwnState struct {
	Ref       event.PeriodRef
	State     *PeriodState
	CountedIn string // the shared stream in which the requests of the period are counted instead, or ""
}

// Apply implements StreamState.
func (s *OwnState) Apply(e event.Event, recorded time.Time) []PeriodEvent {
	if in, ok := e.(event.UsageCountedIn); ok && s.CountedIn == "" {
		s.CountedIn = in.Stream
	}
	return []PeriodEvent{{s.Ref, s.State, e, s.State.Apply(e, recorded)}}
}

// Period implements StreamState.
func (s *OwnState) Period(ref event.PeriodRef) *PeriodState {
	if ref != s.Ref {
		return nil
	}
	return s.State
}

// Event implements StreamState: the stream of one period need not name it.
func (s *OwnState) Event(_ event.PeriodRef, e event.Event) event.Event { return e }

// Event implements StreamState.
func (s *SharedState) Event(ref event.PeriodRef, e event.Event) event.Event {
	switch e := e.(type) {
	case event.UsageCapSet:
		return event.SharedUsageCapSet{PeriodRef: ref, UsageCapSet: e}
	case event.UsageKeyRevoked:
		return event.SharedUsageKeyRevoked{PeriodRef: ref, UsageKeyRevoked: e}
	case event.UsageAccountClosed:
		return event.SharedUsageAccountClosed{PeriodRef: ref, UsageAccountClosed: e}
	case event.UsageRefunded:
		return event.SharedUsageRefunded{PeriodRef: ref, UsageRefunded: e}
	}
	return e // names its period itself
}
