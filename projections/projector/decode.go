package projector

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/event"
)

const (
	minChunkEvents  = 100       // how many events are worth a goroutine
	minChunkBytes   = 256 << 10 // or how many bytes of events
	maxStagedEvents = 64        // staged events, of at most 64 KiB each, in one transaction, unless a single commit has more
)

// decodedEvent is an event with its handler. Its event is nil if no handler needs to be called.
type decodedEvent struct {
	handler       EventHandler
	event         event.Event
	record        Record
	stopErr       error  // why the event stops its account, nil if it does not
	stoppedOwner  string // what it stops, if that is not the owner of its stream
	isEmptyCommit bool   // it is a commit that names no staged events, which is skipped
}

// decodeEvent decodes one event as the model sees it. An event of a type that is not in the catalog stops the projection,
// because it may mean anything; in a stream that owners share it stops the owner that it names. A type of the catalog without a handler is not even decoded.
func (m Model) decodeEvent(ctx context.Context, codec *eventstore.Codec, r eventstore.RecordedEvent) (decodedEvent, error) {
	d := decodedEvent{record: Record{RecordedEvent: r}}
	var err error
	if _, known := event.Lookup(r.Type); !known {
		err := fmt.Errorf("%w %q", event.ErrUnknownType, r.Type)
		if m.sharedOwner(r) != "" {
			return m.stoppingEvent(r, &eventstore.UnusableError{Stream: r.Stream, Revision: r.Revision, Position: r.Position, Err: err})
		}
		return d, fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	d.handler, _ = m.handlerFor(r.Type)
	if d.handler.apply == nil && !eventstore.IsCorrection(r.Type) {
		return d, nil
	}
	opens := m.NeedsPersonalData && !d.handler.isSealed
	if d.event, err = decodePayload(ctx, codec, r, opens); err == nil && !m.OmitsMetadata {
		d.record.Meta, err = decodeMetadata(ctx, codec, r, d.event, opens && m.NeedsReasons)
	}
	d.isEmptyCommit = eventstore.IsEmptyCommit(d.event)
	if err != nil && m.DropRows != nil {
		return m.stoppingEvent(r, err)
	}
	return d, err
}

// decodePayload decodes the data of an event. Unless opens is set, its personal fields are empty and no vault is asked.
func decodePayload(ctx context.Context, codec *eventstore.Codec, r eventstore.RecordedEvent, opens bool) (event.Event, error) {
	if opens {
		return codec.Decode(ctx, r)
	}
	e, err := eventstore.DecodeSealed(r)
	if err != nil {
		return nil, err
	}
	return event.MapPersonal(e, func(event.Personal) (event.Personal, error) { return "", nil })
}

// decodeMetadata decodes the envelope of an event. Unless opens is set, its reason is empty and no vault is asked.
func decodeMetadata(ctx context.Context, codec *eventstore.Codec, r eventstore.RecordedEvent, e event.Event, opens bool) (eventstore.Metadata, error) {
	if opens {
		return codec.DecodeMetadata(ctx, r, e)
	}
	m, err := r.DecodeMetadata()
	m.Reason, m.SealedReason = "", ""
	return m, err
}

// destroyErasedKeys destroys the data keys of the accounts that events erase. It runs before the events are decoded: the
// command appends the erasure before it destroys the key, and until then an event after the erasure could be opened and put
// personal data back into rows.
func (m Model) destroyErasedKeys(ctx context.Context, codec *eventstore.Codec, events []eventstore.RecordedEvent) error {
	if !m.NeedsPersonalData {
		return nil
	}
	for _, r := range events {
		if r.Type != (event.AccountErased{}).EventType() {
			continue
		}
		if err := codec.DestroyKey(ctx, r.Stream); err != nil {
			return err
		}
	}
	return nil
}

// decodeEvents decodes events on all processors. It runs before the transaction begins, because a vault may take a while.
func (m Model) decodeEvents(ctx context.Context, codec *eventstore.Codec, events []eventstore.RecordedEvent) ([]decodedEvent, error) {
	if err := m.destroyErasedKeys(ctx, codec, events); err != nil {
		return nil, err
	}
	decoded := make([]decodedEvent, len(events))
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for from, to := range splitForDecoding(events) {
		readers.Go(func() (err error) {
			for i := from; i < to && err == nil; i++ {
				decoded[i], err = m.decodeEvent(ctx, codec, events[i])
			}
			return err
		})
	}
	return decoded, readers.Wait()
}

// splitForDecoding divides events into runs [from, to) that are each worth a goroutine.
func splitForDecoding(events []eventstore.RecordedEvent) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		from, bytes := 0, 0
		for i, e := range events {
			bytes += len(e.Data)
			if i+1 == len(events) || i+1-from >= minChunkEvents || bytes >= minChunkBytes {
				if !yield(from, i+1) {
					return
				}
				from, bytes = i+1, 0
			}
		}
	}
}

