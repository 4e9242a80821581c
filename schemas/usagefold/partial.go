package usagefold

import (
	"math"
	"time"

	"lieudit/schemas/event"
)

// This file folds a shared stream of which only a part is in memory: a reader that keeps the state in rows restores what the next events
// are about, applies them, and writes what has changed.
//
//	events ──► SharedNeeds ──rows──► SharedPart.Add… ──events──► SharedPart.Apply ──PeriodEvent──► rows

// SharedNeeds collects what the verdicts on some events of a shared stream depend on. The zero SharedNeeds is ready for use. The periods of
// numbered keys are known only once the keys are.
type SharedNeeds struct {
	KeyNumbers      map[int64]bool
	EndpointNumbers map[int64]bool
	NamedKeys       map[event.UsedKey]bool // they may have numbers already
	NamedEndpoints  map[string]bool
	Instances       map[string]bool // that have ticked
	Periods         map[event.PeriodRef]bool
}

// Add notes what the verdicts on an event depend on.
func (n *SharedNeeds) Add(e event.Event) {
	if n.Periods == nil {
		*n = SharedNeeds{map[int64]bool{}, map[int64]bool{}, map[event.UsedKey]bool{}, map[string]bool{}, map[string]bool{}, map[event.PeriodRef]bool{}}
	}
	tick, ok := e.(event.SharedUsageTicked)
	if !ok {
		if p, ok := PeriodOf(e); ok {
			n.Periods[p] = true
		}
		return
	}
	n.Instances[tick.InstanceID] = true
	for _, k := range tick.Keys {
		n.NamedKeys[k], n.Periods[k.PeriodRef] = true, true
	}
	for _, endpoint := range tick.Endpoints {
		n.NamedEndpoints[endpoint] = true
	}
	for i := 0; i+2 < len(tick.Lines); i += 3 {
		if number := tick.Lines[i]; number >= 0 {
			n.KeyNumbers[number] = true
		}
		if number := tick.Lines[i+1]; number >= 0 {
			n.EndpointNumbers[number] = true
		}
	}
}

// PeriodOf is the one period that an event of a shared stream is about. It is false for ticks and snapshots.
func PeriodOf(e event.Event) (event.PeriodRef, bool) {
	switch e := e.(type) {
	case event.UsageOpened:
		return event.PeriodRef{Contract: e.Contract, First: e.First}, true
	case event.SharedUsageCapSet:
		return e.PeriodRef, true
	case event.SharedUsageKeyRevoked:
		return e.PeriodRef, true
	case event.SharedUsageAccountClosed:
		return e.PeriodRef, true
	case event.SharedUsageRefunded:
		return e.PeriodRef, true
	case event.SharedUsageEnded:
		return e.PeriodRef, true
	}
	return event.PeriodRef{}, false
}

// SharedPart is a part of a SharedState: that of what SharedNeeds asks for. Its Apply gives the verdicts that the whole state would give. It
// is not safe for concurrent use.
type SharedPart struct {
	state     SharedState // its numbers are those of the part
	keys      partNumbers[event.UsedKey]
	endpoints partNumbers[string]
}

// partNumbers translates the numbers of a stream into those that a part has for the same values.
type partNumbers[T comparable] struct {
	inPart map[int64]int64
	count  int64 // how many the stream has
	added  []Numbered[T]
}

// Numbered is a key or an endpoint with its number in a stream.
type Numbered[T any] struct {
	Number int64
	Value  T
}

// NewSharedPart begins the part of a stream that has numbered this many keys and endpoints.
func NewSharedPart(keys, endpoints int64) *SharedPart {
	return &SharedPart{
		state:     SharedState{periods: map[event.PeriodRef]*PeriodState{}, lastSequences: map[string]int64{}},
		keys:      partNumbers[event.UsedKey]{inPart: map[int64]int64{}, count: keys},
		endpoints: partNumbers[string]{inPart: map[int64]int64{}, count: endpoints},
	}
}

// AddKey restores a key that has a number.
func (s *SharedPart) AddKey(number int64, key event.UsedKey) {
	s.keys.inPart[number] = s.state.keys.add(key)
}

// AddEndpoint restores an endpoint that has a number.
func (s *SharedPart) AddEndpoint(number int64, endpoint string) {
	s.endpoints.inPart[number] = s.state.endpoints.add(endpoint)
}

// AddSequence restores the last sequence of an instance's ticks.
func (s *SharedPart) AddSequence(instanceID string, last int64) {
	s.state.lastSequences[instanceID] = last
}

// AddPeriod restores the state of a period that the stream has opened.
func (s *SharedPart) AddPeriod(ref event.PeriodRef, p *PeriodState) { s.state.periods[ref] = p }

// Period returns the state of a period, or nil if the part has none of it.
func (s *SharedPart) Period(ref event.PeriodRef) *PeriodState { return s.state.periods[ref] }

// Counts returns how many keys and endpoints have numbers in the stream.
func (s *SharedPart) Counts() (keys, endpoints int64) { return s.keys.count, s.endpoints.count }

// Numbered returns the keys and endpoints that the applied events have given numbers.
func (s *SharedPart) Numbered() (keys []Numbered[event.UsedKey], endpoints []Numbered[string]) {
	return s.keys.added, s.endpoints.added
}

// LastSequence returns the last sequence of an instance's ticks.
func (s *SharedPart) LastSequence(instanceID string) int64 { return s.state.lastSequences[instanceID] }

// Apply is SharedState.Apply. The part must have everything that SharedNeeds collects from the event.
func (s *SharedPart) Apply(e event.Event, recorded time.Time) []PeriodEvent {
	if tick, ok := e.(event.SharedUsageTicked); ok {
		s.keys.addNamed(&s.state.keys, tick.Keys)
		s.endpoints.addNamed(&s.state.endpoints, tick.Endpoints)
		lines := make([]int64, len(tick.Lines))
		for i := 0; i+2 < len(lines); i += 3 {
			lines[i], lines[i+1], lines[i+2] = s.keys.translate(tick.Lines[i]), s.endpoints.translate(tick.Lines[i+1]), tick.Lines[i+2]
		}
		tick.Lines = lines
		e = tick
	}
	return s.state.Apply(e, recorded)
}

// addNamed gives numbers to those of an event's values that have none.
func (n *partNumbers[T]) addNamed(part *numbers[T], named []T) {
	for _, value := range named {
		if _, known := part.byName[value]; known {
			continue
		}
		n.inPart[n.count] = part.add(value)
		n.added = append(n.added, Numbered[T]{n.count, value})
		n.count++
	}
}

// translate returns the part's number for one of the stream. Those that an event names itself stay; one that the stream has not given
// becomes one that no part gives.
func (n *partNumbers[T]) translate(number int64) int64 {
	if number < 0 {
		return number
	}
	if inPart, ok := n.inPart[number]; ok {
		return inPart
	}
	return math.MaxInt64
}
