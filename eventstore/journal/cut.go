package journal

import (
	"bytes"
	"fmt"

	"lieudit/eventstore"
)

// cutTornTail leaves nothing after the last whole append that could ever be read again, and writes once more what no mark
// proves: a page whose write-back failed under an earlier process looks clean but is not on disk.
func (r *recovery) cutTornTail(s *segment) error {
	from, to, err := findNonZero(s, r.tailReplay.keepEnd)
	if err != nil {
		return err
	}
	if to > from {
		r.options.Logger.Warn("cut the torn tail of the log", "position", uint64(r.tailReplay.keepEnd), "bytes", uint64(to-r.tailReplay.keepEnd))
	}
	if err := writeZeros(s, from, to); err != nil {
		return fmt.Errorf("cut the torn tail: %w", err)
	}
	b := make([]byte, r.tailReplay.keepEnd-r.tailReplay.provenEnd)
	if _, err := s.file.ReadAt(b, int64(r.tailReplay.provenEnd-s.base)); err != nil {
		return fmt.Errorf("read the tail: %w", err)
	}
	if _, err := s.file.WriteAt(b, int64(r.tailReplay.provenEnd-s.base)); err != nil {
		return fmt.Errorf("write the tail again: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync the tail: %w", err)
	}
	return nil
}

// checkNoMarkBeyond makes sure that no mark says that bad, where the frames of s end, was ever on disk.
func (r *recovery) checkNoMarkBeyond(s *segment, bad eventstore.Position) error {
	return readChunks(s, bad, durableMarkSize, func(pos eventstore.Position, b []byte) error {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(durableMarkMagic))
			if i < 0 {
				return nil
			}
			at += i + len(durableMarkMagic)
			if at < durableMarkSize {
				continue
			}
			f, markPosition := frame(b[at-durableMarkSize:at]), pos+eventstore.Position(at-durableMarkSize)
			if f.size() == durableMarkSize && f.invalidReason(markPosition, r.crcSeed) == "" && !f.isEvent() && f.durableEnd() > bad {
				return newCorruptError(bad, fmt.Sprintf("the log goes on at %d", markPosition))
			}
		}
	})
}

// findNonZero is the range after pos that is not zero.
func findNonZero(s *segment, pos eventstore.Position) (from, to eventstore.Position, err error) {
	err = readChunks(s, pos, 0, func(at eventstore.Position, b []byte) error {
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

func writeZeros(s *segment, from, to eventstore.Position) error {
	zeros := make([]byte, min(chunkSize, to-from))
	for ; from < to; from += eventstore.Position(len(zeros)) {
		zeros = zeros[:min(eventstore.Position(len(zeros)), to-from)]
		if _, err := s.file.WriteAt(zeros, int64(from-s.base)); err != nil {
			return err
		}
	}
	return nil
}

// readChunks shows a segment from pos to its end, piece by piece; each piece begins with the last overlap bytes of
// the one before.
func readChunks(s *segment, pos eventstore.Position, overlap int, visit func(eventstore.Position, []byte) error) error {
	b := make([]byte, min(chunkSize, s.nextBase()-pos))
	for pos < s.nextBase() {
		b = b[:min(eventstore.Position(len(b)), s.nextBase()-pos)]
		if _, err := s.file.ReadAt(b, int64(pos-s.base)); err != nil {
			return fmt.Errorf("read the tail: %w", err)
		}
		if err := visit(pos, b); err != nil {
			return err
		}
		if pos += eventstore.Position(len(b)); pos < s.nextBase() {
			pos -= eventstore.Position(overlap)
		}
	}
	return nil
}
