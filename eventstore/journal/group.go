package journal

import (
	"fmt"

	"lieudit/eventstore"
)

const (
	maxGroupBytes   = 4 << 20 // about how many bytes one write and one sync take in
	maxGroupAppends = 4096    // and how many appends: fewer than are remembered
)

// group is what one sync makes durable.
type group struct {
	segments       []*segment // the log as it is with the group; the last one holds it
	pos            eventstore.Position
	buf            []byte
	appends        []placedAppend
	offsets        []uint32 // of the placed events
	lastCheckpoint eventstore.Checkpoint
	replies        []reply
	filledSegment  *segment // what the segment before has become, when this is the first group of its segment
}

// placedAppend is an append of the group: its events are offsets[from:to].
type placedAppend struct {
	key                    streamKey
	slot                   slot
	firstRevision          eventstore.Revision
	offsetsFrom, offsetsTo uint32
}

// reply is what a caller hears once the group is durable: even a refusal, since what it is based on may
// be in the group or in the one before.
type reply struct {
	request *appendRequest
	outcome
}

func (g *group) isEmpty() bool { return len(g.replies) == 0 }

func (g *group) reset() {
	clear(g.replies)
	*g = group{buf: g.buf[:0], appends: g.appends[:0], offsets: g.offsets[:0], replies: g.replies[:0]}
}

// stopWriting ends writing for good, with the first cause: a page whose write failed may look clean, so trying again would
// prove nothing.
func (j *Journal) stopWriting(cause error) error {
	stopped := fmt.Errorf("%w: the log stopped writing: %w", eventstore.ErrUnavailable, cause)
	if j.failure.CompareAndSwap(nil, &stopped) {
		j.options.Logger.Error("the log cannot write any more", "error", cause)
	}
	return *j.failure.Load()
}

// writeAndSync makes the group durable. After an error nothing is known of the disk but what was durable before.
func (g *group) writeAndSync() error {
	if len(g.appends) == 0 {
		return nil
	}
	s := g.segments[len(g.segments)-1]
	if _, err := s.file.WriteAt(g.buf, int64(g.pos-s.base)); err != nil {
		return fmt.Errorf("write log at %d: %w", g.pos, err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync log at %d: %w", g.pos, err)
	}
	return nil
}

// publishGroup lets readers see a group that is durable.
func (j *Journal) publishGroup(g *group) {
	if g.filledSegment != nil {
		j.index.rollSegment(g.segments[len(g.segments)-1].base, g.filledSegment.seal)
		j.segmentManager.requestIndex(g.filledSegment)
	}
	end := g.pos + eventstore.Position(len(g.buf))
	j.index.addGroup(g, func() { j.views.publish(view{segments: g.segments, end: end, lastCheckpoint: g.lastCheckpoint}) })
}
