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
	end, lastPosition eventstore.Position
	lastCRC           uint32

	index atomic.Pointer[segmentIndex]
}

func (s *segment) dataStart() eventstore.Position { return s.base + segmentHeaderSize }
func (s *segment) nextBase() eventstore.Position  { return s.base + eventstore.Position(s.size) }

// appendLimit is how far appends may go: the last mark has to fit behind them.
func (s *segment) appendLimit() eventstore.Position { return s.nextBase() - durableMarkSize }

func segmentName(base eventstore.Position) string { return fmt.Sprintf("%016x.log", uint64(base)) }
func indexName(base eventstore.Position) string   { return fmt.Sprintf("%016x.idx", uint64(base)) }

func parseSegmentName(name string) (eventstore.Position, bool) {
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
func openSegment(fs FS, base eventstore.Position, logID uuid.UUID) (*segment, segmentHeader, error) {
	f, err := fs.Open(segmentName(base), false)
	if err != nil {
		return nil, segmentHeader{}, err
	}
	h, err := readSegmentHeader(f, base, logID)
	if err != nil {
		return nil, segmentHeader{}, errors.Join(err, f.Close())
	}
	return &segment{base: base, size: int64(h.size), file: f}, h, nil
}

func readSegmentHeader(f File, base eventstore.Position, logID uuid.UUID) (segmentHeader, error) {
	b := make([]byte, segmentHeaderSize)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return segmentHeader{}, fmt.Errorf("read segment header: %w", err)
	}
	h, err := decodeSegmentHeader(b)
	switch {
	case errors.Is(err, errUnknownVersion):
		return h, err
	case err != nil:
		return h, newCorruptError(base, err.Error())
	case h.base != uint64(base):
		return h, newCorruptError(base, "segment under the name of another")
	case logID != uuid.Nil && h.logID != logID:
		return h, newCorruptError(base, "segment of another log")
	}
	return h, nil
}

const chunkSize = 1 << 20

// createSegment makes a segment that is all zeros but for its header and returns when a power cut cannot
// take it back. stop ends it early.
func createSegment(fs FS, h segmentHeader, stop <-chan struct{}) (*segment, error) {
	name := segmentName(eventstore.Position(h.base))
	tmp := strings.TrimSuffix(name, ".log") + ".tmp"
	f, err := fs.Open(tmp, true)
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	err = initSegmentFile(f, h, stop)
	if err == nil {
		err = fs.Rename(tmp, name)
	}
	if err == nil {
		err = fs.SyncDir()
	}
	if err != nil {
		// What could not be made holds nothing, and its room may be what is missing.
		return nil, fmt.Errorf("make segment: %w", errors.Join(err, f.Close(), removeFiles(fs, tmp, name)))
	}
	return &segment{base: eventstore.Position(h.base), size: int64(h.size), file: f}, nil
}

func initSegmentFile(f File, h segmentHeader, stop <-chan struct{}) error {
	if err := f.Reserve(int64(h.size)); err != nil {
		return err
	}
	zeros := make([]byte, min(chunkSize, h.size))
	for at := int64(0); at < int64(h.size); at += chunkSize {
		select {
		case <-stop:
			return eventstore.ErrClosed
		default:
		}
		if _, err := f.WriteAt(zeros[:min(chunkSize, int64(h.size)-at)], at); err != nil {
			return err
		}
		// In small steps, so that the writers' own syncs do not queue behind one big one.
		if at/chunkSize%8 == 7 {
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

// removeFiles removes those of names that are there.
func removeFiles(fs FS, names ...string) error {
	existing, err := fs.Names()
	if err != nil {
		return err
	}
	for _, n := range existing {
		for _, unwanted := range names {
			if n == unwanted {
				err = errors.Join(err, fs.Remove(n))
			}
		}
	}
	return err
}
