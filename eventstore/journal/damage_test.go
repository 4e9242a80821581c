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

// place is a frame as the format's description lets one find it.
type place struct {
	from, to int64 // in its segment
	mark     bool
}

// places reads a segment by nothing but the comment in format.go.
func places(b []byte) (all []place) {
	at := int64(64)
	for at+40 <= int64(len(b)) {
		size := int64(binary.LittleEndian.Uint32(b[at+4:]))
		if size == 0 {
			break
		}
		all = append(all, place{at, at + size, b[at+12] == 1})
		at += size
	}
	return all
}

// written is a machine that holds a closed log of several segments.
func written(t *testing.T, seed uint64) *machine {
	t.Helper()
	m := newMachine(seed)
	j := open(t, m)
	for n := range 90 {
		batch := append(proposed(fmt.Sprintf("%d %s", n, strings.Repeat("x", 1+n*13%700))), proposed("second")...)
		if _, err := j.Append(t.Context(), fmt.Sprintf("s-%d", n%7), eventstore.Any, batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

// copied is the same disk once more, with one bit of one file flipped.
func (m *machine) copied(name string, at int64, bit int) *machine {
	c := newMachine(1)
	for n, i := range m.live {
		b := append([]byte(nil), i.live...)
		if n == name {
			b[at] ^= 1 << bit
		}
		c.live[n] = &inode{live: b, disk: append([]byte(nil), b...), dirty: map[int]bool{}}
		c.synced[n] = c.live[n]
	}
	return c
}

func segmentOf(n int) string { return fmt.Sprintf("%016x.log", n*small) }

// Every frame of a closed log is before a durable mark, but for a mark that no append follows. A flipped bit in any of its fields is
// named, with the position of the frame it is in; whatever was read before is what was written.
func TestAFlippedBitIsNamedWhereverItIs(t *testing.T) {
	t.Parallel()
	m := written(t, 1)
	whole := contents(t, open(t, m.copied("", 0, 0)))
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	segments := 0
	for ; m.live[segmentOf(segments+1)] != nil; segments++ {
	}
	if segments < 2 {
		t.Fatalf("the log has %d full segments, the test wants 2", segments)
	}
	for n := range segments + 1 {
		frames := places(m.live[segmentOf(n)].live)
		for i, p := range frames {
			if p.mark && i == len(frames)-1 {
				break
			}
			for _, at := range offsets(rng, p) {
				want := eventstore.Position(int64(n*small) + p.from)
				if why := damaged(t, dir, m.copied(segmentOf(n), at, rng.IntN(8)), want, whole); why != "" {
					t.Fatalf("bit flipped at %d in segment %d, frame %d-%d: %s", at, n, p.from, p.to, why)
				}
			}
		}
	}
}

// sparing is how many bytes at most a test that goes through all of something leaves out at a time.
func sparing() int {
	if long() {
		return 1
	}
	return 24
}

// offsets are in a frame's fixed fields, different ones in each frame, and in the rest.
func offsets(rng *rand.Rand, p place) (all []int64) {
	for at := p.from + int64(rng.IntN(sparing())); at < min(p.to, p.from+64); at += int64(1 + rng.IntN(sparing())) {
		all = append(all, at)
	}
	return append(all, p.to-1, p.from+rng.Int64N(p.to-p.from))
}

// damaged opens and reads a log that must be found damaged at want. It returns what was wrong with that.
func damaged(t *testing.T, dir string, m *machine, want eventstore.Position, whole []string) string {
	t.Helper()
	read := 0
	j, err := journal.Open(dir, journal.Options{SegmentSize: small, FS: m, Logger: quiet()})
	if err == nil {
		defer func() { _ = j.Close() }()
		for s, e := range j.ReadAll(t.Context(), eventstore.Mark{}, nil) {
			if err = e; err != nil || s.Kind != eventstore.Event {
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
	m := written(t, 1)
	for name, spoil := range map[string]func(c *machine){
		"header":           func(c *machine) { c.live[segmentOf(1)].live[33] ^= 1 },
		"magic":            func(c *machine) { c.live[segmentOf(1)].live[0] ^= 1 },
		"version":          func(c *machine) { c.live[segmentOf(0)].live[8] ^= 1 },
		"first missing":    func(c *machine) { delete(c.live, segmentOf(0)) },
		"middle missing":   func(c *machine) { delete(c.live, segmentOf(1)) },
		"segments missing": func(c *machine) { deleteSuffix(c, ".log") },
		"cut short":        func(c *machine) { c.live[segmentOf(1)].live = c.live[segmentOf(1)].live[:30] },
		"of another log":   func(c *machine) { c.live[segmentOf(1)] = written(t, 2).live[segmentOf(1)] },
	} {
		c := m.copied("", 0, 0)
		spoil(c)
		_, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: small, FS: c, Logger: quiet()})
		var corrupt *eventstore.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: open says %v, want a CorruptError", name, err)
		}
	}
}

func deleteSuffix(m *machine, suffix string) {
	for n := range m.live {
		if strings.HasSuffix(n, suffix) {
			delete(m.live, n)
		}
	}
}

func TestADamagedOrMissingIndexIsMadeAgain(t *testing.T) {
	t.Parallel()
	m := written(t, 1)
	whole := fmt.Sprint(contents(t, open(t, m.copied("", 0, 0))))
	name := strings.TrimSuffix(segmentOf(1), ".log") + ".idx"
	if m.live[name] == nil {
		t.Fatal("the log has no index to damage")
	}
	spoiled := []*machine{m.copied("", 0, 0)}
	deleteSuffix(spoiled[0], ".idx")
	rng := rand.New(rand.NewPCG(1, 3))
	for at := int64(0); at < int64(len(m.live[name].live)); at += int64(1 + rng.IntN(sparing()/3+1)) {
		spoiled = append(spoiled, m.copied(name, at, int(at)%8))
	}
	for i, c := range spoiled {
		j := open(t, c)
		if got := fmt.Sprint(contents(t, j)); got != whole {
			t.Fatalf("index %d: the log reads differently", i)
		}
		if n, err := j.Verify(t.Context()); err != nil || n != 180 {
			t.Fatalf("index %d: verify counts %d events, %v; want 180", i, n, err)
		}
		for n := range 7 {
			r, ok, err := j.Last(t.Context(), fmt.Sprintf("s-%d", n))
			if err != nil || !ok || r.Revision < 23 {
				t.Fatalf("index %d: last event of s-%d is %d, %v", i, n, r.Revision, err)
			}
		}
		_ = j.Close()
	}
}

func TestVerifyNamesDamageThatOpenDoesNotLookFor(t *testing.T) {
	t.Parallel()
	m := written(t, 1)
	p := places(m.live[segmentOf(0)].live)[5]
	j := open(t, m.copied(segmentOf(0), p.from+20, 1))
	_, err := j.Verify(t.Context())
	var corrupt *eventstore.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Position != eventstore.Position(p.from) {
		t.Errorf("verify says %v, want damage at %d", err, p.from)
	}
}

// What follows the last mark may be torn anywhere: it is cut, and the log goes on.
func TestATornTailIsCutWhereverItTears(t *testing.T) {
	t.Parallel()
	m := newMachine(1)
	j := open(t, m)
	add(t, j, "a-1", "first")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	base := places(m.live[segmentOf(0)].live)
	j = open(t, m)
	batch := append(proposed(strings.Repeat("y", 100)), proposed(strings.Repeat("z", 100))...)
	if _, err := j.Append(t.Context(), "a-1", 0, batch); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.off = true // no last mark
	torn := m.copied("", 0, 0)
	m.mu.Unlock()
	frames := places(torn.live[segmentOf(0)].live)
	if tail := frames[len(frames)-1]; tail.mark {
		clear(torn.live[segmentOf(0)].live[tail.from:tail.to])
	}
	for at := base[len(base)-1].from; at < frames[4].to; at++ {
		c := torn.copied(segmentOf(0), at, int(at)%8)
		j := open(t, c)
		if got := contents(t, j); len(got) != 1 || got[0] != "first" {
			t.Fatalf("torn at %d: the log holds %q", at, got)
		}
		add(t, j, "a-1", "next")
		_ = j.Close()
		if got := contents(t, open(t, c)); fmt.Sprint(got) != "[first next]" {
			t.Fatalf("torn at %d and written on: the log holds %q", at, got)
		}
	}
}
