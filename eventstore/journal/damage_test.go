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

// frameRange is a frame as the format's description lets one find it.
type frameRange struct {
	from, to int64 // in its segment
	isMark   bool
}

// findFrames reads a segment by nothing but the comment in format.go.
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

// newWrittenLog is a machine that holds a closed log of several segments.
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

// copyWithFlippedBit is the same disk once more, with one bit of one file flipped.
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

// Every frame of a closed log is before a durable mark, but for a mark that no append follows. A flipped bit in any of its fields is
// named, with the position of the frame it is in; whatever was read before is what was written.
func TestAFlippedBitIsNamedWhereverItIs(t *testing.T) {
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

// maxStep is how many bytes at most a test that goes through all of something leaves out at a time.
func maxStep() int {
	if isLongRun() {
		return 1
	}
	return 24
}

// pickOffsets are in a frame's fixed fields, different ones in each frame, and in the rest.
func pickOffsets(rng *rand.Rand, p frameRange) (all []int64) {
	for at := p.from + int64(rng.IntN(maxStep())); at < min(p.to, p.from+64); at += int64(1 + rng.IntN(maxStep())) {
		all = append(all, at)
	}
	return append(all, p.to-1, p.from+rng.Int64N(p.to-p.from))
}

// checkDamageNamed opens and reads a log that must be found checkDamageNamed at want. It returns what was wrong with that.
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

func TestADamagedHeaderOrAMissingSegmentIsRefused(t *testing.T) {
	t.Parallel()
	m := newWrittenLog(t, 1)
	for name, spoil := range map[string]func(c *powerLossFS){
		"header":           func(c *powerLossFS) { c.files[segmentFileName(1)].cached[33] ^= 1 },
		"magic":            func(c *powerLossFS) { c.files[segmentFileName(1)].cached[0] ^= 1 },
		"version":          func(c *powerLossFS) { c.files[segmentFileName(0)].cached[8] ^= 1 },
		"first missing":    func(c *powerLossFS) { delete(c.files, segmentFileName(0)) },
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

func deleteFiles(m *powerLossFS, suffix string) {
	for n := range m.files {
		if strings.HasSuffix(n, suffix) {
			delete(m.files, n)
		}
	}
}

func TestADamagedOrMissingIndexIsMadeAgain(t *testing.T) {
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
			r, ok, err := j.LastEvent(t.Context(), fmt.Sprintf("s-%d", n))
			if err != nil || !ok || r.Revision < 23 {
				t.Fatalf("index %d: last event of s-%d is %d, %v", i, n, r.Revision, err)
			}
		}
		_ = j.Close()
	}
}

func TestVerifyNamesDamageThatOpenDoesNotLookFor(t *testing.T) {
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

// What follows the last mark may be torn anywhere: it is cut, and the log goes on.
func TestATornTailIsCutWhereverItTears(t *testing.T) {
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
