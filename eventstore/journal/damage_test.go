package journal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// frameRange is where findFrames found a frame.
type frameRange struct {
	from, to int64 // in its segment
	isMark   bool
}

// findFrames parses a segment by the description in format.go, without the code of the package.
func findFrames(b []byte) (all []frameRange) {
	at := int64(64)
	for at+40 <= int64(len(b)) {
		size := int64(binary.LittleEndian.Uint32(b[at+4:]))
		if size == 0 {
			break
		}
		all = append(all, frameRange{at, at + size, b[at+12] == 1})
		at += size
	}
	return all
}

// newWrittenLog makes a disk that holds a closed log of several segments.
func newWrittenLog(t *testing.T, seed uint64) *powerLossFS {
	t.Helper()
	m := newPowerLossFS(seed)
	j := openOn(t, m)
	for n := range 90 {
		batch := append(newBatch(fmt.Sprintf("%d %s", n, strings.Repeat("x", 1+n*13%700))), newBatch("second")...)
		if _, err := j.Append(t.Context(), fmt.Sprintf("s-%d", n%7), eventstore.Any, batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

// copyWithFlippedBit copies a disk and flips one bit of one file; if no file has the name, it flips nothing.
func (m *powerLossFS) copyWithFlippedBit(name string, at int64, bit int) *powerLossFS {
	c := newPowerLossFS(1)
	for n, i := range m.files {
		b := append([]byte(nil), i.cached...)
		if n == name {
			b[at] ^= 1 << bit
		}
		c.files[n] = &inode{cached: b, disk: append([]byte(nil), b...), dirtySectors: map[int]bool{}}
		c.syncedFiles[n] = c.files[n]
	}
	return c
}

func segmentFileName(n int) string { return fmt.Sprintf("%016x.log", n*smallSegmentSize) }

// Every frame of a closed log lies before a durable mark, except a mark that no append follows. So a flipped bit in any field
// is reported with the position of its frame, and everything read before it is as written.
func TestFlippedBitIsReportedAtItsFrame(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	whole := readContents(t, openOn(t, m.copyWithFlippedBit("", 0, 0)))
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	segments := 0
	for ; m.files[segmentFileName(segments+1)] != nil; segments++ {
	}
	if segments < 2 {
		t.Fatalf("the log has %d full segments, the test wants 2", segments)
	}
	for n := range segments + 1 {
		frames := findFrames(m.files[segmentFileName(n)].cached)
		for i, p := range frames {
			if p.isMark && i == len(frames)-1 {
				break
			}
			for _, at := range pickOffsets(rng, p) {
				want := eventstore.Position(int64(n*smallSegmentSize) + p.from)
				if why := checkDamageNamed(t, dir, m.copyWithFlippedBit(segmentFileName(n), at, rng.IntN(8)), want, whole); why != "" {
					t.Fatalf("bit flipped at %d in segment %d, frame %d-%d: %s", at, n, p.from, p.to, why)
				}
			}
		}
	}
}

// maxStep is how many bytes a test that goes through a file may skip.
func maxStep() int {
	if isLongRun() {
		return 1
	}
	return 24
}

// pickOffsets picks bytes of a frame: some of its fixed fields, different ones in each frame, and some of the rest.
func pickOffsets(rng *rand.Rand, p frameRange) (all []int64) {
	for at := p.from + int64(rng.IntN(maxStep())); at < min(p.to, p.from+64); at += int64(1 + rng.IntN(maxStep())) {
		all = append(all, at)
	}
	return append(all, p.to-1, p.from+rng.Int64N(p.to-p.from))
}

// checkDamageNamed opens and reads a log that must be reported damaged at want. It returns what happened instead, or "".
func checkDamageNamed(t *testing.T, dir string, m *powerLossFS, want eventstore.Position, whole []string) string {
	t.Helper()
	read := 0
	j, err := journal.Open(dir, journal.Options{SegmentSize: smallSegmentSize, FS: m, Logger: discardLogger()})
	if err == nil {
		defer func() { _ = j.Close() }()
		for s, e := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
			if err = e; err != nil || s.Kind != eventstore.EventAppeared {
				break
			}
			if string(s.Event.Data) != whole[read] {
				return fmt.Sprintf("event %d is wrong: %q", read, s.Event.Data)
			}
			read++
		}
	}
	var corrupt *eventstore.CorruptError
	switch {
	case !errors.As(err, &corrupt):
		return fmt.Sprintf("read %d of %d events, error %v", read, len(whole), err)
	case corrupt.Position != want:
		return fmt.Sprintf("%v, want position %d", err, want)
	}
	return ""
}

func TestDamagedHeaderOrMissingSegmentIsRefused(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	for name, spoil := range map[string]func(c *powerLossFS){
		"header":           func(c *powerLossFS) { c.files[segmentFileName(1)].cached[33] ^= 1 },
		"magic":            func(c *powerLossFS) { c.files[segmentFileName(1)].cached[0] ^= 1 },
		"version":          func(c *powerLossFS) { c.files[segmentFileName(0)].cached[8] ^= 1 },
		"first missing":    func(c *powerLossFS) { delete(c.files, segmentFileName(0)) },
		"newest missing":   func(c *powerLossFS) { delete(c.files, segmentFileName(newestSegment(c))) },
		"newest zeroed":    func(c *powerLossFS) { clear(c.files[segmentFileName(newestSegment(c))].cached[64:]) },
		"middle missing":   func(c *powerLossFS) { delete(c.files, segmentFileName(1)) },
		"segments missing": func(c *powerLossFS) { deleteFiles(c, ".log") },
		"cut short":        func(c *powerLossFS) { c.files[segmentFileName(1)].cached = c.files[segmentFileName(1)].cached[:30] },
		"of another log":   func(c *powerLossFS) { c.files[segmentFileName(1)] = newWrittenLog(t, 2).files[segmentFileName(1)] },
	} {
		c := m.copyWithFlippedBit("", 0, 0)
		spoil(c)
		_, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, FS: c, Logger: discardLogger()})
		var corrupt *eventstore.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: open says %v, want a CorruptError", name, err)
		}
	}
}

