package starts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// endpoints are those that requests are spread over.
var endpoints = []string{"GET /address/autocomplete", "GET /address/verify", "GET /me"}

// bytesPerAppend is about how many bytes are made durable together. The program makes each tick durable before it answers; a log of
// millions would take an hour to write so. What is on the log is the same.
const bytesPerAppend = 256 << 10

// tickWriter continues a shared stream as an instance would that counts for all its periods.
type tickWriter struct {
	log        eventstore.Store
	codec      *eventstore.Codec
	instanceID uuid.UUID
	sequence   *int64 // of the instance's last tick, over all streams
	stream     string
	accounts   []*countedAccount // whose periods are in the stream

	state               *usagefold.SharedState
	revision            eventstore.Revision // of the last event, those in pending included
	eventsSinceSnapshot int
	snapshotParts       []event.SharedUsageSnapshotTaken // those that are still to be written
	pending             []eventstore.ProposedEvent
	pendingBytes        int
}

// readStream folds what the stream holds.
func (t *tickWriter) readStream(ctx context.Context) error {
	t.state, t.revision = &usagefold.SharedState{}, eventstore.NoStream
	for r, err := range t.log.ReadStream(ctx, t.stream, 0, eventstore.Forward) {
		if err != nil {
			return err
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
		}
		t.apply(e, r.Time)
	}
	return nil
}

// apply folds the next event of the stream.
func (t *tickWriter) apply(e event.Event, recorded time.Time) []usagefold.PeriodEvent {
	t.revision++
	t.eventsSinceSnapshot++
	if _, ok := e.(event.SharedUsageSnapshotTaken); ok {
		t.eventsSinceSnapshot = 0
	}
	return t.state.Apply(e, recorded)
}

// writeTick adds a tick of the given number of requests to what is to be appended, each by an account and for an endpoint that are drawn, and a part
// of a snapshot if the program would add one.
func (t *tickWriter) writeTick(ctx context.Context, random *rand.Rand, day plan.Date, requests int) error {
	*t.sequence++
	tick := event.SharedUsageTicked{InstanceID: t.instanceID.String(), Sequence: *t.sequence, Day: day, AsOfRevision: int64(t.revision)}
	events := []event.Event{t.state.BuildTick(tick, t.drawLines(random, requests))}
	if part, isDue := t.nextSnapshotPart(); isDue {
		events = append(events, part)
	}
	proposed, err := t.codec.Encode(ctx, t.stream, uuid.New(), eventstore.Metadata{Actor: eventstore.SystemActor}, events)
	if err != nil {
		return err
	}
	for i, e := range events {
		for _, what := range t.apply(e, time.Time{}) {
			if what.Verdict != usagefold.Counted {
				return fmt.Errorf("%s@%d does not count for %s: %v", t.stream, t.revision, what.Contract, what.Verdict)
			}
		}
		t.pending = append(t.pending, proposed[i])
		t.pendingBytes += len(proposed[i].Type) + len(proposed[i].Data) + len(proposed[i].Metadata)
	}
	if t.pendingBytes < bytesPerAppend {
		return nil
	}
	return t.flush(ctx)
}

// drawLines returns the lines of requests, and adds these to the totals of their accounts.
func (t *tickWriter) drawLines(random *rand.Rand, requests int) []usagefold.SharedLine {
	lines := make([]usagefold.SharedLine, requests)
	for i := range lines {
		a := t.accounts[random.IntN(len(t.accounts))]
		a.requests++
		lines[i] = usagefold.SharedLine{UsedKey: a.usedKey, Endpoint: endpoints[random.IntN(len(endpoints))], Requests: 1}
	}
	slices.SortFunc(lines, usagefold.CompareLines)
	merged := lines[:1]
	for _, l := range lines[1:] {
		if last := &merged[len(merged)-1]; usagefold.CompareLines(*last, l) == 0 {
			last.Requests += l.Requests
		} else {
			merged = append(merged, l)
		}
	}
	return merged
}

// nextSnapshotPart returns what the program would append with the next tick. A snapshot is of the state before the tick with its first part.
func (t *tickWriter) nextSnapshotPart() (part event.SharedUsageSnapshotTaken, isDue bool) {
	if len(t.snapshotParts) == 0 && t.eventsSinceSnapshot >= usage.EventsPerSharedSnapshot(t.state.Items()) {
		t.snapshotParts = t.state.Snapshot(t.instanceID.String(), int64(t.revision))
	}
	if len(t.snapshotParts) == 0 {
		return part, false
	}
	part, t.snapshotParts = t.snapshotParts[0], t.snapshotParts[1:]
	return part, true
}

// flush appends what is pending.
func (t *tickWriter) flush(ctx context.Context) error {
	if len(t.pending) == 0 {
		return nil
	}
	done, err := t.log.Append(ctx, t.stream, eventstore.Any, t.pending)
	if err == nil && done.Revision != t.revision {
		err = fmt.Errorf("%s ends at %d, not at %d", t.stream, done.Revision, t.revision)
	}
	t.pending, t.pendingBytes = t.pending[:0], 0
	return err
}
