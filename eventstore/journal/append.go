package journal

import (
	"context"
	"errors"
	"fmt"
	"math"

	"lieudit/eventstore"
)

var errInvalidAppend = errors.New("not an append")

// Append hands the events to the writer and waits for it.
func (j *Journal) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if j.isClosed() {
		return eventstore.AppendResult{}, eventstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return eventstore.AppendResult{}, unknownOutcome(err)
	}
	if err := j.validateAppend(stream, expected, events); err != nil {
		return eventstore.AppendResult{}, err
	}
	r := j.newRequest(stream, expected, events)
	if err := j.queue.enqueue(r); err != nil {
		return eventstore.AppendResult{}, err
	}
	select {
	case out := <-r.done:
		j.requestPool.Put(r)
		return out.result, out.err
	case <-ctx.Done():
		r.isAbandoned.Store(true)
		return eventstore.AppendResult{}, unknownOutcome(ctx.Err())
	}
}

func unknownOutcome(cause error) error { return fmt.Errorf("%w: %w", eventstore.ErrUnknown, cause) }

// validateAppend refuses what could never be written.
func (j *Journal) validateAppend(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) error {
	switch {
	case stream == "":
		return fmt.Errorf("%w: no stream", errInvalidAppend)
	case len(events) == 0:
		return fmt.Errorf("%w: no events", errInvalidAppend)
	case expected < eventstore.Any:
		return fmt.Errorf("%w: no revision %d can be expected", errInvalidAppend, expected)
	case len(stream) > math.MaxUint16:
		return fmt.Errorf("%w: stream name of %d bytes", eventstore.ErrTooLarge, len(stream))
	}
	bytes, framed := 0, segmentHeaderSize+2*durableMarkSize
	for i := range events {
		bytes += len(events[i].Type) + len(events[i].Data) + len(events[i].Metadata)
		framed += eventFrameSize(stream, &events[i])
	}
	if bytes > eventstore.MaxAppendBytes {
		return fmt.Errorf("%w: %d bytes", eventstore.ErrTooLarge, bytes)
	}
	if int64(framed) > j.options.SegmentSize {
		return fmt.Errorf("%w: %d events", eventstore.ErrTooLarge, len(events))
	}
	return nil
}

// newRequest encodes an append. It holds nothing of the caller's but the stream's name.
func (j *Journal) newRequest(stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) *appendRequest {
	r, ok := j.requestPool.Get().(*appendRequest)
	if !ok {
		r = &appendRequest{done: make(chan outcome, 1)}
	}
	r.stream, r.key, r.expected = stream, j.streamKeys.keyFor(stream), expected
	r.ids, r.frames = r.ids[:0], r.frames[:0]
	for i := range events {
		kind := byte(kindEvent)
		if i == len(events)-1 {
			kind = kindLastEvent
		}
		r.ids = append(r.ids, events[i].ID)
		r.frames = appendEventFrame(r.frames, stream, &events[i], kind)
	}
	return r
}