// newestSegment is the last segment that holds frames; spares behind it are removed.
func newestSegment(m *powerLossFS) int {
	n := 0
	for m.files[segmentFileName(n+1)] != nil {
		n++
	}
	for ; len(findFrames(m.files[segmentFileName(n)].cached)) == 0; n-- {
		delete(m.files, segmentFileName(n))
	}
	return n
}

func deleteFiles(m *powerLossFS, suffix string) {
	for n := range m.files {
		if strings.HasSuffix(n, suffix) {
			delete(m.files, n)
		}
	}
}

func TestDamagedOrMissingIndexIsMadeAgain(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	whole := fmt.Sprint(readContents(t, openOn(t, m.copyWithFlippedBit("", 0, 0))))
	name := strings.TrimSuffix(segmentFileName(1), ".log") + ".idx"
	if m.files[name] == nil {
		t.Fatal("the log has no index to damage")
	}
	spoiled := []*powerLossFS{m.copyWithFlippedBit("", 0, 0)}
	deleteFiles(spoiled[0], ".idx")
	rng := rand.New(rand.NewPCG(1, 3))
	for at := int64(0); at < int64(len(m.files[name].cached)); at += int64(1 + rng.IntN(maxStep()/3+1)) {
		spoiled = append(spoiled, m.copyWithFlippedBit(name, at, int(at)%8))
	}
	for i, c := range spoiled {
		j := openOn(t, c)
		if got := fmt.Sprint(readContents(t, j)); got != whole {
			t.Fatalf("index %d: the log reads differently", i)
		}
		if n, err := j.Verify(t.Context()); err != nil || n != 180 {
			t.Fatalf("index %d: verify counts %d events, %v; want 180", i, n, err)
		}
		for n := range 7 {
			r, ok, err := lastEvent(t.Context(), j, fmt.Sprintf("s-%d", n))
			if err != nil || !ok || r.Revision < 23 {
				t.Fatalf("index %d: last event of s-%d is %d, %v", i, n, r.Revision, err)
			}
		}
		_ = j.Close()
	}
}

// A wrong index entry that is read after the log was opened makes a read fail, or changes nothing: no stream is shown with
// events missing.
func TestAnIndexThatIsDamagedLaterShowsNoStreamShort(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	j := openOn(t, m)
	names := make([]string, 7)
	whole := map[string]string{}
	for n := range names {
		names[n] = fmt.Sprintf("s-%d", n)
		text, err := readStreamText(t, j, names[n])
		if err != nil {
			t.Fatal(err)
		}
		whole[names[n]] = text
	}
	index := m.files[strings.TrimSuffix(segmentFileName(1), ".log")+".idx"]
	failed := 0
	for at := 72; at < len(index.cached); at++ { // after the header, which is read once
		for _, bit := range []byte{1, 0x10, 0x80} {
			flip := func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				index.cached[at] ^= bit
			}
			flip()
			for _, name := range names {
				text, err := readStreamText(t, j, name)
				if err != nil {
					failed++
				} else if text != whole[name] {
					t.Fatalf("byte %d: %s reads %s, want %s", at, name, text, whole[name])
				}
			}
			flip()
		}
	}
	if failed == 0 {
		t.Error("no read failed")
	}
}

