package usagefold

import (
	"time"

	"lieudit/schemas/event"
)

// This file folds all streams of usage together, in the order of the log. A period is counted in its own stream, or in the shared stream
// that the first event of its own stream names (event.UsageCountedIn):
//
//	usage-mende-2026-11-21   UsageOpened, UsageTicked, …                                       counted there
//	usage-mende-2026-11-21   UsageCountedIn{usage-2026-11.3}, then lines, closing, corrections
//	usage-2026-11.3          UsageOpened, SharedUsageTicked, …, SharedUsageEnded               counted here
//
// The first event alone decides, so that a period is never counted in two streams: a shared stream opens no other period, and nothing
// counts in the own stream of a period that is counted in a shared one, until its counting has ended.

// CountsInOwnStream reports whether an event of a period's own stream can count although the period is counted in a shared one: its closing
// and corrections, once the counting has ended. Without the shared stream, which may have been dropped, the statements before the closing
// count in its place.
func CountsInOwnStream(p *PeriodState, e event.Event) bool {
	switch e.(type) {
	case event.UsageLinesStated:
		return !p.opened || p.stated
	case event.UsageClosed, event.UsageAdjusted:
		return p.IsEnded()
	}
	return false
}

// StreamsState is the fold of all streams of usage. The zero StreamsState is that of an empty log. It is not safe for concurrent use.
type StreamsState struct {
	own       map[string]*PeriodState // by stream: those that are counted in their own, or stated there alone
	shared    map[string]*SharedState
	countedIn map[event.PeriodRef]string
}

// CountedIn returns the shared stream in which a period is counted, or false if it is not counted in one.
func (s *StreamsState) CountedIn(p event.PeriodRef) (stream string, ok bool) {
	stream, ok = s.countedIn[p]
	return stream, ok
}

// RestoreShared begins the fold of a shared stream with a state of it. Its next event is the one after that.
func (s *StreamsState) RestoreShared(stream string, state *SharedState) {
	s.makeMaps()
	s.shared[stream] = state
}

func (s *StreamsState) makeMaps() {
	if s.own == nil {
		*s = StreamsState{map[string]*PeriodState{}, map[string]*SharedState{}, map[event.PeriodRef]string{}}
	}
}

// Apply folds the next event of the log, with its revision in its stream, and returns what it is to each period that it is about. The event
// is then of a type that the period's own stream would hold if it were counted there; State is nil if the period is not opened.
func (s *StreamsState) Apply(stream string, revision int64, e event.Event, recorded time.Time) []PeriodEvent {
	s.makeMaps()
	if _, _, isShared := ParseSharedStreamName(stream); isShared {
		return s.applyShared(stream, e, recorded)
	}
	contract, first, isOwn := ParseStreamName(stream)
	if !isOwn {
		return nil
	}
	ref := event.PeriodRef{Contract: contract, First: first}
	if counted, ok := e.(event.UsageCountedIn); ok && revision == 0 {
		s.countedIn[ref] = counted.Stream
		return nil
	}
	if in, ok := s.countedIn[ref]; ok {
		return s.applyAfterwards(in, ref, e, recorded)
	}
	p := s.findOwn(ref)
	v := p.Apply(e, recorded)
	return []PeriodEvent{{ref, p, e, v}}
}

func (s *StreamsState) findOwn(ref event.PeriodRef) *PeriodState {
	stream := StreamName(ref.Contract, ref.First)
	if s.own[stream] == nil {
		s.own[stream] = &PeriodState{}
	}
	return s.own[stream]
}

// applyShared folds an event of a shared stream.
func (s *StreamsState) applyShared(stream string, e event.Event, recorded time.Time) []PeriodEvent {
	if opened, ok := e.(event.UsageOpened); ok {
		if ref, _ := PeriodOf(opened); s.countedIn[ref] != stream || s.own[StreamName(ref.Contract, ref.First)] != nil {
			return []PeriodEvent{{ref, nil, e, PeriodNotOpen}}
		}
	}
	state := s.shared[stream]
	if state == nil {
		state = &SharedState{}
		s.shared[stream] = state
	}
	return state.Apply(e, recorded)
}

// applyAfterwards folds an event of the own stream of a period that is counted in a shared one.
func (s *StreamsState) applyAfterwards(in string, ref event.PeriodRef, e event.Event, recorded time.Time) []PeriodEvent {
	var p *PeriodState
	if shared := s.shared[in]; shared != nil {
		p = shared.Period(ref)
	}
	if _, states := e.(event.UsageLinesStated); p == nil || !p.opened {
		if !states && s.own[StreamName(ref.Contract, ref.First)] == nil {
			return nil
		}
		p = s.findOwn(ref)
	}
	if !CountsInOwnStream(p, e) {
		return nil
	}
	return []PeriodEvent{{ref, p, e, p.Apply(e, recorded)}}
}
