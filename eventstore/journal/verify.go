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
	v := j.tail.load()
	x := newIndex()
	prev := j.seed
	for i, s := range v.segs {
		x.base = s.base
		p := newReplay(&cursor{seg: s, seed: j.seed, pos: s.data(), end: v.endOf(i), prev: prev}, func(b batch) error {
			events += len(b.ids)
			return errors.Join(ctx.Err(), j.stopped(), x.enter(b))
		})
		if err := p.run(); err != nil {
			return events, j.readError(p.fatal(err))
		}
		if p.end != v.endOf(i) {
			return events, damage(p.end, "append without its last event")
		}
		prev = p.crc
		var runs []run
		x.roll(nowhere, func(full []run) { runs = full })
		if i < len(v.segs)-1 {
			if err := j.verifyIndex(s, runs); err != nil {
				return events, j.readError(err)
			}
		}
	}
	return events, nil
}

func (j *Journal) stopped() error {
	if j.isClosed() {
		return eventstore.ErrClosed
	}
	return nil
}

func (j *Journal) verifyIndex(s *segment, runs []run) error {
	if s.index.Load().file == nil {
		return nil
	}
	f, have, err := readIndex(j.o.FS, s, j.id)
	if errors.Is(err, errIndex) || err == nil && !bytes.Equal(have, encodeIndex(j.id, s, runs)) {
		err = damage(s.base, errIndex.Error())
	} else if err != nil {
		err = fmt.Errorf("read index: %w", err)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}
