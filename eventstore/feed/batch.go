package feed

import (
	"context"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Batch is what one message holds: the events of whole appends, in the order of the log. It may hold none: then
// only the mark has moved.
type Batch struct {
	From, To eventstore.Mark // resume after From to get this batch again, after To to get the next
	Events   []eventstore.Recorded
	CaughtUp bool // the log had nothing more when this was read
}

type batchKey struct{}

// BatchOf is the batch a message of a feed carries.
func BatchOf(m *message.Message) (Batch, bool) {
	b, ok := m.Context().Value(batchKey{}).(Batch)
	return b, ok
}

// Keys of a message's metadata.
const (
	TopicKey    = "topic"
	FromKey     = "from"     // the position before the batch
	PositionKey = "position" // the position after it
	EventsKey   = "events"   // how many it holds
)

func (b Batch) message(ctx context.Context, topic string) *message.Message {
	m := message.NewMessageWithContext(context.WithValue(ctx, batchKey{}, b), uuid.NewString(), nil)
	m.Metadata = message.Metadata{
		TopicKey:    topic,
		FromKey:     strconv.FormatUint(uint64(b.From.Position), 10),
		PositionKey: strconv.FormatUint(uint64(b.To.Position), 10),
		EventsKey:   strconv.Itoa(len(b.Events)),
	}
	return m
}

const (
	wantedEvents = 500
	wantedBytes  = eventstore.MaxAppend
	maxLinger    = 20 * time.Millisecond
	markLinger   = 250 * time.Millisecond // with nothing to say but a mark
)

// cutter makes batches of the signals in a queue.
type cutter struct {
	queue  *queue
	mark   eventstore.Mark
	ready  []eventstore.Signal
	wanted int  // events in a batch
	live   bool // the reader has caught up: what comes now comes as it happens
	pace   time.Duration
	due    time.Time // before which a batch of what happens now waits for more

	batch Batch
	bytes int
}

// next is the next batch. It waits for the first signal as long as it takes; with that in hand it waits for more only a
// little while the log is being caught up with, and after that only as the pace says; a mark without events waits for
// company. A batch never ends inside an append.
func (c *cutter) next(ctx context.Context) (Batch, error) {
	c.batch, c.bytes = Batch{From: c.mark, To: c.mark}, 0
	var late <-chan time.Time
	for {
		if c.use() {
			return c.cut(), nil
		}
		if late == nil && (c.moved() || c.batch.CaughtUp) {
			late = time.After(c.linger())
		}
		more, err := c.queue.take(ctx, late)
		if err != nil {
			return Batch{}, err
		}
		if len(more) == 0 {
			if c.whole() {
				return c.cut(), nil
			}
			late = make(chan time.Time) // the rest of the append is on its way
		}
		c.ready = more
	}
}

// linger is how long a batch that has begun waits for more.
func (c *cutter) linger() time.Duration {
	switch {
	case !c.live:
		return maxLinger
	case len(c.batch.Events) == 0 && !c.batch.CaughtUp:
		return max(markLinger, time.Until(c.due))
	}
	return time.Until(c.due)
}

// use adds ready signals to the batch until it is to be cut, and says whether it is.
func (c *cutter) use() bool {
	for len(c.ready) > 0 {
		if c.full() && c.whole() {
			return true
		}
		s := c.ready[0]
		c.ready = c.ready[1:]
		c.batch.To = s.Mark
		switch s.Kind {
		case eventstore.Event:
			c.batch.Events, c.batch.CaughtUp = append(c.batch.Events, s.Event), false
			c.bytes += size(s.Event)
		case eventstore.CaughtUp:
			c.live, c.batch.CaughtUp = true, true
			if c.isDue() {
				return true
			}
		}
	}
	return len(c.batch.Events) > 0 && (c.full() || c.live && c.isDue()) && c.whole()
}

func (c *cutter) isDue() bool { return !time.Now().Before(c.due) }

func (c *cutter) cut() Batch {
	c.mark = c.batch.To
	if c.live {
		c.due = time.Now().Add(c.pace)
	}
	return c.batch
}

func (c *cutter) moved() bool { return len(c.batch.Events) > 0 || c.batch.To != c.batch.From }

func (c *cutter) full() bool { return len(c.batch.Events) >= c.wanted || c.bytes >= c.room() }

// room is how many bytes go into a batch of so many events.
func (c *cutter) room() int { return max(wantedBytes, wantedBytes/wantedEvents*c.wanted) }

// whole says whether the batch may end here. A run of events that could not be one append has no end mark to wait for.
func (c *cutter) whole() bool {
	n := len(c.batch.Events)
	if n == 0 || c.bytes > c.room()+eventstore.MaxAppend {
		return true
	}
	last := c.batch.Events[n-1]
	if len(c.ready) > 0 && c.ready[0].Kind == eventstore.Event && c.ready[0].Event.Stream != last.Stream {
		return true
	}
	meta, err := last.Meta()
	return err != nil || meta.End
}

func size(r eventstore.Recorded) int { return len(r.Type) + len(r.Data) + len(r.Metadata) }
