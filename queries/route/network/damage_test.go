package network

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/search"
	"lieudit/schemas/geo"
)

// block is a town of some streets with all that a file can have.
func block() *town {
	return &town{grid: " d f \nabce \n g h ", nodes: []string{"e barrier=bollard", "c highway=traffic_signals", "b highway=motorway_junction ref=12", "h highway=mini_roundabout"}, ways: []string{
		"abce highway=primary name=Rue_Haute ref=D_1 toll=yes", "dcg highway=residential oneway=yes", "fe highway=footway",
		"bdb highway=service", "gh route=ferry", "eh highway=motorway"}, relations: []string{"no_left_turn dcg c abce", "only_straight_on bdb abce dcg"}}
}

// writeBytes writes a file and returns its path.
func writeBytes(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildBytes is the content of the file of a town.
func buildBytes(t testing.TB, w *town) []byte {
	t.Helper()
	path, _ := buildFile(t, w.writeMap(t), Options{})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestACutFileIsRefused(t *testing.T) {
	t.Parallel()
	data := buildBytes(t, block())
	for _, n := range []int{0, 1, 39, 40, 500, len(data) / 2, len(data) - 1} {
		path := writeBytes(t, data[:n])
		if _, err := Open(path); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

func TestAFileOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	format := Format()
	format.FirstVersion += uint32(len(format.SectionCounts))
	if _, err := openAs(writeBytes(t, buildBytes(t, block())), format); !errors.Is(err, ErrOther) {
		t.Errorf("another version: %v, want %v", err, ErrOther)
	}
	if _, err := Open(block().writeMap(t)); !errors.Is(err, ErrOther) {
		t.Errorf("a map: %v, want %v", err, ErrOther)
	}
}

func TestAFlippedByteIsRefusedWhenTheFileOpens(t *testing.T) {
	t.Parallel()
	data := buildBytes(t, block())
	whole, err := Open(writeBytes(t, data))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		damaged := append([]byte(nil), data...)
		at := rng.IntN(len(data))
		damaged[at] ^= byte(1 + rng.IntN(255))
		n, err := Open(writeBytes(t, damaged))
		if err == nil {
			n.Close()
			if damaged[at]^data[at] != 0 && data[at] != 0 { // a 0 may lie between two sections
				t.Errorf("byte %d was flipped and the file opens", at)
			}
		}
	}
}

// readEverything reads all that a network offers.
func readEverything(n *Network, rng *rand.Rand) {
	for _, m := range modes() {
		l := n.Layer(m)
		for segment := range uint32(l.Segments()) {
			l.Road(segment)
			l.AppendGeometry(nil, segment, segment%2 == 0)
		}
		for junction := range uint32(l.Graph.Junctions()) {
			l.JunctionExit(junction)
			l.IsMiniRoundabout(junction)
		}
		var places []search.Place
		p := geo.Point{Lon: rng.Float64() * 5 * townStep, Lat: -rng.Float64() * 3 * townStep}
		l.Near(p, 500, func(h Hit) bool {
			if forward, _ := l.SegmentEdges(h.Segment); forward != graph.None {
				places = append(places, search.PlaceOn(l.Graph, forward, h.Fraction))
			}
			return len(places) < 2
		})
		if len(places) == 2 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			profile := route.Profile{Mode: m, Optimization: route.Fastest, Avoid: route.Avoid(rng.IntN(8))}
			search.New(l.Graph, l.Topology, l).Route(ctx, profile, places[:1], places[1:])
			cancel()
		}
	}
}

func TestDamageInLargeSectionsGivesWrongAnswersOrAnErrorNeverACrash(t *testing.T) {
	t.Parallel()
	data := buildBytes(t, block())
	format := Format()
	format.CheckedAtOpen = -1 // as if each section were too large to be looked at
	rng := rand.New(rand.NewPCG(3, 3))
	found := 0
	for i := range 600 {
		damaged := append([]byte(nil), data...)
		for range 1 + i%3 {
			damaged[headerEnd+rng.IntN(len(data)-headerEnd)] ^= byte(1 + rng.IntN(255))
		}
		n, err := openAs(writeBytes(t, damaged), format)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("opened with %v, want %v", err, ErrDamaged)
			}
			continue
		}
		if err := n.Guard(func() error { readEverything(n, rng); return nil }); err != nil {
			found++
			if !errors.Is(err, ErrDamaged) || !errors.Is(n.Damage(), ErrDamaged) {
				t.Errorf("read with %v, damage %v, want %v", err, n.Damage(), ErrDamaged)
			}
		}
		n.Close()
	}
	if found == 0 {
		t.Error("no damage made an index panic: the test shows nothing")
	}
}

