package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// Refold is the usage on the log, folded from its first event.
type Refold struct {
	Streams   map[string]*RefoldedStream // by the period's own stream
	Instances map[string]*Instance       // by id: those that have not ended cleanly

	log            eventstore.Store
	period         string
	shared         map[string]*sharedRefold // by name
	endedInstances map[string]bool          // events of an instance after its InstanceEnded are repetitions
}

// RefoldedStream is the fold of one period, and the snapshots and closings that contradict the fold.
type RefoldedStream struct {
	usagefold.PeriodUsage
	Revision      eventstore.Revision // of the last event about it that was folded, in the stream in which it is counted
	Closing       *event.UsageClosed  // nil if the period is open
	Misstatements []Misstatement

	sharedPeriod // of a period that is counted in a shared stream
}

// Misstatement is a snapshot, statement or closing that differs from what the events before it add up to.
type Misstatement struct {
	Revision eventstore.Revision
	Type     string
}

// Instance is a process that has begun to count, and may have ended before it answered all requests that it had counted.
type Instance struct {
	Started time.Time           // zero if its start is not on the log
	Last    map[string]LastTick // by stream: its last tick there, if that counts
}

// LastTick is the last tick of an instance on a stream. One on a shared stream is what it is to each period in which it counts.
type LastTick struct {
	At     time.Time
	Tick   event.UsageTicked
	Shared []usagefold.PeriodEvent
}

// FoldLog folds the periods whose first day begins with the text period, or all periods for "", up to the current end of the
// log.
func FoldLog(ctx context.Context, log eventstore.Store, period string) (*Refold, error) {
	f := &Refold{Streams: map[string]*RefoldedStream{}, Instances: map[string]*Instance{}, log: log, period: period, shared: map[string]*sharedRefold{}, endedInstances: map[string]bool{}}
	for d, err := range readDecoded(ctx, log) {
		if err == nil {
			err = f.applyEvent(ctx, d.record, d.event)
		}
		if err != nil {
			return nil, fmt.Errorf("fold the log: %w", err)
		}
	}
	return f, nil
}

// applyEvent folds an event of a period or of an instance. Events of other periods are skipped, but not those of instances,
// because an instance counts for many periods.
func (f *Refold) applyEvent(ctx context.Context, r eventstore.RecordedEvent, e event.Event) error {
	switch e := e.(type) {
	case event.InstanceStarted:
		if i := f.findOrAddInstance(e.InstanceID); i.Started.IsZero() {
			i.Started = r.Time
		}
		f.forgetIfEnded(e.InstanceID)
		return nil
	case event.InstanceEnded: // its last event
		f.endedInstances[e.InstanceID] = true
		f.forgetIfEnded(e.InstanceID)
		return nil
	case event.UsageMonthOpened:
		return nil
	}
	if shared := f.findShared(r.Stream); shared != nil {
		return f.applyShared(ctx, shared, r, e)
	}
	if !strings.HasPrefix(firstDay(r.Stream), f.period) {
		return nil
	}
	s := f.findOrAddStream(r.Stream)
	verdict, err := s.applyEvent(ctx, f.log, r, e)
	if tick, ok := e.(event.UsageTicked); ok && err == nil {
		f.findOrAddInstance(tick.InstanceID).recordTick(r, tick, verdict)
		f.forgetIfEnded(tick.InstanceID)
	}
	return err
}

// forgetIfEnded drops an instance that has ended cleanly. It is called after every event of an instance, because
// findOrAddInstance may have created it again.
func (f *Refold) forgetIfEnded(instanceID string) {
	if f.endedInstances[instanceID] {
		delete(f.Instances, instanceID)
	}
}

func (f *Refold) findOrAddStream(name string) *RefoldedStream {
	s := f.Streams[name]
	if s == nil {
		s = newRefoldedStream()
		f.Streams[name] = s
	}
	return s
}

// drop frees the fold of a period that was compared.
func (f *Refold) drop(stream string) {
	if s := f.Streams[stream]; s != nil && s.Shared != "" { // its shared stream refers to it
		*s = RefoldedStream{sharedPeriod: sharedPeriod{isCompared: true}}
	}
	delete(f.Streams, stream)
}

