package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// checkpointBytes is how many bytes of unwanted events go by before a reader is told where it is.
const checkpointBytes = 1 << 20

// ReadAll reads what is durable now.
func (j *Journal) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.newLogReader(ctx, after, filter, yield)
		if err == nil {
			err = r.readUpTo(j.views.load())
		}
		if err != nil && !errors.Is(err, errReaderDone) {
			yield(eventstore.Signal{}, j.translateReadError(err))
		}
	}
}

// Subscribe reads what is durable now and then whatever becomes durable, woken by the group that wrote it.
func (j *Journal) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.newLogReader(ctx, after, filter, yield)
		for err == nil {
			v, changed := j.views.watch()
			if err = r.readUpTo(v); err != nil {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			case <-j.closing:
				err = eventstore.ErrClosed
			}
		}
		if !errors.Is(err, errReaderDone) {
			yield(eventstore.Signal{}, j.translateReadError(err))
		}
	}
}

// logReader goes through the whole log.
type logReader struct {
	j      *Journal
	ctx    context.Context
	filter eventstore.Filter
	yield  func(eventstore.Signal, error) bool

	cursor       cursor
	segmentIndex int // index of the cursor's segment
	checkpoint   eventstore.Checkpoint
	skippedBytes int  // bytes that went by since something was said
	owesCaughtUp bool // an event was said since the last CaughtUp, or none yet was
	streamNames  interner
	typeNames    interner
}

func (j *Journal) newLogReader(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter, yield func(eventstore.Signal, error) bool) (*logReader, error) {
	if err := j.checkOpen(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &logReader{j: j, ctx: ctx, filter: filter, yield: yield, owesCaughtUp: true, streamNames: interner{}, typeNames: interner{}}
	r.checkpoint = eventstore.Checkpoint{Log: j.logID, Position: after.Position, Event: after.Event}
	return r, r.seekAfter(j.views.load(), after)
}

// seekAfter puts the cursor behind a mark, having made sure that it stands in this log.
func (r *logReader) seekAfter(v view, after eventstore.Checkpoint) error {
	if after.Log != uuid.Nil && after.Log != r.j.logID {
		return &eventstore.DivergedError{Checkpoint: after, Reason: "it is of log " + after.Log.String(), IsOtherLog: true}
	}
	if after.Position == 0 {
		s := v.segments[0]
		r.cursor = cursor{segment: s, seed: r.j.crcSeed, pos: s.dataStart(), prevCRC: r.j.crcSeed}
		return nil
	}
	i := v.findSegment(after.Position)
	if i < 0 || after.Position < v.segments[i].dataStart() || after.Position >= v.segmentEnd(i) {
		return &eventstore.DivergedError{Checkpoint: after, Reason: fmt.Sprintf("the log ends at %d", v.end)}
	}
	s := v.segments[i]
	f, err := s.readFrameAt(after.Position, v.segmentEnd(i), r.j.crcSeed)
	if err != nil {
		return r.explainBadCheckpoint(v, i, after, err)
	}
	if !f.isEvent() || f.id() != after.Event {
		return &eventstore.DivergedError{Checkpoint: after, Reason: "another event stands there"}
	}
	r.segmentIndex = i
	r.cursor = cursor{segment: s, seed: r.j.crcSeed, pos: after.Position + eventstore.Position(f.size()), prevCRC: f.crc()}
	return nil
}

// explainBadCheckpoint finds out why no frame can be read at a mark: the frame is damaged, or none ever began there.
func (r *logReader) explainBadCheckpoint(v view, i int, after eventstore.Checkpoint, cause error) error {
	var corrupt *eventstore.CorruptError
	if !errors.As(cause, &corrupt) {
		return cause
	}
	s := v.segments[i]
	c := cursor{segment: s, seed: r.j.crcSeed, pos: s.dataStart(), end: v.segmentEnd(i), prevCRC: v.crcBefore(i, r.j.crcSeed)}
	for c.pos < after.Position {
		if _, err := c.nextFrame(); err != nil {
			return err
		}
	}
	if c.pos == after.Position {
		return cause
	}
	return &eventstore.DivergedError{Checkpoint: after, Reason: "no event begins there"}
}

// readUpTo says all that v shows and then that it has.
func (r *logReader) readUpTo(v view) error {
	for {
		r.cursor.end = v.segmentEnd(r.segmentIndex)
		if err := r.readSegment(); err != nil {
			return err
		}
		if r.segmentIndex == len(v.segments)-1 {
			break
		}
		r.segmentIndex++
		r.cursor.segment, r.cursor.pos, r.cursor.block = v.segments[r.segmentIndex], v.segments[r.segmentIndex].dataStart(), nil
	}
	if err := r.reportCheckpoint(1); err != nil || !r.owesCaughtUp {
		return err
	}
	r.owesCaughtUp = false
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: r.checkpoint})
}

// readSegment says what the cursor's readSegment holds up to the cursor's end.
func (r *logReader) readSegment() error {
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := r.checkRunning(); err != nil {
				return err
			}
		}
		f, err := r.cursor.nextFrame()
		if err != nil || f == nil {
			return err
		}
		if !f.isEvent() {
			continue
		}
		if err := r.handleEvent(f); err != nil {
			return err
		}
	}
}

func (r *logReader) checkRunning() error {
	if err := r.j.checkOpen(); err != nil {
		return err
	}
	return r.ctx.Err()
}

func (r *logReader) handleEvent(f frame) error {
	r.checkpoint.Position, r.checkpoint.Event = f.position(), f.id()
	if !matchesFilter(r.filter, f.stream()) {
		r.skippedBytes += len(f)
		return r.reportCheckpoint(checkpointBytes)
	}
	r.skippedBytes, r.owesCaughtUp = 0, true
	e := r.typeNames.decodeEvent(f, r.streamNames.intern(f.stream()))
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.EventAppeared, Event: e, Checkpoint: r.checkpoint})
}

// reportCheckpoint tells where the reader is once enough has gone by unsaid.
func (r *logReader) reportCheckpoint(minBytes int) error {
	if r.skippedBytes < minBytes {
		return nil
	}
	r.skippedBytes = 0
	return r.yieldSignal(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: r.checkpoint})
}

func (r *logReader) yieldSignal(s eventstore.Signal) error {
	if !r.yield(s, nil) {
		return errReaderDone
	}
	return nil
}

// translateReadError is what a reader is told: a file that was closed under it means that the journal was.
func (j *Journal) translateReadError(err error) error {
	if errors.Is(err, os.ErrClosed) && j.isClosed() {
		return eventstore.ErrClosed
	}
	return err
}
