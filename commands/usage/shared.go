package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// This file puts periods into streams that contracts share, so that requests of different contracts share a tick.

// assignShared makes a shared stream the one in which a period is counted, unless another instance has decided that meanwhile. own is the
// period's own stream, which is empty; it is up to date afterwards.
func (m *Meter) assignShared(ctx context.Context, own *activeStream, ref event.PeriodRef) error {
	month := usagefold.MonthOf(ref.First)
	shards, err := m.openMonth(ctx, month)
	if err != nil {
		return err
	}
	stream := usagefold.SharedStreamName(month, usagefold.ShardOf(ref.Contract, shards))
	_, err = m.appendNamed(ctx, own.name, "counted in", eventstore.NoStream, event.UsageCountedIn{PeriodRef: ref, Stream: stream})
	if err != nil && !errors.Is(err, eventstore.ErrConflict) {
		return err
	}
	return own.catchUp(ctx)
}

// openMonth returns over how many streams the contracts are spread whose periods begin in a month. The first instance decides it.
func (m *Meter) openMonth(ctx context.Context, month string) (shards int64, err error) {
	if shards, ok := m.months.Load(month); ok {
		return shards.(int64), nil
	}
	for {
		shards, err := m.readMonth(ctx, month)
		if err != nil {
			return 0, err
		}
		if shards > 0 {
			m.months.Store(month, shards)
			return shards, nil
		}
		opened := event.UsageMonthOpened{Month: month, Shards: m.Shards}
		if _, err := m.appendNamed(ctx, usagefold.MonthStreamName(month), "open", eventstore.NoStream, opened); err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return 0, err
		}
	}
}

// readMonth returns how many shards a month has, or 0 if nobody has opened it.
func (m *Meter) readMonth(ctx context.Context, month string) (shards int64, err error) {
	for r, err := range m.store.ReadStream(ctx, usagefold.MonthStreamName(month), 0, eventstore.Forward) {
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", r.Stream, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return 0, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
		}
		if opened, ok := e.(event.UsageMonthOpened); ok && opened.Shards > 0 {
			return opened.Shards, nil
		}
	}
	return 0, nil
}

// loadSharedPeriod opens a period in a shared stream, unless another instance has. The fold ignores an opening that is too early by
// the log's clock; loadSharedPeriod then fails with a tooEarlyError.
func (m *Meter) loadSharedPeriod(ctx context.Context, stream string, ref event.PeriodRef, period plan.Period) (*activePeriod, error) {
	s, err := m.openSharedStream(ctx, stream)
	if err != nil {
		return nil, err
	}
	p := newActivePeriod(s, ref, period)
	if p.isOpenOrEnded() {
		return p, nil
	}
	opening, err := p.buildOpening(ctx)
	if err != nil {
		return nil, err
	}
	startedAt := m.clock.Now()
	done, err := m.appendNamed(ctx, stream, fmt.Sprintf("open %s %s %d", ref.Contract, ref.First, m.openings.Add(1)), eventstore.Any, opening)
	if err != nil {
		return nil, err
	}
	if err := p.awaitFold(ctx, ref.Contract); err != nil {
		return nil, err
	}
	if !p.isOpenOrEnded() {
		return nil, p.newTooEarlyError(ctx, startedAt, done.Revision)
	}
	return p, nil
}

// isOpenOrEnded reports whether somebody has opened the period.
func (p *activePeriod) isOpenOrEnded() (is bool) {
	p.readState(func(s *usagefold.PeriodState) { is = s.IsOpen() || s.IsEnded() })
	return is
}

// openSharedStream returns the fold of a shared stream. Only one task reads a stream, whoever waits for it.
func (m *Meter) openSharedStream(ctx context.Context, name string) (*activeStream, error) {
	for {
		if found, ok := m.streams.Load(name); ok {
			if s := found.(*activeStream); !s.isRetired() {
				return s, nil
			}
		}
		t := m.startShared("stream "+name, func(ctx context.Context) error {
			s, err := m.readStream(ctx, name, preparedAppend{})
			if err == nil {
				s.usedAt.Store(int64(time.Since(m.epoch)))
				m.streams.Store(name, s)
			}
			return err
		})
		select {
		case <-t.done:
			if t.err != nil {
				return nil, t.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isRetired reports whether the stream may not be used any more.
func (s *activeStream) isRetired() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.isRetired
}

// evictIdleStreams removes shared streams that no request has used for idleTimeout.
func (m *Meter) evictIdleStreams() {
	m.streams.Range(func(name, found any) bool {
		s := found.(*activeStream)
		if time.Since(m.epoch)-time.Duration(s.usedAt.Load()) > idleTimeout && s.queue.retireIfIdle() {
			m.streams.CompareAndDelete(name, found)
		}
		return true
	})
}
