package journal

import (
	"context"
	"errors"
	"fmt"
	"math"

	"lieudit/eventstore"
)

var errBatch = errors.New("not an append")

// Append hands the events to the writer and waits for it.
func (j *Journal) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if j.isClosed() {
		return eventstore.Committed{}, eventstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return eventstore.Committed{}, unknown(err)
	}
	if err := j.admit(stream, expected, events); err != nil {
		return eventstore.Committed{}, err
	}
	r := j.request(stream, expected, events)
	if err := j.queue.put(r); err != nil {
		return eventstore.Committed{}, err
	}
	select {
	case out := <-r.done:
		j.requests.Put(r)
		return out.committed, out.err
	case <-ctx.Done():
		r.gone.Store(true)
		return eventstore.Committed{}, unknown(ctx.Err())
	}
}

func unknown(cause error) error { return fmt.Errorf("%w: %w", eventstore.ErrUnknown, cause) }

// admit refuses what could never be written.
func (j *Journal) admit(stream string, expected eventstore.Revision, events []eventstore.Proposed) error {
	switch {
	case stream == "":
		return fmt.Errorf("%w: no stream", errBatch)
	case len(events) == 0:
		return fmt.Errorf("%w: no events", errBatch)
	case expected < eventstore.Any:
		return fmt.Errorf("%w: no revision %d can be expected", errBatch, expected)
	case len(stream) > math.MaxUint16:
		return fmt.Errorf("%w: stream name of %d bytes", eventstore.ErrTooLarge, len(stream))
	}
	bytes, framed := 0, headerSize+2*markSize
	for i := range events {
		bytes += len(events[i].Type) + len(events[i].Data) + len(events[i].Metadata)
		framed += frameSize(stream, &events[i])
	}
	if bytes > eventstore.MaxAppend {
		return fmt.Errorf("%w: %d bytes", eventstore.ErrTooLarge, bytes)
	}
	if int64(framed) > j.o.SegmentSize {
		return fmt.Errorf("%w: %d events", eventstore.ErrTooLarge, len(events))
	}
	return nil
}

// request encodes an append. It holds nothing of the caller's but the stream's name.
func (j *Journal) request(stream string, expected eventstore.Revision, events []eventstore.Proposed) *request {
	r, ok := j.requests.Get().(*request)
	if !ok {
		r = &request{done: make(chan outcome, 1)}
	}
	r.stream, r.key, r.expected = stream, j.keys.of(stream), expected
	r.ids, r.frames = r.ids[:0], r.frames[:0]
	for i := range events {
		kind := byte(kindEvent)
		if i == len(events)-1 {
			kind = kindEventEnd
		}
		r.ids = append(r.ids, events[i].ID)
		r.frames = appendEvent(r.frames, stream, &events[i], kind)
	}
	return r
}
