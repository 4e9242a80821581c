package journal

import (
	"fmt"

	"lieudit/eventstore"
)

const (
	groupSize    = 4 << 20 // about how many bytes one write and one sync take in
	groupAppends = 4096    // and how many appends: fewer than are remembered
)

// group is what one sync makes durable.
type group struct {
	segs    []*segment // the log as it is with the group; the last one holds it
	pos     eventstore.Position
	buf     []byte
	placed  []placed
	offsets []uint32 // of the placed events
	last    eventstore.Mark
	answers []answer
	full    *segment // what the segment before has become, when this is the first group of its segment
}

// placed is an append of the group: its events are offsets[from:to].
type placed struct {
	key      streamKey
	slot     slot
	first    eventstore.Revision
	from, to uint32
}

// answer is what a caller hears once the group is durable: even a refusal, since what it is based on may
// be in the group or in the one before.
type answer struct {
	to *request
	outcome
}

func (g *group) empty() bool { return len(g.answers) == 0 }

func (g *group) reset() {
	clear(g.answers)
	*g = group{buf: g.buf[:0], placed: g.placed[:0], offsets: g.offsets[:0], answers: g.answers[:0]}
}

// stop ends writing for good, with the first cause: a page whose write failed may look clean, so trying again would
// prove nothing.
func (j *Journal) stop(cause error) error {
	stopped := fmt.Errorf("%w: the log stopped writing: %w", eventstore.ErrUnavailable, cause)
	if j.failure.CompareAndSwap(nil, &stopped) {
		j.o.Logger.Error("the log cannot write any more", "error", cause)
	}
	return *j.failure.Load()
}

// write makes the group durable. After an error nothing is known of the disk but what was durable before.
func (g *group) write() error {
	if len(g.placed) == 0 {
		return nil
	}
	s := g.segs[len(g.segs)-1]
	if _, err := s.file.WriteAt(g.buf, int64(g.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", g.pos, err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync log at %d: %w", g.pos, err)
	}
	return nil
}

// show lets readers see a group that is durable.
func (j *Journal) show(g *group) {
	if g.full != nil {
		j.index.roll(g.segs[len(g.segs)-1].base, g.full.seal)
		j.keeper.seal(g.full)
	}
	end := g.pos + eventstore.Position(len(g.buf))
	j.index.publish(g, func() { j.tail.publish(view{segs: g.segs, end: end, last: g.last}) })
}
