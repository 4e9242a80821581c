package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
)

// trustedTime returns the time by which a request is counted. It fails while the clock is in doubt: a request would be counted in a
// period, or on a day, that may be wrong. If the clock has not been compared with the log's yet, it waits for that as long as the
// request may.
func (m *Meter) trustedTime(ctx context.Context, wait *waitlimit.Wait) (time.Time, error) {
	now, err := m.clock.Read()
	if err == nil || !errors.Is(err, clock.ErrNotCompared) {
		return now, err
	}
	if err := m.awaitShared(ctx, wait, "clock", m.compareClock); err != nil {
		return now, err
	}
	return m.clock.Read()
}

const (
	// comparisonInterval is how often the clock is compared with the log's while both agree.
	comparisonInterval = 10 * time.Minute
	// doubtInterval is how often it is compared while it is in doubt.
	doubtInterval = 10 * time.Second
)

// keepClockCompared compares the clock with the times of the log until ctx ends, if another machine stamps the log.
func (m *Meter) keepClockCompared(ctx context.Context) {
	if !m.clock.IsCompared() {
		return
	}
	for sinceLast := comparisonInterval; ; sinceLast += doubtInterval {
		if (sinceLast >= comparisonInterval || m.clock.Check() != nil) && m.compareClock(ctx) == nil {
			sinceLast = 0
		}
		if !clock.Sleep(ctx, doubtInterval) {
			return
		}
	}
}

// compareClock appends an event to learn the log's time, and compares the clock with it. The event repeats that this instance has
// started, which changes nothing for a reader.
func (m *Meter) compareClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	comparison := m.clock.BeginComparison()
	name := fmt.Sprintf("clock %d", m.comparisons.Add(1))
	done, err := m.appendInstanceEvent(ctx, name, event.InstanceStarted{InstanceID: m.instanceID.String()})
	if err != nil {
		return err
	}
	for r, err := range m.store.ReadStream(ctx, m.instanceStream(), done.Revision, eventstore.Forward) {
		if err != nil {
			return err
		}
		return comparison.End(r.Time)
	}
	return errEnded
}
