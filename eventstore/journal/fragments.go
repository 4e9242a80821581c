package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// FoundEvent is an event that FindEvents could still read. EndsAppend reports that it is the last of its append.
type FoundEvent struct {
	eventstore.RecordedEvent
	EndsAppend bool
}

// FindEvents visits, in the order of their positions, all events from a position on that can still be read in the segments of
// a log, whatever is damaged or missing between them. Each has its own CRC, which only an event of this log at this position
// matches. Their appends may be incomplete. The bytes of an event are valid only during the call.
func FindEvents(ctx context.Context, fs FS, logID uuid.UUID, from eventstore.Position, visit func(FoundEvent) error) error {
	bases, err := listBases(fs)
	if err != nil {
		return err
	}
	for _, base := range bases {
		s, _, err := openSegment(fs, base, logID)
		if err != nil {
			continue // without a header the log of its frames is unknown
		}
		err = findEventsIn(ctx, s, newCRCSeed(logID), max(from, s.dataStart()), visit)
		if err = errors.Join(err, s.file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// findEventsIn is FindEvents for one segment. It reads frames while they are valid and then searches byte by byte for the
// next valid one.
func findEventsIn(ctx context.Context, s *segment, seed uint32, from eventstore.Position, visit func(FoundEvent) error) error {
	end, err := readableEnd(s)
	if err != nil {
		return err
	}
	names := interner{}
	for at := from; ; {
		at, err = findFrame(s, at, end, seed)
		if err != nil || at >= end {
			return err
		}
		c := cursor{segment: s, seed: seed, pos: at, end: end}
		for f := range c.linkedFrames() {
			if !f.isEvent() {
				continue
			}
			found := FoundEvent{names.decodeEvent(f, names.intern(f.stream())), f.isLastOfAppend()}
			if err := errors.Join(ctx.Err(), visit(found)); err != nil {
				return err
			}
		}
		at = max(at+1, c.pos)
	}
}

// linkedFrames yields the frame at the cursor, whatever it links to, and those that follow it, up to the first that cannot be
// read.
func (c *cursor) linkedFrames() func(yield func(frame) bool) {
	return func(yield func(frame) bool) {
		first, err := c.segment.readFrameAt(c.pos, c.end, c.seed)
		if err != nil {
			return
		}
		c.prevCRC = first.prevCRC()
		for {
			f, err := c.nextFrame()
			if err != nil || f == nil || !yield(f) {
				return
			}
		}
	}
}

// findFrame returns where the next valid frame of s begins, from a position on, or end if there is none. A frame holds its
// position, so few offsets have to be tried.
func findFrame(s *segment, from, end eventstore.Position, seed uint32) (eventstore.Position, error) {
	const fixed = 24 // bytes of a frame up to and including its position
	b := make([]byte, chunkSize)
	for from < end {
		b = b[:min(eventstore.Position(chunkSize), end-from)]
		if _, err := s.file.ReadAt(b, int64(from-s.base)); err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read log at %d: %w", from, err)
		}
		for i := 0; i+fixed <= len(b); i++ {
			at := from + eventstore.Position(i)
			if littleEndian.Uint64(b[i+16:]) != uint64(at) {
				continue
			}
			if _, err := s.readFrameAt(at, end, seed); err == nil {
				return at, nil
			}
		}
		if len(b) < chunkSize {
			break
		}
		from += chunkSize - fixed + 1
	}
	return end, nil
}

// listBases returns, in order, the bases of the segments whose file or index exists.
func listBases(fs FS) ([]eventstore.Position, error) {
	names, err := fs.Names()
	return basesIn(names), err
}

// basesIn returns, in order, the bases of the segments that the file names of a folder show: an index shows that its segment
// existed.
func basesIn(names []string) (bases []eventstore.Position) {
	for _, n := range names {
		if stem, isIndex := strings.CutSuffix(n, ".idx"); isIndex {
			n = stem + ".log"
		}
		if base, ok := parseSegmentName(n); ok {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return slices.Compact(bases)
}

// MendHeaders returns a view of the log's folder in which every damaged segment header is restored, and the names of those
// segments. A header can be restored from other files: the log's UUID is in every header, the base is in the file name. It
// writes nothing. If the UUID cannot be found for certain, the headers stay unchanged.
func MendHeaders(fs FS) (FS, []string, error) {
	bases, err := listBases(fs)
	if err != nil {
		return nil, nil, err
	}
	m := mendedFS{FS: fs, headers: map[string][]byte{}}
	logID, damaged, err := m.readHeaders(bases)
	if err != nil || len(damaged) == 0 || logID == uuid.Nil {
		return fs, nil, err
	}
	var names []string
	for _, d := range damaged {
		h := segmentHeader{logID: logID, base: uint64(d.base), size: uint64(d.size)}
		m.headers[segmentName(d.base)] = h.encode()
		names = append(names, segmentName(d.base))
	}
	return m, names, nil
}

// mendedFS is a folder in which some files have another header.
type mendedFS struct {
	FS
	headers map[string][]byte // by the name of the file
}

func (m mendedFS) Open(name string, create bool) (File, error) {
	f, err := m.FS.Open(name, create)
	if h := m.headers[name]; err == nil && h != nil {
		return mendedFile{f, h}, nil
	}
	return f, err
}

type mendedFile struct {
	File
	header []byte
}

// ReadAt reads the file with the restored header over its beginning.
func (f mendedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if at < int64(len(f.header)) {
		copy(b[:n], f.header[at:])
	}
	return n, err
}

// damagedSegment is a segment whose header is damaged, with the size of its file.
type damagedSegment struct {
	base eventstore.Position
	size int64
}

// readHeaders reads the headers of all segments. It returns the UUID of the log, from the first header that has it, and the
// segments whose header is damaged.
func (m mendedFS) readHeaders(bases []eventstore.Position) (logID uuid.UUID, damaged []damagedSegment, err error) {
	for _, base := range bases {
		f, err := m.Open(segmentName(base), false)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return uuid.Nil, nil, err
		}
		h, found, err := examineHeader(f, base)
		if err = errors.Join(err, f.Close()); err != nil {
			return uuid.Nil, nil, err
		}
		if logID == uuid.Nil {
			logID = found
		}
		if h != nil && h.size >= segmentHeaderSize+durableMarkSize {
			damaged = append(damaged, *h)
		}
	}
	return logID, damaged, nil
}

// examineHeader returns the segment if its header is damaged, and the log's UUID if it is certain: from a whole header, or
// from a damaged one whose UUID the first mark proves.
func examineHeader(f File, base eventstore.Position) (damaged *damagedSegment, logID uuid.UUID, err error) {
	b := make([]byte, segmentHeaderSize+durableMarkSize)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, uuid.Nil, fmt.Errorf("read segment header: %w", err)
	}
	h, err := decodeSegmentHeader(b[:min(n, segmentHeaderSize)])
	if err == nil {
		return nil, h.logID, nil
	}
	if errors.Is(err, errUnknownVersion) {
		return nil, uuid.Nil, nil // it is whole; WalkLog reports what it is
	}
	logID = uuid.UUID(b[16:32])
	if f, _, _ := parseFrame(b[segmentHeaderSize:], base+segmentHeaderSize, newCRCSeed(logID)); f == nil {
		logID = uuid.Nil
	}
	probe := segment{base: base, file: f, size: math.MaxUint32}
	end, err := readableEnd(&probe)
	return &damagedSegment{base, int64(end - base)}, logID, err
}

// FindLogID returns the UUID of the log from the first header that has it, or uuid.Nil.
func FindLogID(fs FS) (uuid.UUID, error) {
	bases, err := listBases(fs)
	if err != nil {
		return uuid.Nil, err
	}
	logID, _, err := mendedFS{FS: fs}.readHeaders(bases)
	return logID, err
}