// batchPart is the part of a batch that one transaction writes.
type batchPart struct {
	feed.Batch
	decoded []decodedEvent
}

// splitBatch divides a batch so that the staged events of a part fit in memory. A part never ends inside an append: the
// checkpoint of a transaction is always that of a whole append. A batch without commits is one part. Only the last part has
// CaughtUp.
func splitBatch(b feed.Batch, decoded []decodedEvent) iter.Seq[batchPart] {
	return func(yield func(batchPart) bool) {
		if !slices.ContainsFunc(decoded, isCommit) {
			yield(batchPart{b, decoded})
			return
		}
		from, partStart, staged := b.From, 0, 0
		for first, end := range appendBounds(b.Events) {
			adding := 0
			for _, d := range decoded[first:end] {
				adding += d.stagedCount()
			}
			if staged > 0 && staged+adding > maxStagedEvents {
				last := b.Events[first-1]
				to := eventstore.Checkpoint{Log: b.To.Log, Position: last.Position, Event: last.ID}
				if !yield(batchPart{feed.Batch{From: from, To: to, Events: b.Events[partStart:first]}, decoded[partStart:first]}) {
					return
				}
				from, partStart, staged = to, first, 0
			}
			staged += adding
		}
		yield(batchPart{feed.Batch{From: from, To: b.To, Events: b.Events[partStart:], CaughtUp: b.CaughtUp}, decoded[partStart:]})
	}
}

// appendBounds yields where each append begins and ends among events, [first, end). Events with unreadable metadata count as
// one append each.
func appendBounds(events []eventstore.RecordedEvent) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		first := 0
		for i, e := range events {
			if meta, err := e.DecodeMetadata(); err == nil && !meta.EndOfAppend && i+1 < len(events) && events[i+1].Stream == e.Stream {
				continue
			}
			if !yield(first, i+1) {
				return
			}
			first = i + 1
		}
	}
}

// isCommit reports whether the event makes staged events real, at least one of them.
func isCommit(d decodedEvent) bool {
	_, ok := d.event.(event.StagedCommit)
	return ok && !d.isEmptyCommit
}

// stagedCount is how many staged events the event makes real.
func (d decodedEvent) stagedCount() int {
	e, ok := d.event.(event.StagedCommit)
	if !ok {
		return 0
	}
	_, n, _ := e.StagedStream()
	return n
}

// expandCommits inserts the staged events that commits make real before their commit.
func (m Model) expandCommits(ctx context.Context, w *worker, decoded []decodedEvent) ([]decodedEvent, error) {
	if !slices.ContainsFunc(decoded, isCommit) {
		return decoded, nil
	}
	all := make([]decodedEvent, 0, len(decoded))
	for _, d := range decoded {
		if isCommit(d) {
			staged, err := m.expandCommit(ctx, w, d)
			if err != nil {
				return nil, err
			}
			all = append(all, staged...)
			continue
		}
		all = append(all, d)
	}
	return all, nil
}

// expandCommit returns the staged events of a commit and then the commit. A commit takes effect as a whole or not at all: if
// one staged event is unusable, the result is that event alone, which stops the account.
func (m Model) expandCommit(ctx context.Context, w *worker, commit decodedEvent) ([]decodedEvent, error) {
	e := commit.event.(event.StagedCommit)
	rows, err := eventstore.ReadStagedEvents(ctx, w.store, commit.record.RecordedEvent, e)
	if err != nil {
		if m.DropRows == nil {
			return nil, err
		}
		stop, err := m.stoppingEvent(commit.record.RecordedEvent, err)
		return []decodedEvent{stop}, err
	}
	decoded, err := m.decodeEvents(ctx, w.codec, rows)
	for i := range decoded {
		if decoded[i].stopErr != nil {
			return decoded[i : i+1], nil
		}
		decoded[i].record.Commit, decoded[i].record.StagedNumber = e, i+1
	}
	return append(decoded, commit), err
}