// headerEnd is where the sections begin.
const headerEnd = 40 + 24*sectionCount

// A search allocates memory for each cell, so a number that is far too large must not reach it.
func TestNumbersOfCellsThatContradictTheCountsAreDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		levels []uint32
		want   error
	}{{[]uint32{0, 3, 5}, nil}, {[]uint32{0, 3, 1 << 30}, ErrDamaged}, {[]uint32{0, 3}, ErrDamaged}, {nil, ErrDamaged}} {
		b := &binder{}
		if b.checkLevels(tt.levels, []int{3, 2}); !errors.Is(b.err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.levels, b.err, tt.want)
		}
	}
}

func TestOtherPanicsPassThroughAGuard(t *testing.T) {
	t.Parallel()
	n, err := Open(writeBytes(t, buildBytes(t, block())))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for name, f := range map[string]func(){
		"a word": func() { panic("word") }, "an index": func() { n.Layer(route.Car).Road(1 << 30) }, "nil": func() { var m *Meta; m.Roads++ },
	} {
		func() {
			defer func() {
				if recover() == nil || n.Damage() != nil {
					t.Errorf("%s: swallowed, or taken for damage: %v", name, n.Damage())
				}
			}()
			n.Guard(func() error { f(); return nil })
		}()
	}
}

func TestAFileCutShortUnderAReaderEndsTheReadAndNotTheProcess(t *testing.T) {
	t.Parallel()
	path := writeBytes(t, buildBytes(t, block()))
	n, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	if err := n.Guard(func() error { readEverything(n, rng); return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
}

// checkNothingLeft checks that a folder is empty.
func checkNothingLeft(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestABuildOfABadMapLeavesNothing(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(osmtest.Path(t, "bondy"))
	if err != nil {
		t.Fatal(err)
	}
	empty := (&town{grid: "a", ways: []string{"a?b building=yes"}}).writeMap(t)
	for name, source := range map[string]string{
		"cut in the middle": writeBytes(t, whole[:len(whole)/2]), "cut near the end": writeBytes(t, whole[:len(whole)-10]),
		"no map": writeBytes(t, []byte("no map at all")), "absent": filepath.Join(t.TempDir(), "absent"), "without roads": empty,
	} {
		dir := t.TempDir()
		_, err := Build(t.Context(), filepath.Join(dir, "network"), source, Options{})
		if err == nil {
			t.Errorf("%s: built", name)
		}
		if name == "without roads" && !errors.Is(err, ErrEmpty) || name == "absent" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		checkNothingLeft(t, dir)
	}
}

func TestACanceledBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	source := osmtest.Path(t, "bondy")
	for _, stage := range []string{StageRoads, StageNodes, StageGeometry, StageCells, StageGraphs, StageShortcuts} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Build(ctx, filepath.Join(dir, "network"), source, Options{Progress: func(now string, _, _ int64) {
			if now == stage {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled at %s: %v", stage, err)
		}
		checkNothingLeft(t, dir)
		cancel()
	}
}

func TestTheDateIsThatOfTheMapElseTheGivenOneElseThatOfTheFile(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 11, d, 12, 0, 0, 0, time.UTC) }
	dated, undated := block(), block()
	dated.date = day(1)
	source := undated.writeMap(t)
	if err := os.Chtimes(source, day(3), day(3)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source string
		given  time.Time
		want   time.Time
	}{{dated.writeMap(t), day(2), day(1)}, {source, day(2), day(2)}, {source, time.Time{}, day(3)}} {
		n, _ := buildOpen(t, tt.source, Options{Date: tt.given, IsSynthetic: true})
		if !n.Meta.Date.Equal(tt.want) || !n.Meta.IsSynthetic {
			t.Errorf("date %v, synthetic %v, want %v", n.Meta.Date, n.Meta.IsSynthetic, tt.want)
		}
	}
}
