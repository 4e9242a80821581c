package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// This file folds the streams that several periods share. One fold of such a stream gives what each event is to each of its periods:
//
//	usage-2026-11.3 ──sharedRefold──► usagefold.PeriodEvent ──► RefoldedStream of the period ◄── its own stream
//
// The read model of one period may be ahead of the fold. The shared stream is then read on, and what that gives for other periods waits
// until their turn comes (sharedPeriod.pending).

// sharedRefold is the fold of a shared stream.
type sharedRefold struct {
	name          string
	state         usagefold.SharedState
	revision      eventstore.Revision // up to which it was folded
	periods       map[event.PeriodRef]*RefoldedStream
	snapshots     usagefold.SnapshotParts
	misstatements []Misstatement
}

// sharedPeriod is what a RefoldedStream has of a period that is counted in a shared stream.
type sharedPeriod struct {
	Shared      string              // the shared stream, or ""
	OwnRevision eventstore.Revision // of the last event of the own stream that was folded

	limit      int64 // the cap of the contract
	pending    []pendingPart
	statements int                      // how many the own stream has
	expected   []event.UsageLinesStated // that it should have; nil before the first one
	isCompared bool                     // nothing is folded any more
}

// pendingPart is what an event of the shared stream is to the period, with the state after it.
type pendingPart struct {
	revision eventstore.Revision
	part     usagefold.PeriodEvent
	state    usagefold.PeriodState
	limit    int64
}

// findShared returns the shared stream of a name, or nil for other streams.
func (f *Refold) findShared(name string) *sharedRefold {
	if strings.IndexByte(name, '.') < 0 {
		return nil
	}
	shared := f.shared[name]
	if _, _, isShared := usagefold.ParseSharedStreamName(name); shared == nil && isShared {
		shared = &sharedRefold{name: name, revision: eventstore.NoStream, periods: map[event.PeriodRef]*RefoldedStream{}}
		f.shared[name] = shared
	}
	return shared
}

// mayHold reports whether periods whose first day begins with a text can be in the stream.
func (s *sharedRefold) mayHold(period string) bool {
	month, _, _ := usagefold.ParseSharedStreamName(s.name)
	return strings.HasPrefix(month, period) || strings.HasPrefix(period, month)
}

// applyShared folds an event of a shared stream.
func (f *Refold) applyShared(ctx context.Context, shared *sharedRefold, r eventstore.RecordedEvent, e event.Event) error {
	if !shared.mayHold(f.period) {
		return nil
	}
	parts, err := f.advanceShared(ctx, shared, r, e)
	if err != nil {
		return err
	}
	for _, p := range parts {
		p.stream.applyPart(shared.name, p.pendingPart)
	}
	if tick, ok := e.(event.SharedUsageTicked); ok {
		f.findOrAddInstance(tick.InstanceID).recordSharedTick(r, parts)
		f.forgetIfEnded(tick.InstanceID)
	}
	return nil
}

// streamPart is a part with the period that it is for.
type streamPart struct {
	stream *RefoldedStream
	pendingPart
}

// advanceShared folds an event of a shared stream, and returns what it is to each period.
func (f *Refold) advanceShared(ctx context.Context, shared *sharedRefold, r eventstore.RecordedEvent, e event.Event) (parts []streamPart, err error) {
	if snapshot, ok := e.(event.SharedUsageSnapshotTaken); ok {
		isCorrect, err := shared.isSnapshotCorrect(ctx, f.log, r, snapshot)
		if err != nil {
			return nil, err
		}
		if !isCorrect {
			shared.misstatements = append(shared.misstatements, Misstatement{r.Revision, r.Type})
		}
	}
	shared.revision = r.Revision
	for _, part := range shared.state.Apply(e, r.Time) {
		if part.State == nil {
			continue
		}
		s, known := shared.periods[part.PeriodRef]
		if !known {
			if strings.HasPrefix(part.First.String(), f.period) {
				s = f.findOrAddStream(usagefold.StreamName(part.Contract, part.First))
			}
			shared.periods[part.PeriodRef] = s
		}
		if s == nil || s.isCompared {
			continue
		}
		limit, _, _ := part.State.Cap(part.Contract)
		parts = append(parts, streamPart{s, pendingPart{r.Revision, part, *part.State, limit}})
	}
	return parts, nil
}

// beginShared notes that the period is counted in a shared stream.
func (s *RefoldedStream) beginShared(stream string) {
	s.Shared, s.OwnRevision = stream, eventstore.NoStream
}

// applyPart folds what an event of a shared stream is to the period, if the period's own stream has named the stream.
func (s *RefoldedStream) applyPart(stream string, p pendingPart) {
	if s.Shared != stream {
		return
	}
	s.Revision = p.revision
	if !s.IsClosed() { // the shared stream does not know of the closing
		s.PeriodState, s.limit = p.state, p.limit
	}
	s.Lines.Apply(p.part.Event, p.part.Verdict)
}

// totals returns how many requests count for the contract, its cap, and whether only corrections can change that.
func (s *RefoldedStream) totals() (used, limit int64, isEnded bool) {
	limit = s.limit
	if s.Shared == "" {
		limit, _, _ = s.Cap(s.Contract)
	}
	return s.Used(s.Contract), limit, s.IsEnded()
}

// shownRevision is the Revision as the read model has it: zero if there is only what the own stream of the period states.
func (s *RefoldedStream) shownRevision() int64 {
	if s.Shared != "" {
		return max(int64(s.Revision), 0)
	}
	return int64(s.Revision)
}

