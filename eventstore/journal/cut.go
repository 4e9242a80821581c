package journal

import (
	"bytes"
	"fmt"

	"lieudit/eventstore"
)

// cut leaves nothing after the last whole append that could ever be read again, and writes once more what no mark
// proves: a page whose write-back failed under an earlier process looks clean but is not on disk.
func (r *restore) cut(s *segment) error {
	from, to, err := dirty(s, r.tail.keep)
	if err != nil {
		return err
	}
	if to > from {
		r.o.Logger.Warn("cut the torn tail of the log", "position", uint64(r.tail.keep), "bytes", uint64(to-r.tail.keep))
	}
	if err := zero(s, from, to); err != nil {
		return fmt.Errorf("cut the torn tail: %w", err)
	}
	b := make([]byte, r.tail.keep-r.tail.proven)
	if _, err := s.file.ReadAt(b, int64(r.tail.proven-s.base)); err != nil {
		return fmt.Errorf("read the tail: %w", err)
	}
	if _, err := s.file.WriteAt(b, int64(r.tail.proven-s.base)); err != nil {
		return fmt.Errorf("write the tail again: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync the tail: %w", err)
	}
	return nil
}

// unproven makes sure that no mark says that bad, where the frames of s end, was ever on disk.
func (r *restore) unproven(s *segment, bad eventstore.Position) error {
	return chunks(s, bad, markSize, func(pos eventstore.Position, b []byte) error {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(markMagic))
			if i < 0 {
				return nil
			}
			at += i + len(markMagic)
			if at < markSize {
				continue
			}
			f, where := frame(b[at-markSize:at]), pos+eventstore.Position(at-markSize)
			if f.size() == markSize && f.check(where, r.seed) == "" && !f.isEvent() && f.durable() > bad {
				return damage(bad, fmt.Sprintf("the log goes on at %d", where))
			}
		}
	})
}

// dirty is the range after pos that is not zero.
func dirty(s *segment, pos eventstore.Position) (from, to eventstore.Position, err error) {
	err = chunks(s, pos, 0, func(at eventstore.Position, b []byte) error {
		rest := bytes.TrimLeft(b, "\x00")
		if len(rest) == 0 {
			return nil
		}
		if to == 0 {
			from = at + eventstore.Position(len(b)-len(rest))
		}
		to = at + eventstore.Position(len(bytes.TrimRight(b, "\x00")))
		return nil
	})
	return from, to, err
}

func zero(s *segment, from, to eventstore.Position) error {
	zeros := make([]byte, min(zeroStep, to-from))
	for ; from < to; from += eventstore.Position(len(zeros)) {
		zeros = zeros[:min(eventstore.Position(len(zeros)), to-from)]
		if _, err := s.file.WriteAt(zeros, int64(from-s.base)); err != nil {
			return err
		}
	}
	return nil
}

// chunks shows a segment from pos to its end, piece by piece; each piece begins with the last overlap bytes of
// the one before.
func chunks(s *segment, pos eventstore.Position, overlap int, show func(eventstore.Position, []byte) error) error {
	b := make([]byte, min(zeroStep, s.next()-pos))
	for pos < s.next() {
		b = b[:min(eventstore.Position(len(b)), s.next()-pos)]
		if _, err := s.file.ReadAt(b, int64(pos-s.base)); err != nil {
			return fmt.Errorf("read the tail: %w", err)
		}
		if err := show(pos, b); err != nil {
			return err
		}
		if pos += eventstore.Position(len(b)); pos < s.next() {
			pos -= eventstore.Position(overlap)
		}
	}
	return nil
}
