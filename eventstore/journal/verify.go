package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
)

// Verify reads everything that is durable and counts it: every frame's CRC, the chain across segments, the
// revisions of every stream, whole appends, and the indexes. Open checks much less. The first damage is a
// *eventstore.CorruptError. It may run beside readers and appends.
func (j *Journal) Verify(ctx context.Context) (events int, err error) {
	v := j.views.load()
	x := newStreamIndex()
	prev := j.crcSeed
	for i, s := range v.segments {
		x.activeBase = s.base
		p := newReplay(&cursor{segment: s, seed: j.crcSeed, pos: s.dataStart(), end: v.segmentEnd(i), prevCRC: prev}, func(b replayedAppend) error {
			events += len(b.ids)
			return errors.Join(ctx.Err(), j.checkOpen(), x.addAppend(b))
		})
		if err := p.run(); err != nil {
			return events, j.translateReadError(p.asCorrupt(err))
		}
		if p.wholeEnd != v.segmentEnd(i) {
			return events, newCorruptError(p.wholeEnd, "append without its last event")
		}
		prev = p.lastCRC
		var runs []streamRun
		x.rollSegment(noSegment, func(full []streamRun) { runs = full })
		if i < len(v.segments)-1 {
			if err := j.verifyIndex(s, runs); err != nil {
				return events, j.translateReadError(err)
			}
		}
	}
	return events, nil
}

func (j *Journal) checkOpen() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	return nil
}

func (j *Journal) verifyIndex(s *segment, runs []streamRun) error {
	if s.index.Load().file == nil {
		return nil
	}
	f, stored, err := openSegmentIndex(j.options.FS, s, j.logID)
	if errors.Is(err, errIndexMismatch) || err == nil && !bytes.Equal(stored, encodeSegmentIndex(j.logID, s, runs)) {
		err = newCorruptError(s.base, errIndexMismatch.Error())
	} else if err != nil {
		err = fmt.Errorf("read index: %w", err)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}