func newRefoldedStream() *RefoldedStream {
	return &RefoldedStream{PeriodUsage: *usagefold.NewPeriodUsage(), Revision: eventstore.NoStream}
}

// foldedRevision is the revision of the own stream up to which it was folded.
func (s *RefoldedStream) foldedRevision() eventstore.Revision {
	if s.Shared != "" {
		return s.OwnRevision
	}
	return s.Revision
}

func (f *Refold) findOrAddInstance(id string) *Instance {
	i := f.Instances[id]
	if i == nil {
		i = &Instance{Last: map[string]LastTick{}}
		f.Instances[id] = i
	}
	return i
}

// recordTick keeps a tick while it is the last one that counts. A tick that does not count drops the one before. A repetition
// is not a new tick, and changes nothing.
func (i *Instance) recordTick(r eventstore.RecordedEvent, tick event.UsageTicked, v usagefold.Verdict) {
	switch v {
	case usagefold.Counted:
		i.Last[r.Stream] = LastTick{At: r.Time, Tick: tick}
	case usagefold.Duplicate:
	default:
		delete(i.Last, r.Stream)
	}
}

// firstDay returns the first day of the period, with which the name of a usage stream ends.
func firstDay(stream string) string { return stream[max(len(stream)-len(time.DateOnly), 0):] }

// applyEvent folds an event of the period's own stream. A snapshot or closing is compared with the fold first.
func (s *RefoldedStream) applyEvent(ctx context.Context, store eventstore.Store, r eventstore.RecordedEvent, e event.Event) (usagefold.Verdict, error) {
	if counted, ok := e.(event.UsageCountedIn); ok && r.Revision == 0 {
		s.beginShared(counted.Stream)
	}
	if s.Shared != "" {
		return s.applyAfterwards(r, e), nil
	}
	isCorrect := true
	var err error
	switch e := e.(type) {
	case event.UsageSnapshotTaken:
		isCorrect, err = s.isSnapshotCorrect(ctx, store, r, e)
	case event.UsageClosed:
		c := s.Lines.ClosingEvent()
		if s.IsOpen() {
			s.Closing, isCorrect = &e, c.Total == e.Total && c.LineCount == e.LineCount && bytes.Equal(c.Digest, e.Digest)
		}
	}
	if !isCorrect {
		s.Misstatements = append(s.Misstatements, Misstatement{r.Revision, r.Type})
	}
	s.Revision = r.Revision
	return s.Apply(e, r.Time), err
}

// isSnapshotCorrect reports whether a snapshot is correct for the revision that it names: with the later events folded on
// top, it must equal the current state.
func (s *RefoldedStream) isSnapshotCorrect(ctx context.Context, store eventstore.Store, r eventstore.RecordedEvent, e event.UsageSnapshotTaken) (bool, error) {
	if e.AsOfRevision < 0 || e.AsOfRevision >= int64(r.Revision) || !s.IsOpen() && !s.IsClosed() {
		return false, nil
	}
	state := usagefold.RestorePeriod(e)
	if from := eventstore.Revision(e.AsOfRevision) + 1; from < r.Revision {
		for since, err := range store.ReadStream(ctx, r.Stream, from, eventstore.Forward) {
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
	}
	return reflect.DeepEqual(state.Snapshot(0), s.Snapshot(0)), nil
}

// CatchUp continues to fold the own stream of a period, up to a revision. The stream may have begun meanwhile. The ticks that it folds do not
// change Instances, which stays as of FoldLog.
func (f *Refold) CatchUp(ctx context.Context, stream string, to eventstore.Revision) error {
	from := eventstore.Revision(0)
	if s := f.Streams[stream]; s != nil {
		from = s.foldedRevision() + 1
	}
	for r, err := range f.log.ReadStream(ctx, stream, from, eventstore.Forward) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if r.Revision > to {
			return nil
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", stream, r.Revision, err)
		}
		if _, err := f.findOrAddStream(stream).applyEvent(ctx, f.log, r, e); err != nil {
			return err
		}
	}
	return nil
}
