package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// segment is one file of the log. Readers share it with the writer; a view limits how much of it they may read.
type segment struct {
	base eventstore.Position
	size int64
	file File

	// Set once the segment is full, before any reader can know that it is:
	end          eventstore.Position // where its frames end
	lastPosition eventstore.Position // of the log's last event up to there
	lastCRC      uint32              // of its last frame

	index atomic.Pointer[segmentIndex] // nil while the segment is the active one
}

// dataStart is where the first frame begins; nextBase is the base of the next segment.
func (s *segment) dataStart() eventstore.Position { return s.base + segmentHeaderSize }
func (s *segment) nextBase() eventstore.Position  { return s.base + eventstore.Position(s.size) }

// appendLimit is where appends must end: the last mark has to fit behind them.
func (s *segment) appendLimit() eventstore.Position { return s.nextBase() - durableMarkSize }

func segmentName(base eventstore.Position) string { return fmt.Sprintf("%016x.log", uint64(base)) }
func indexName(base eventstore.Position) string   { return fmt.Sprintf("%016x.idx", uint64(base)) }

// parseSegmentName returns the base in the name of a segment; false for other files.
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

// openSegment opens the segment that begins at base. Its header must agree with its name and, unless logID is uuid.Nil, with
// the log; otherwise the error is a *CorruptError.
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

// checkNotCut fails with a *CorruptError if the segment's file is shorter than it was made. Readers salvage it; writers must
// stop.
func (s *segment) checkNotCut() error {
	_, err := s.file.ReadAt(make([]byte, 1), s.size-1)
	if errors.Is(err, io.EOF) {
		return newCorruptError(s.base, fmt.Sprintf("segment is cut: it was made with %d bytes", s.size))
	}
	return err
}

// readSegmentHeader reads a segment's header and compares it with the base in the file's name and with the log.
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

// chunkSize is how many bytes of a segment are zeroed or searched at once.
const chunkSize = 1 << 20

// createSegment makes a segment that is all zeros but for its header. It returns when the segment survives a power cut. If
// stop is closed it ends early with ErrClosed; a nil stop never is. After an error it removes the file.
func createSegment(fs FS, h segmentHeader, stop <-chan struct{}) (*segment, error) {
	base := eventstore.Position(h.base)
	name := segmentName(base)
	f, err := createFileAtomically(fs, strings.TrimSuffix(name, ".log")+".tmp", name, func(f File) error {
		return initSegmentFile(f, h, stop)
	})
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	return &segment{base: base, size: int64(h.size), file: f}, nil
}

// createFileAtomically makes a file that exists with everything that fill writes, or not at all, even after a power cut. fill
// must sync the file. The file is written under the name tmp and renamed when it is complete. The caller closes it.
func createFileAtomically(fs FS, tmp, name string, fill func(File) error) (File, error) {
	f, err := fs.Open(tmp, true)
	if err != nil {
		return nil, err
	}
	err = fill(f)
	if err == nil {
		err = fs.Rename(tmp, name)
	}
	if err == nil {
		err = fs.SyncDir()
	}
	if err != nil {
		// The unfinished file is useless, and may be the reason that the disk is full.
		return nil, errors.Join(err, f.Close(), removeFiles(fs, tmp, name))
	}
	return f, nil
}

// initSegmentFile writes zeros and then the header. Writing the zeros now means that later an fdatasync has no metadata to
// write, and that a full disk shows before an append needs the room.
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
		// Sync often: the writer's own syncs would queue behind one big one.
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

// removeFiles removes the named files that exist.
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

// creationRetryInterval is how often the segmentManager retries to make a segment.
const creationRetryInterval = time.Second

// segmentManager is the goroutine that does the slow file work, so that the writer does not stall: it makes the next segment
// before the writer needs it, and writes the index of each full one.
type segmentManager struct {
	options Options
	logID   uuid.UUID
	stop    chan struct{} // closed by close, or by abandon
	wake    chan struct{} // has room for one signal
	done    chan struct{} // closed when maintainSegments has returned

	files    *revocableFS // the folder, until abandon
	stopOnce sync.Once

	mu                sync.Mutex          // guards the fields below, and is locked while a segment is made
	nextBase          eventstore.Position // base of the next segment
	spare             *segment            // the next segment, nil until it is made
	isCreationFailing bool                // the last attempt failed, and that was logged

	// Set without mu, since the writer and Health must not wait while a segment is made:
	isSpareWanted atomic.Bool           // the writer will soon need the spare
	spareErr      atomic.Pointer[error] // why there was no spare when the writer needed it

	unindexedMu    sync.Mutex
	unindexed      []*segment // full segments whose index is in memory only
	isIndexFailing bool       // the last attempt to write an index failed, and that was logged
}

