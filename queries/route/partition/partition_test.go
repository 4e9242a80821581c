package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// grid is a town of width × height junctions with streets between neighbours, some of which are missing. The numbers of its
// junctions are shuffled.
func grid(seed uint64, width, height int, missing float64) Input {
	r := rand.New(rand.NewPCG(seed, 1))
	in := Input{Lon: make([]int32, width*height), Lat: make([]int32, width*height)}
	number := r.Perm(width * height)
	at := func(x, y int) uint32 { return uint32(number[y*width+x]) }
	for y := range height {
		for x := range width {
			in.Lon[at(x, y)], in.Lat[at(x, y)] = int32(20_000_000+x*10_000+r.IntN(5_000)), int32(480_000_000+y*7_000+r.IntN(3_000))
			if x > 0 && r.Float64() >= missing {
				in.Edges = append(in.Edges, [2]uint32{at(x-1, y), at(x, y)})
			}
			if y > 0 && r.Float64() >= missing {
				in.Edges = append(in.Edges, [2]uint32{at(x, y), at(x, y-1)})
			}
		}
	}
	return in
}

// islands is a grid in two parts without an edge between them, with doubled edges, loops and lonely junctions.
func islands() Input {
	in := grid(3, 30, 20, 0.2)
	other := grid(4, 25, 25, 0.3)
	shift := uint32(len(in.Lon))
	for j := range other.Lon {
		in.Lon, in.Lat = append(in.Lon, other.Lon[j]+100_000), append(in.Lat, other.Lat[j])
	}
	for _, e := range other.Edges {
		in.Edges = append(in.Edges, [2]uint32{e[0] + shift, e[1] + shift}, [2]uint32{e[1] + shift, e[0] + shift}, [2]uint32{e[0], e[0]})
	}
	for i := range 100 {
		in.Lon, in.Lat = append(in.Lon, int32(20_000_000+i*1_000)), append(in.Lat, 480_000_000)
	}
	return in
}

// samePlace has all its junctions at one position.
func samePlace() Input {
	in := grid(5, 20, 20, 0.1)
	clear(in.Lon)
	clear(in.Lat)
	return in
}

// path is a road without crossings, ring one that ends where it begins, star one junction with dead ends.
func path(n int) Input {
	in := Input{Lon: make([]int32, n), Lat: make([]int32, n)}
	for j := range n {
		in.Lon[j] = int32(j * 100)
		if j > 0 {
			in.Edges = append(in.Edges, [2]uint32{uint32(j - 1), uint32(j)})
		}
	}
	return in
}

func ring(n int) Input {
	in := path(n)
	in.Edges = append(in.Edges, [2]uint32{uint32(n - 1), 0})
	return in
}

func star(n int) Input {
	in := path(n)
	for i := range in.Edges {
		in.Edges[i][0] = 0
	}
	return in
}

func TestCellsAreNestedConsecutiveAndWithinTheirSizes(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Input{
		"no junction": {}, "one junction": {Lon: []int32{1}, Lat: []int32{2}}, "no edges": {Lon: make([]int32, 500), Lat: make([]int32, 500)},
		"grid": grid(1, 60, 50, 0.1), "sparse grid": grid(2, 60, 50, 0.45), "islands": islands(), "one place": samePlace(),
		"path": path(1_000), "ring": ring(1_000), "star": star(1_000), "two": path(2), "three": path(3),
	} {
		for _, sizes := range [][]int{{16, 64, 256, 1024}, {1}, {2, 3}, {7, 7, 50}, {100_000}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r, err := Cells(t.Context(), in, sizes, nil)
				if err != nil {
					t.Fatal(err)
				}
				checkResult(t, r, len(in.Lon), sizes)
			})
		}
	}
}

// checkResult checks what a result promises whatever the cuts are.
func checkResult(t *testing.T, r Result, junctions int, sizes []int) {
	t.Helper()
	numbers := slices.Clone(r.Order)
	slices.Sort(numbers)
	for j, n := range numbers {
		if int(n) != j {
			t.Fatalf("the new numbers do not hold %d", j)
		}
	}
	if len(r.Order) != junctions || len(r.Cells.Of) != junctions {
		t.Fatalf("%d new numbers and %d cells of %d junctions", len(r.Order), len(r.Cells.Of), junctions)
	}
	levels := r.Cells.Levels()
	if levels < 1 || levels > len(sizes) || len(r.Cells.Parent) != levels-1 {
		t.Fatalf("%d levels and %d columns of parents for sizes %v", levels, len(r.Cells.Parent), sizes)
	}
	for level := 1; level <= levels; level++ {
		if level < levels && len(r.Cells.Parent[level-1]) != r.Cells.Count[level-1] {
			t.Errorf("level %d: %d parents of %d cells", level, len(r.Cells.Parent[level-1]), r.Cells.Count[level-1])
		}
		if level > 1 && r.Cells.Count[level-1] < 2 {
			t.Errorf("level %d has %d cells", level, r.Cells.Count[level-1])
		}
		checkLevel(t, r, level, sizes[level-1])
	}
}