// readStreamText reads a whole stream into one text.
func readStreamText(t *testing.T, j *journal.Journal, stream string) (text string, err error) {
	t.Helper()
	for r, err := range j.ReadStream(t.Context(), stream, 0, eventstore.Forward) {
		if err != nil {
			return "", err
		}
		text += fmt.Sprint(r.Revision, " ", string(r.Data), "; ")
	}
	return text, nil
}

func TestVerifyReportsDamageThatOpenDoesNotLookFor(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	p := findFrames(m.files[segmentFileName(0)].cached)[5]
	j := openOn(t, m.copyWithFlippedBit(segmentFileName(0), p.from+20, 1))
	_, err := j.Verify(t.Context())
	var corrupt *eventstore.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Position != eventstore.Position(p.from) {
		t.Errorf("verify says %v, want damage at %d", err, p.from)
	}
}

// The bytes behind the last mark may be torn anywhere: they are cut off, and the log continues.
func TestTornTailIsCutWhereverItIsTorn(t *testing.T) {
	t.Parallel()
	m := newPowerLossFS(1)
	j := openOn(t, m)
	appendOne(t, j, "a-1", "first")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	base := findFrames(m.files[segmentFileName(0)].cached)
	j = openOn(t, m)
	batch := append(newBatch(strings.Repeat("y", 100)), newBatch(strings.Repeat("z", 100))...)
	if _, err := j.Append(t.Context(), "a-1", 0, batch); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.isOff = true // no last mark
	torn := m.copyWithFlippedBit("", 0, 0)
	m.mu.Unlock()
	frames := findFrames(torn.files[segmentFileName(0)].cached)
	if tail := frames[len(frames)-1]; tail.isMark {
		clear(torn.files[segmentFileName(0)].cached[tail.from:tail.to])
	}
	for at := base[len(base)-1].from; at < frames[4].to; at++ {
		c := torn.copyWithFlippedBit(segmentFileName(0), at, int(at)%8)
		j := openOn(t, c)
		if got := readContents(t, j); len(got) != 1 || got[0] != "first" {
			t.Fatalf("torn at %d: the log holds %q", at, got)
		}
		appendOne(t, j, "a-1", "next")
		_ = j.Close()
		if got := readContents(t, openOn(t, c)); fmt.Sprint(got) != "[first next]" {
			t.Fatalf("torn at %d and written on: the log holds %q", at, got)
		}
	}
}

// FuzzRecovery puts arbitrary bytes anywhere in a log's files. The log opens or reports why not; it never yields an event
// that was not written, and what it yields once opened it yields again after another start.
func FuzzRecovery(f *testing.F) {
	f.Add(uint8(0), uint32(64), []byte{0, 0, 0, 0})
	f.Add(uint8(1), uint32(16448), []byte{1})
	f.Add(uint8(2), uint32(70), make([]byte, 300))
	f.Add(uint8(3), uint32(0), []byte("LIEUDITX"))
	var logs []*powerLossFS
	f.Fuzz(func(t *testing.T, file uint8, at uint32, b []byte) {
		if logs == nil {
			logs = []*powerLossFS{newWrittenLog(t, 1)}
		}
		m := logs[0].copyWithFlippedBit("", 0, 0)
		names, _ := m.Names()
		target := m.files[names[int(file)%len(names)]]
		if len(target.cached) > 0 {
			copy(target.cached[int(at)%len(target.cached):], b)
		}
		first, err := readChecked(t, m)
		if err != nil {
			return
		}
		second, err := readChecked(t, m)
		if err != nil || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("opened once it holds %d events, opened again %d, %v", len(first), len(second), err)
		}
	})
}

// readChecked opens a log and reads it; every event must be as it was written.
func readChecked(t *testing.T, m *powerLossFS) (got []string, err error) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: smallSegmentSize, FS: m, Logger: discardLogger()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.Close() }()
	for s, err := range j.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			return got, err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		n := len(got)
		if want := fmt.Sprint(n/2, " "); n%2 == 0 && string(s.Event.Data[:len(want)]) != want || n%2 == 1 && string(s.Event.Data) != "second" {
			t.Fatalf("event %d is %q", n, s.Event.Data)
		}
		got = append(got, string(s.Event.Data))
	}
	return got, nil
}
