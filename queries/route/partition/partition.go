// Package partition divides the junctions of a road network into cells on several levels, so that few roads lead from one cell to
// another: the fewer they are, the fewer shortcuts package overlay has to keep. The cells depend only on the input, never on the
// number of cores or on time.
//
//	Input ── newPiece, contract ──► piece ── bisect ──► two pieces ── bisect ──► … ──► cells of level 1
//
// A piece is a set of junctions with the roads between them. Stretches that no good cut crosses, such as dead ends and chains,
// count as one junction from the start. A piece is bisected along the smallest cut between the junctions that lie farthest out in a
// direction and those farthest out on the other side (inertial flow); among several directions the one with the best cut for its
// balance wins. A piece becomes a cell of a level as soon as it fits the size of that level, so cells are nested.
package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route/graph"
)

// Input is a road network without directions.
type Input struct {
	Lon, Lat []int32     // by junction, in 1e-7 degrees
	Edges    [][2]uint32 // pairs of junctions; a pair given twice weighs twice, a loop is ignored
}

// Result is the division into cells. Order holds for each junction its new number: the junctions of a cell have consecutive
// numbers, on every level. Cells uses the new numbers. Cells too are numbered along the junctions.
type Result struct {
	Order []uint32
	Cells graph.Cells
}

// ErrInput means that an input refers to junctions that do not exist, or that sizes do not ascend from 1.
var ErrInput = errors.New("no valid input of a partition")

// Cells divides junctions into cells of at most sizes[l-1] junctions on level l; sizes ascend. A level above the first that would
// have a single cell is left out. Junctions without edges and unconnected parts join their neighbours on the map. progress, which
// may be nil, is called with the share of the work done, one call at a time. Cells uses all cores and about 250 bytes of memory per
// junction.
func Cells(ctx context.Context, in Input, sizes []int, progress func(done, total int64)) (Result, error) {
	if err := in.check(sizes); err != nil {
		return Result{}, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	d := &divider{
		sizes: sizes, junctions: make([]uint32, len(in.Lon)), begins: make([]uint8, len(in.Lon)),
		progress: progress, total: workOf(len(in.Lon), sizes[0]),
	}
	if len(in.Lon) > 0 {
		if err := d.run(ctx, in); err != nil {
			return Result{}, fmt.Errorf("dividing %d junctions into cells: %w", len(in.Lon), err)
		}
	}
	return d.result(), nil
}

func (in Input) check(sizes []int) error {
	if len(in.Lon) != len(in.Lat) || int64(len(in.Lon)) >= maxJunctions || len(in.Edges) >= maxJunctions/2 {
		return fmt.Errorf("%w: %d longitudes, %d latitudes, %d edges", ErrInput, len(in.Lon), len(in.Lat), len(in.Edges))
	}
	if len(sizes) == 0 || len(sizes) > maxLevels || sizes[0] < 1 || !slices.IsSorted(sizes) {
		return fmt.Errorf("%w: sizes %v", ErrInput, sizes)
	}
	for _, e := range in.Edges {
		if int(e[0]) >= len(in.Lon) || int(e[1]) >= len(in.Lon) {
			return fmt.Errorf("%w: edge between %d and %d of %d junctions", ErrInput, e[0], e[1], len(in.Lon))
		}
	}
	return nil
}

const (
	maxJunctions = 1 << 30
	maxLevels    = 100
)

// divider divides the junctions of one call of Cells. The goroutine that divides a piece owns the elements of its junctions in
// junctions and begins.
type divider struct {
	sizes     []int
	members   members  // the junctions that each junction of a piece stands for
	junctions []uint32 // in their new order
	begins    []uint8  // for each position in the new order, the highest level of which a cell begins there, or 0

	group   *errgroup.Group
	scratch sync.Pool // of *flow

	mu          sync.Mutex // of what follows
	progress    func(done, total int64)
	done, total float64
}

// run fills junctions and begins.
func (d *divider) run(ctx context.Context, in Input) error {
	d.group, ctx = errgroup.WithContext(ctx)
	d.group.SetLimit(runtime.GOMAXPROCS(0) - 1)
	p := newPiece(in)
	d.members = singles(len(in.Lon))
	for range 2 {
		group, groups := p.stretches(max(1, d.sizes[0]/8))
		p, d.members = p.contract(group, groups, d.members)
	}
	err := d.divide(ctx, p, 0, len(d.sizes)+1)
	if waitErr := d.group.Wait(); err == nil {
		err = waitErr
	}
	return err
}

// divide divides a piece into cells, whose junctions take the positions from first on. It lies in cells of the levels from level
// on.
func (d *divider) divide(ctx context.Context, p *piece, first, level int) error {
	if fits, _ := slices.BinarySearch(d.sizes, p.total); fits+1 < level {
		d.begins[first] = max(d.begins[first], uint8(level-1))
		level = fits + 1
	}
	if level == 1 {
		d.place(p, first)
		return nil
	}
	a, b, err := d.bisect(ctx, p)
	if err != nil {
		return err
	}
	d.report(workOf(p.total, d.sizes[0]) - workOf(a.total, d.sizes[0]) - workOf(b.total, d.sizes[0]))
	behind := first + a.total
	if d.group.TryGo(func() error { return d.divide(ctx, b, behind, level) }) {
		return d.divide(ctx, a, first, level)
	}
	if err := d.divide(ctx, a, first, level); err != nil {
		return err
	}
	return d.divide(ctx, b, behind, level)
}

// place writes the junctions of a piece that is a cell of level 1.
func (d *divider) place(p *piece, first int) {
	for _, id := range p.id {
		first += copy(d.junctions[first:], d.members.of(id))
	}
}

// report reports finished work.
func (d *divider) report(work float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done += work
	d.progress(int64(d.done), int64(d.total))
}

// workOf estimates the work of dividing some junctions into cells of at most size: each junction takes part in the bisections that
// halve the number down to the size.
func workOf(junctions, size int) float64 {
	if junctions <= size {
		return 0
	}
	return float64(junctions) * math.Log2(float64(junctions)/float64(size))
}

// result numbers the cells of each level in the order of their junctions.
func (d *divider) result() Result {
	r := Result{Order: make([]uint32, len(d.junctions)), Cells: graph.Cells{Of: make([]uint32, len(d.junctions))}}
	count, parent := make([]int, len(d.sizes)), make([][]uint32, len(d.sizes))
	for at, j := range d.junctions {
		for l := int(d.begins[at]) - 1; l >= 0; l-- {
			count[l]++
			if l+1 < len(count) {
				parent[l] = append(parent[l], uint32(count[l+1]-1))
			}
		}
		r.Order[j] = uint32(at)
		r.Cells.Of[at] = uint32(count[0] - 1)
	}
	levels := 1
	for levels < len(count) && count[levels] > 1 {
		levels++
	}
	r.Cells.Count, r.Cells.Parent = count[:levels], parent[:levels-1]
	return r
}
