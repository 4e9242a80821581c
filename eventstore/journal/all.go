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

// progressEvery is how many bytes of unwanted events go by before a reader is told where it is.
const progressEvery = 1 << 20

// ReadAll reads what is durable now.
func (j *Journal) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.reader(ctx, after, want, yield)
		if err == nil {
			err = r.catchUp(j.tail.load())
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(eventstore.Signal{}, j.readError(err))
		}
	}
}

// Subscribe reads what is durable now and then whatever becomes durable, woken by the group that wrote it.
func (j *Journal) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		r, err := j.reader(ctx, after, want, yield)
		for err == nil {
			v, changed := j.tail.watch()
			if err = r.catchUp(v); err != nil {
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
		if !errors.Is(err, errEnough) {
			yield(eventstore.Signal{}, j.readError(err))
		}
	}
}

// allReader goes through the whole log.
type allReader struct {
	j     *Journal
	ctx   context.Context
	want  eventstore.Filter
	yield func(eventstore.Signal, error) bool

	cursor  cursor
	at      int // index of the cursor's segment
	mark    eventstore.Mark
	unsaid  int  // bytes that went by since something was said
	behind  bool // an event was said since the last CaughtUp, or none yet was
	streams names
	types   names
}

func (j *Journal) reader(ctx context.Context, after eventstore.Mark, want eventstore.Filter, yield func(eventstore.Signal, error) bool) (*allReader, error) {
	if err := j.stopped(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &allReader{j: j, ctx: ctx, want: want, yield: yield, behind: true, streams: names{}, types: names{}}
	r.mark = eventstore.Mark{Log: j.id, Position: after.Position, Event: after.Event}
	return r, r.seek(j.tail.load(), after)
}

// seek puts the cursor behind a mark, having made sure that it stands in this log.
func (r *allReader) seek(v view, after eventstore.Mark) error {
	if after.Log != uuid.Nil && after.Log != r.j.id {
		return &eventstore.DivergedError{Mark: after, Why: "it is of log " + after.Log.String(), Other: true}
	}
	if after.Position == 0 {
		s := v.segs[0]
		r.cursor = cursor{seg: s, seed: r.j.seed, pos: s.data(), prev: r.j.seed}
		return nil
	}
	i := v.holding(after.Position)
	if i < 0 || after.Position < v.segs[i].data() || after.Position >= v.endOf(i) {
		return &eventstore.DivergedError{Mark: after, Why: fmt.Sprintf("the log ends at %d", v.end)}
	}
	s := v.segs[i]
	f, err := s.at(after.Position, v.endOf(i), r.j.seed)
	if err != nil {
		return r.stray(v, i, after, err)
	}
	if !f.isEvent() || f.id() != after.Event {
		return &eventstore.DivergedError{Mark: after, Why: "another event stands there"}
	}
	r.at = i
	r.cursor = cursor{seg: s, seed: r.j.seed, pos: after.Position + eventstore.Position(f.size()), prev: f.crc()}
	return nil
}

// stray finds out why no frame can be read at a mark: the frame is damaged, or none ever began there.
func (r *allReader) stray(v view, i int, after eventstore.Mark, cause error) error {
	var corrupt *eventstore.CorruptError
	if !errors.As(cause, &corrupt) {
		return cause
	}
	s := v.segs[i]
	c := cursor{seg: s, seed: r.j.seed, pos: s.data(), end: v.endOf(i), prev: v.before(i, r.j.seed)}
	for c.pos < after.Position {
		if _, err := c.next(); err != nil {
			return err
		}
	}
	if c.pos == after.Position {
		return cause
	}
	return &eventstore.DivergedError{Mark: after, Why: "no event begins there"}
}

// catchUp says all that v shows and then that it has.
func (r *allReader) catchUp(v view) error {
	for {
		r.cursor.end = v.endOf(r.at)
		if err := r.segment(); err != nil {
			return err
		}
		if r.at == len(v.segs)-1 {
			break
		}
		r.at++
		r.cursor.seg, r.cursor.pos, r.cursor.block = v.segs[r.at], v.segs[r.at].data(), nil
	}
	if err := r.progress(1); err != nil || !r.behind {
		return err
	}
	r.behind = false
	return r.say(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: r.mark})
}

// segment says what the cursor's segment holds up to the cursor's end.
func (r *allReader) segment() error {
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := r.stopped(); err != nil {
				return err
			}
		}
		f, err := r.cursor.next()
		if err != nil || f == nil {
			return err
		}
		if !f.isEvent() {
			continue
		}
		if err := r.event(f); err != nil {
			return err
		}
	}
}

func (r *allReader) stopped() error {
	if err := r.j.stopped(); err != nil {
		return err
	}
	return r.ctx.Err()
}

func (r *allReader) event(f frame) error {
	r.mark.Position, r.mark.Event = f.position(), f.id()
	if !wants(r.want, f.stream()) {
		r.unsaid += len(f)
		return r.progress(progressEvery)
	}
	r.unsaid, r.behind = 0, true
	e := r.types.recorded(f, r.streams.of(f.stream()))
	return r.say(eventstore.Signal{Kind: eventstore.Event, Event: e, Mark: r.mark})
}

// progress tells where the reader is once enough has gone by unsaid.
func (r *allReader) progress(enough int) error {
	if r.unsaid < enough {
		return nil
	}
	r.unsaid = 0
	return r.say(eventstore.Signal{Kind: eventstore.Progress, Mark: r.mark})
}

func (r *allReader) say(s eventstore.Signal) error {
	if !r.yield(s, nil) {
		return errEnough
	}
	return nil
}

// readError is what a reader is told: a file that was closed under it means that the journal was.
func (j *Journal) readError(err error) error {
	if errors.Is(err, os.ErrClosed) && j.isClosed() {
		return eventstore.ErrClosed
	}
	return err
}