// checkLevel checks that cells come one after another, none of them empty or too large.
func checkLevel(t *testing.T, r Result, level, size int) {
	t.Helper()
	count, current := 0, 0
	for j := range r.Cells.Of {
		cell := int(r.Cells.At(uint32(j), level))
		if j == 0 || cell != count-1 {
			count, current = count+1, 0
		}
		current++
		if cell != count-1 || current > size {
			t.Fatalf("level %d: junction %d is number %d of cell %d, the one after cell %d; want at most %d", level, j, current, cell, count-2, size)
		}
	}
	if count != r.Cells.Count[level-1] {
		t.Errorf("level %d has %d cells, Count says %d", level, count, r.Cells.Count[level-1])
	}
}

func TestCellsDoNotDependOnTheNumberOfCores(t *testing.T) { // not parallel: it changes GOMAXPROCS
	in := grid(7, 130, 120, 0.2)
	sizes := []int{64, 512, 4096}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	want, err := Cells(t.Context(), in, sizes, nil)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(8)
	for range 2 {
		got, err := Cells(t.Context(), in, sizes, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("error %v, other cells on 8 cores than on 1", err)
		}
	}
}

func TestTwoTownsArePartedWhereOneRoadLinksThem(t *testing.T) {
	t.Parallel()
	in := grid(8, 20, 20, 0)
	for _, e := range slices.Clone(in.Edges) {
		in.Edges = append(in.Edges, [2]uint32{e[0] + 400, e[1] + 400})
	}
	for j := range 400 {
		in.Lon, in.Lat = append(in.Lon, in.Lon[j]+250_000), append(in.Lat, in.Lat[j]+60_000)
	}
	in.Edges = append(in.Edges, [2]uint32{17, 417})
	r, err := Cells(t.Context(), in, []int{500}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cutEdges(in, r, 1); got != 1 || r.Cells.Count[0] != 2 {
		t.Errorf("%d edges cut between %d cells, want 1 between 2", got, r.Cells.Count[0])
	}
}

// cutEdges counts the edges between cells of a level.
func cutEdges(in Input, r Result, level int) int {
	n := 0
	for _, e := range in.Edges {
		if r.Cells.At(r.Order[e[0]], level) != r.Cells.At(r.Order[e[1]], level) {
			n++
		}
	}
	return n
}

func TestCutsOfAGridAreAboutAsShortAsItsSides(t *testing.T) {
	t.Parallel()
	in := grid(9, 64, 64, 0)
	r, err := Cells(t.Context(), in, []int{1100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cutEdges(in, r, 1); got > 64*5 {
		t.Errorf("%d edges cut into %d cells, want at most 320", got, r.Cells.Count[0])
	}
}

func TestImpossibleInputIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    Input
		sizes []int
	}{
		"no such junction":    {Input{Lon: []int32{0}, Lat: []int32{0}, Edges: [][2]uint32{{0, 1}}}, []int{1}},
		"columns differ":      {Input{Lon: []int32{0}}, []int{1}},
		"no sizes":            {Input{}, nil},
		"size 0":              {Input{}, []int{0, 5}},
		"sizes do not ascend": {Input{}, []int{5, 4}},
	} {
		if _, err := Cells(t.Context(), c.in, c.sizes, nil); !errors.Is(err, ErrInput) {
			t.Errorf("%s: error %v, want ErrInput", name, err)
		}
	}
}

func TestACancelledDivisionEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Cells(ctx, grid(1, 100, 100, 0.1), []int{4}, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestProgressAscendsToItsTotal(t *testing.T) {
	t.Parallel()
	last, end := int64(-1), int64(0)
	_, err := Cells(t.Context(), grid(1, 100, 100, 0.1), []int{16, 256}, func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d done after %d", done, total, last)
		}
		last, end = done, total
	})
	if err != nil || last < end-1 {
		t.Errorf("error %v, %d of %d done at the end", err, last, end)
	}
}

func BenchmarkCells(b *testing.B) {
	in := grid(1, 400, 400, 0.3)
	for b.Loop() {
		if _, err := Cells(b.Context(), in, []int{256, 2048, 16384, 131072}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
