package journal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// segment is one file of the log.
type segment struct {
	base eventstore.Position
	size int64
	file File

	// Of a segment that is full: where its frames end, where the log's last event up to there is, and the CRC of
	// the last frame.
	end, final eventstore.Position
	last       uint32

	index atomic.Pointer[sealed]
}

func (s *segment) data() eventstore.Position { return s.base + headerSize }
func (s *segment) next() eventstore.Position { return s.base + eventstore.Position(s.size) }

// room is how far appends may go: the last mark has to fit behind them.
func (s *segment) room() eventstore.Position { return s.next() - markSize }

func segmentName(base eventstore.Position) string { return fmt.Sprintf("%016x.log", uint64(base)) }
func indexName(base eventstore.Position) string   { return fmt.Sprintf("%016x.idx", uint64(base)) }

func baseOf(name string) (eventstore.Position, bool) {
	var base eventstore.Position
	if !strings.HasSuffix(name, ".log") {
		return 0, false
	}
	if _, err := fmt.Sscanf(name, "%016x.log", &base); err != nil {
		return 0, false
	}
	return base, name == segmentName(base)
}

// openSegment opens the segment that begins at base. What it says of itself must agree with its name and, unless
// log is uuid.Nil, with the log it is part of.
func openSegment(fs FS, base eventstore.Position, log uuid.UUID) (*segment, header, error) {
	f, err := fs.Open(segmentName(base), false)
	if err != nil {
		return nil, header{}, err
	}
	h, err := readHeader(f, base, log)
	if err != nil {
		return nil, header{}, errors.Join(err, f.Close())
	}
	return &segment{base: base, size: int64(h.size), file: f}, h, nil
}

func readHeader(f File, base eventstore.Position, log uuid.UUID) (header, error) {
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return header{}, fmt.Errorf("read segment header: %w", err)
	}
	h, err := decodeHeader(b)
	switch {
	case errors.Is(err, errVersion):
		return h, err
	case err != nil:
		return h, damage(base, err.Error())
	case h.base != uint64(base):
		return h, damage(base, "segment under the name of another")
	case log != uuid.Nil && h.log != log:
		return h, damage(base, "segment of another log")
	}
	return h, nil
}

const zeroStep = 1 << 20

// createSegment makes a segment that is all zeros but for its header and returns when a power cut cannot
// take it back. stop ends it early.
func createSegment(fs FS, h header, stop <-chan struct{}) (*segment, error) {
	name := segmentName(eventstore.Position(h.base))
	tmp := strings.TrimSuffix(name, ".log") + ".tmp"
	f, err := fs.Open(tmp, true)
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	err = fill(f, h, stop)
	if err == nil {
		err = fs.Rename(tmp, name)
	}
	if err == nil {
		err = fs.SyncDir()
	}
	if err != nil {
		// What could not be made holds nothing, and its room may be what is missing.
		return nil, fmt.Errorf("make segment: %w", errors.Join(err, f.Close(), discard(fs, tmp, name)))
	}
	return &segment{base: eventstore.Position(h.base), size: int64(h.size), file: f}, nil
}

func fill(f File, h header, stop <-chan struct{}) error {
	if err := f.Reserve(int64(h.size)); err != nil {
		return err
	}
	zeros := make([]byte, min(zeroStep, h.size))
	for at := int64(0); at < int64(h.size); at += zeroStep {
		select {
		case <-stop:
			return eventstore.ErrClosed
		default:
		}
		if _, err := f.WriteAt(zeros[:min(zeroStep, int64(h.size)-at)], at); err != nil {
			return err
		}
		// In small steps, so that the writers' own syncs do not queue behind one big one.
		if at/zeroStep%8 == 7 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	if _, err := f.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	return f.Sync()
}

// discard removes those of names that are there.
func discard(fs FS, names ...string) error {
	have, err := fs.Names()
	if err != nil {
		return err
	}
	for _, n := range have {
		for _, unwanted := range names {
			if n == unwanted {
				err = errors.Join(err, fs.Remove(n))
			}
		}
	}
	return err
}