// applyAfterwards folds an event of the own stream of a period that is counted in a shared one. Statements and the closing are compared with
// the fold.
func (s *RefoldedStream) applyAfterwards(r eventstore.RecordedEvent, e event.Event) usagefold.Verdict {
	s.OwnRevision = r.Revision
	isCorrect := true
	switch e := e.(type) {
	case event.UsageLinesStated:
		isCorrect = s.isStatementCorrect(e)
	case event.UsageClosed:
		if !s.IsClosed() {
			isCorrect = s.IsEnded() && s.statements == len(s.expectedStatements()) && isSameData(s.Lines.ClosingEvent(), e)
		}
		if s.IsEnded() && !s.IsClosed() {
			s.Closing = &e
		}
	}
	if !isCorrect {
		s.Misstatements = append(s.Misstatements, Misstatement{r.Revision, r.Type})
	}
	if !usagefold.CountsInOwnStream(&s.PeriodState, e) {
		return usagefold.PeriodNotOpen
	}
	if _, states := e.(event.UsageLinesStated); states && s.limit == 0 {
		defer func() { s.limit, _, _ = s.Cap(s.Contract) }() // there is no shared stream that has it
	}
	return s.Apply(e, r.Time)
}

// isStatementCorrect reports whether a statement is the next one that the own stream should have. Without the shared stream nothing
// contradicts it.
func (s *RefoldedStream) isStatementCorrect(e event.UsageLinesStated) bool {
	if s.Revision == eventstore.NoStream {
		return true
	}
	expected := s.expectedStatements()
	s.statements++
	return s.statements <= len(expected) && isSameData(expected[s.statements-1], e)
}

// expectedStatements are those that the own stream of an ended period should have: none without the shared stream.
func (s *RefoldedStream) expectedStatements() []event.UsageLinesStated {
	if s.expected == nil && s.IsEnded() && s.Revision != eventstore.NoStream {
		s.expected = s.Statements()
	}
	return s.expected
}

// isSameData reports whether two events are the same on the log.
func isSameData(a, b event.Event) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// isSnapshotCorrect is RefoldedStream.isSnapshotCorrect for a part of a snapshot. All parts together are compared, once they are there.
func (s *sharedRefold) isSnapshotCorrect(ctx context.Context, store eventstore.Store, r eventstore.RecordedEvent, e event.SharedUsageSnapshotTaken) (bool, error) {
	if e.AsOfRevision < 0 || e.AsOfRevision >= int64(r.Revision) || e.Part < 1 || e.Part > e.Parts {
		return false, nil
	}
	parts, isComplete := s.snapshots.Add(e)
	if !isComplete {
		return true, nil
	}
	s.snapshots = usagefold.SnapshotParts{} // they would be kept until the end
	state := usagefold.RestoreShared(parts)
	for since, err := range store.ReadStream(ctx, s.name, eventstore.Revision(e.AsOfRevision)+1, eventstore.Forward) {
		if err != nil {
			return false, err
		}
		if since.Revision >= r.Revision {
			break
		}
		e, err := event.Decode(since.Type, since.Data)
		if err != nil {
			return false, err
		}
		state.Apply(e, since.Time)
	}
	return reflect.DeepEqual(state.Snapshot("", 0), s.state.Snapshot("", 0)), nil
}

// catchUpShared continues to fold the shared stream of a period, up to a revision, and then the period.
func (f *Refold) catchUpShared(ctx context.Context, stream string, to eventstore.Revision) error {
	s := f.Streams[stream]
	if s == nil || s.Shared == "" {
		return nil
	}
	shared := f.findShared(s.Shared)
	if shared == nil {
		return nil
	}
	if shared.revision < to {
		if err := f.readShared(ctx, shared, to); err != nil {
			return fmt.Errorf("read %s: %w", shared.name, err)
		}
	}
	n := 0
	for n < len(s.pending) && s.pending[n].revision <= to {
		s.applyPart(shared.name, s.pending[n])
		n++
	}
	s.pending = s.pending[n:]
	return nil
}

// readShared continues to fold a shared stream. What it gives for periods waits.
func (f *Refold) readShared(ctx context.Context, shared *sharedRefold, to eventstore.Revision) error {
	for r, err := range f.log.ReadStream(ctx, shared.name, shared.revision+1, eventstore.Forward) {
		if err != nil {
			return err
		}
		if r.Revision > to {
			return nil
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("@%d: %w", r.Revision, err)
		}
		parts, err := f.advanceShared(ctx, shared, r, e)
		if err != nil {
			return err
		}
		for _, p := range parts {
			p.stream.pending = append(p.stream.pending, p.pendingPart)
		}
	}
	return nil
}

// recordSharedTick keeps what a tick of a shared stream is to the periods in which it counts, as recordTick does.
func (i *Instance) recordSharedTick(r eventstore.RecordedEvent, parts []streamPart) {
	last, isRepeated := LastTick{At: r.Time}, false
	for _, p := range parts {
		switch p.part.Verdict {
		case usagefold.Counted:
			last.Shared = append(last.Shared, p.part)
		case usagefold.Duplicate:
			isRepeated = true
		}
	}
	switch {
	case last.Shared != nil:
		i.Last[r.Stream] = last
	case !isRepeated:
		delete(i.Last, r.Stream)
	}
}