// newSegmentManager returns a manager whose next segment begins at next. Its owner starts maintainSegments and calls close.
func newSegmentManager(o Options, logID uuid.UUID, next eventstore.Position) *segmentManager {
	return &segmentManager{
		options: o, logID: logID, nextBase: next, files: &revocableFS{FS: o.FS},
		stop: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// requestSpare asks for the next segment to be made. It does not wait.
func (m *segmentManager) requestSpare() {
	m.isSpareWanted.Store(true)
	m.wakeUp()
}

// requestIndex asks for the index of a full segment to be written. It does not wait.
func (m *segmentManager) requestIndex(s *segment) {
	m.unindexedMu.Lock()
	m.unindexed = append(m.unindexed, s)
	m.unindexedMu.Unlock()
	m.wakeUp()
}

func (m *segmentManager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// maintainSegments makes segments and writes indexes until close or abandon. It retries a failed spare after a pause without
// being woken, so that the journal recovers without an append.
func (m *segmentManager) maintainSegments() {
	defer close(m.done)
	var retry <-chan time.Time
	for {
		select {
		case <-m.stop:
			return
		case <-m.wake:
		case <-retry:
		}
		retry = nil
		if m.isSpareWanted.Load() && m.ensureSpare() != nil {
			retry = time.After(creationRetryInterval)
		}
		m.writeIndexes()
	}
}

// ensureSpare makes the next segment unless it exists.
func (m *segmentManager) ensureSpare() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.createSpare()
}

// createSpare makes the next segment unless it exists. The caller holds mu.
func (m *segmentManager) createSpare() error {
	if m.spare != nil {
		return nil
	}
	s, err := createSegment(m.files, segmentHeader{logID: m.logID, base: uint64(m.nextBase), size: uint64(m.options.SegmentSize)}, m.stop)
	if err == nil {
		m.spare = s
	}
	m.reportCreation(err)
	return err
}

// reportCreation logs the first of several failures to make a segment, and the first success after them.
func (m *segmentManager) reportCreation(err error) {
	if err == nil {
		m.spareErr.Store(nil)
	}
	if isFailing := err != nil; isFailing == m.isCreationFailing || errors.Is(err, eventstore.ErrClosed) || errors.Is(err, errRevoked) {
		return
	}
	m.isCreationFailing = !m.isCreationFailing
	if m.isCreationFailing {
		m.options.Logger.Error("the next segment of the log cannot be made", "position", uint64(m.nextBase), "error", err)
	} else {
		m.options.Logger.Info("the next segment of the log could be made again", "position", uint64(m.nextBase))
	}
}

// takeSpare gives the next segment to the writer, who owns it from then on. If it does not exist yet, takeSpare makes it now,
// which takes as long as writing all its zeros. After an error the goroutine continues trying.
func (m *segmentManager) takeSpare() (*segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.createSpare(); err != nil {
		m.spareErr.Store(&err)
		m.requestSpare()
		return nil, err
	}
	s := m.spare
	m.spare, m.nextBase = nil, s.nextBase()
	m.isSpareWanted.Store(false)
	return s, nil
}

// spareError is why the writer has no segment to continue with, nil if it has one.
func (m *segmentManager) spareError() error {
	if err := m.spareErr.Load(); err != nil {
		return *err
	}
	return nil
}

// writeIndexes writes the indexes of full segments, which frees their memory. It retries a failed one at the next wakeUp.
// Until then the index in memory is used, and after a restart it is rebuilt from the segment.
func (m *segmentManager) writeIndexes() {
	m.unindexedMu.Lock()
	pending := m.unindexed
	m.unindexed = nil
	m.unindexedMu.Unlock()
	for i, s := range pending {
		x, err := writeSegmentIndex(m.files, s, encodeSegmentIndex(m.logID, s, s.index.Load().runs))
		if err != nil {
			m.reportIndexFailure(s, err)
			m.unindexedMu.Lock()
			m.unindexed = append(pending[i:], m.unindexed...)
			m.unindexedMu.Unlock()
			return
		}
		m.isIndexFailing = false
		s.index.Store(x)
	}
}

// reportIndexFailure logs the first of several failures to write an index.
func (m *segmentManager) reportIndexFailure(s *segment, err error) {
	if !m.isIndexFailing && !errors.Is(err, errRevoked) {
		m.options.Logger.Warn("the index of a segment stays in memory", "segment", segmentName(s.base), "error", err)
	}
	m.isIndexFailing = true
}

// abandon ends the goroutine without waiting for it. Once it returns, neither the goroutine nor close makes, renames or
// removes a file: by then the names in the folder may belong to another log or another process.
func (m *segmentManager) abandon() {
	m.files.revoke()
	m.stopOnce.Do(func() { close(m.stop) })
}

// close ends the goroutine, writes the last indexes and closes an unused spare. The spare's file stays; recovery removes it.
func (m *segmentManager) close() error {
	m.stopOnce.Do(func() { close(m.stop) })
	<-m.done
	m.writeIndexes()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spare == nil {
		return nil
	}
	return m.spare.file.Close()
}

// findNonZero returns the smallest range that holds all nonzero bytes of s after pos.
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

// writeZeros zeroes a range of a segment. It does not sync.
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

// readChunks calls visit with consecutive pieces of a segment, from pos to its end. Each piece begins with the last overlap
// bytes of the one before.
func readChunks(s *segment, pos eventstore.Position, overlap int, visit func(eventstore.Position, []byte) error) error {
	b := make([]byte, min(chunkSize, s.nextBase()-pos))
	for pos < s.nextBase() {
		b = b[:min(eventstore.Position(len(b)), s.nextBase()-pos)]
		n, err := s.file.ReadAt(b, int64(pos-s.base))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the tail: %w", err)
		}
		if err := visit(pos, b[:n]); err != nil {
			return err
		}
		if n < len(b) {
			return newCorruptError(pos+eventstore.Position(n), "segment file is too short")
		}
		if pos += eventstore.Position(len(b)); pos < s.nextBase() {
			pos -= eventstore.Position(overlap)
		}
	}
	return nil
}
