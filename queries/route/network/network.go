// Package network builds the road network of a map as one immutable file, and opens it: the road graphs of cars, pedestrians and
// bicycles, the geometry and the names of roads, an index of positions, and the shortcuts that make routing fast. The same map
// gives the same bytes, and a country of the size of France is built within 4 GB of memory.
//
//	map ── scan ways, restrictions ──► wayTable      ┐              ┌► texts, roads, pieces, tree      for all modes
//	    ── scan nodes ──► nodeTable: what is used    ┴── Build ─────┤
//	                                                    partition   └► segments ─► edges, turns ─► graph.Graph, overlay    each mode
//	the file ── Open, mapped ──► Network ── Layer ──► Graph, Topology, Metrics: columns of the mapping
//	                                         └───── Road, JunctionExit, IsMiniRoundabout, AppendGeometry, AppendFixed, BoxAround, SegmentEdges, Near
//
// A junction of a mode is a node where the mode has a choice or must stop: where its ways meet or end, at a barrier, at the via of
// a turn restriction. Copies of edges express rules that depend on where a path comes from: the turns that restrictions over ways
// forbid, and roads that are closed to through traffic. A way is cut into pieces at every node that is a junction of any mode.
// Pieces hold the geometry, once for all modes, in the order of a space-filling curve, so that neighbours lie together. A segment
// of a mode is a run of pieces of one way between two junctions of the mode. Segments are numbered in the order of their pieces,
// junctions by cell, edges by junction.
//
// Open checks the small sections and Verify checks all. Damage in a section that Open does not check causes wrong answers at worst,
// if reads are made in Guard: it turns a fault of the mapping into an error, and also an index panic if the file turns out to be
// damaged.
package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
	"lieudit/queries/route/profile"
)

var (
	// ErrOther means that the file is not a road network, or has another version of the format.
	ErrOther = errors.New("not a road network of this format")
	// ErrDamaged means that the file is a road network whose content has changed since it was written.
	ErrDamaged = errors.New("the road network is damaged")
)

// Format describes the files of road networks to package mappedfile.
func Format() mappedfile.Format {
	return mappedfile.Format{Magic: "lieudit-network\n", FirstVersion: 1, SectionCounts: []int{firstSectionCount, sectionCount},
		CheckedAtOpen: 8 << 20,
		ErrOther:      ErrOther, ErrDamaged: ErrDamaged}
}

// The sections that all modes share. A section that ends in First holds offsets: the part of item i in the section of the same
// name lies between First[i] and First[i+1].
const (
	secMeta mappedfile.Section = iota + 1
	secTexts
	secRoads
	secGeometryFirst
	secGeometry
	secPieceRoads
	secTree
	secLayers // the first section of the first mode
)

// The sections of a mode, behind those of the mode before.
const (
	secFirstOut mappedfile.Section = iota
	secFirstIn
	secTurnTable
	secIn
	secTurns
	secTail
	secHead
	secInRank
	secDuration
	secDistance
	secFlags
	secSegment
	secComponent // of version 1; empty from version 2 on
	secCopies
	secCells
	secCellParents
	secSegmentPiece
	secSegmentPieces
	secSegmentEdges
	secTopology
	secMatrices
	secWeights
	secWeightPenalties
	secExits
	secExitTexts
	secMiniRoundabouts
	layerSections
)

// firstSectionCount is the number of sections of version 1 of the format. Version 2 adds further sections: for each mode the
// penalties of its edges, empty if no edge has one, and then for each mode how its edges are connected. In version 1 such penalties
// were part of an edge's duration, and a weight came with the plain cost of avoided roads, from which bindOverlay computes the
// penalty.
const (
	firstSectionCount = int(secLayers) - 1 + profile.Modes*int(layerSections)
	sectionCount      = firstSectionCount + 2*profile.Modes
)

// penaltySection is the number of the section with the penalties of a mode's edges.
func penaltySection(m profile.Mode) mappedfile.Section {
	return mappedfile.Section(firstSectionCount + 1 + int(m))
}

// connectionSection is the number of the section with how the edges of a mode are connected.
func connectionSection(m profile.Mode) mappedfile.Section {
	return penaltySection(m) + profile.Modes
}

// layerSection is the number of a mode's section in the file.
func layerSection(m profile.Mode, s mappedfile.Section) mappedfile.Section {
	return secLayers + mappedfile.Section(m)*layerSections + s
}

// Meta describes a network. It is stored in the file.
type Meta struct {
	Date        time.Time `json:"date,omitzero"` // of the map
	IsSynthetic bool      `json:"synthetique,omitempty"`
	Box         Box       `json:"emprise"`
	Roads       int       `json:"troncons"` // pieces of roads between junctions of any mode
	Modes       []Counts  `json:"modes"`    // in the order of profile.Mode
}

// Box holds all roads of a network, in degrees.
type Box struct{ West, South, East, North float64 }

// Counts are the sizes of the graph of a mode.
type Counts struct {
	Mode         route.Mode     `json:"mode"`
	Junctions    int            `json:"carrefours"`
	Segments     int            `json:"segments"`
	Edges        int            `json:"aretes"`
	Restrictions int            `json:"restrictions"`
	Cells        []int          `json:"cellules"` // on each level
	Metrics      []MetricCounts `json:"metriques"`
}

// Network is an open file. It is safe for concurrent use until Close. Graphs, topologies and metrics lie in the mapping and
// must not be used after Close; a Road and points are copies.
type Network struct {
	*mappedfile.File
	Meta   Meta
	shape  shape
	layers [profile.Modes]Layer
}

// Layer is the network of one mode. It gives package search its graph, its topology and, by Metric, its metrics. Segments are numbered
// from 0 to Segments-1. It is safe for concurrent use until its Network is closed.
type Layer struct {
	Graph    *graph.Graph
	Topology *overlay.Topology

	network      *Network
	mode         profile.Mode
	firstPiece   []uint32 // of each segment
	pieces       []uint16 // their number, by segment
	segmentEdges []uint32 // the edges forward and backward, by segment
	exits        []uint32 // junctions where exits of motorways begin, ascending
	exitTexts    []uint32 // of each its number
	mini         []uint32 // junctions that are mini roundabouts, ascending
	searches     sync.Pool
	metrics      map[metricKey]*overlay.Metric
	avoidable    route.Avoid // the kinds of roads that it has
}

// Open maps a file after it has checked the header and the small sections. It fails with ErrOther, ErrDamaged or an error of the file
// system. The caller closes the network.
func Open(path string) (*Network, error) { return openAs(path, Format()) }

// openAs is Open with a format that a test may change.
func openAs(path string, format mappedfile.Format) (n *Network, err error) {
	file, err := mappedfile.Open(path, format)
	if err != nil {
		return nil, err
	}
	n = &Network{File: file}
	if err := n.Guard(n.bind); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return n, nil
}

// Layer returns the network of a mode; for an unknown mode, that of cars.
func (n *Network) Layer(m route.Mode) *Layer { return &n.layers[profile.ModeOf(m)] }

// Guard runs read, which reads the network, and turns damage that it meets into an error that is ErrDamaged. After an index panic
// it verifies the whole file: if the checksums are right, the panic continues, because it is a bug of the program. Guard covers one
// goroutine, as mappedfile.File.Guard does.
func (n *Network) Guard(read func() error) error {
	return n.File.Guard(func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = n.explainPanic(cause)
			}
		}()
		return read()
	})
}

// explainPanic returns the damage behind a panic, or panics again if the file is sound.
func (n *Network) explainPanic(cause any) error {
	_, isRuntime := cause.(runtime.Error)
	_, isFault := cause.(interface{ Addr() uintptr })
	if !isRuntime || isFault {
		panic(cause)
	}
	if damage := n.Verify(context.Background()); errors.Is(damage, ErrDamaged) {
		return damage
	}
	panic(cause)
}

// bind lays the columns over the sections and checks that their lengths fit together.
func (n *Network) bind() error {
	if err := json.Unmarshal(n.Section(secMeta), &n.Meta); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(n.Meta.Modes) != profile.Modes {
		return fmt.Errorf("%w: its counts contradict each other", ErrDamaged)
	}
	if err := n.bindShape(); err != nil {
		return err
	}
	for m := range n.layers {
		if err := n.bindLayer(profile.Mode(m)); err != nil {
			return err
		}
	}
	return nil
}

// binder reads columns and joins the errors that it meets.
type binder struct {
	network *Network
	mode    profile.Mode
	err     error
}

// column reads a section as a column of a length, or of any length if that is negative.
func column[T mappedfile.Number](b *binder, id mappedfile.Section, length int) []T {
	values, err := mappedfile.View[T](b.network.File, id)
	if err == nil && length >= 0 && len(values) != length {
		err = fmt.Errorf("%w: section %d has %d items and should have %d", ErrDamaged, id, len(values), length)
	}
	b.err = errors.Join(b.err, err)
	return values
}

// layerColumn is column for a section of the binder's mode.
func layerColumn[T mappedfile.Number](b *binder, s mappedfile.Section, length int) []T {
	return column[T](b, layerSection(b.mode, s), length)
}

// bindLayer lays the columns of a mode over its sections.
func (n *Network) bindLayer(m profile.Mode) error {
	b, counts := &binder{network: n, mode: m}, n.Meta.Modes[m]
	junctions, edges, segments := counts.Junctions, counts.Edges, counts.Segments
	g := &graph.Graph{
		FirstOut: layerColumn[uint32](b, secFirstOut, junctions+1), FirstIn: layerColumn[uint32](b, secFirstIn, junctions+1),
		TurnTable: layerColumn[uint32](b, secTurnTable, junctions), In: layerColumn[uint32](b, secIn, edges),
		Turns: layerColumn[uint8](b, secTurns, -1), Tail: layerColumn[uint32](b, secTail, edges), Head: layerColumn[uint32](b, secHead, edges),
		InRank: layerColumn[uint8](b, secInRank, edges), Duration: layerColumn[uint32](b, secDuration, edges),
		Distance: layerColumn[uint32](b, secDistance, edges), Flags: layerColumn[graph.Flags](b, secFlags, edges),
		Penalty: column[uint32](b, penaltySection(m), -1), Segment: layerColumn[uint32](b, secSegment, edges),
	}
	if len(g.Penalty) > 0 && len(g.Penalty) != edges {
		return fmt.Errorf("%w: penalties of the %s layer", ErrDamaged, counts.Mode)
	}
	l := &n.layers[m]
	l.Graph, l.network, l.mode = g, n, m
	l.firstPiece, l.pieces = layerColumn[uint32](b, secSegmentPiece, segments), layerColumn[uint16](b, secSegmentPieces, segments)
	l.segmentEdges = layerColumn[uint32](b, secSegmentEdges, 2*segments)
	l.exits = layerColumn[uint32](b, secExits, -1)
	l.exitTexts = layerColumn[uint32](b, secExitTexts, len(l.exits))
	l.mini = layerColumn[uint32](b, secMiniRoundabouts, -1)
	l.searches.New = func() any { return &nearSearch{layer: l, seen: map[uint32]struct{}{}} }
	b.bindConnections(g, edges)
	b.bindCells(g, counts)
	b.bindCopies(g)
	b.bindOverlay(l, counts)
	return b.err
}

// bindConnections reads how edges are connected. A file of version 1 has the number of the component of each edge: 0 is the largest.
func (b *binder) bindConnections(g *graph.Graph, edges int) {
	if b.network.Version() > 1 {
		g.Connection = column[graph.Connection](b, connectionSection(b.mode), edges)
		return
	}
	var main []uint32
	for edge, component := range layerColumn[uint32](b, secComponent, edges) {
		if component == 0 {
			main = append(main, uint32(edge))
		}
	}
	if b.err == nil {
		g.Connection = connectTo(g, main)
	}
}

// bindCells reads the cells. One section holds the parents of all levels one after the other; bindCells splits it into levels.
func (b *binder) bindCells(g *graph.Graph, counts Counts) {
	g.Cells.Of, g.Cells.Count = layerColumn[uint32](b, secCells, counts.Junctions), counts.Cells
	parents := layerColumn[uint32](b, secCellParents, -1)
	for l := 0; l+1 < len(counts.Cells); l++ {
		if n := counts.Cells[l]; n < 0 || n > len(parents) {
			b.err = errors.Join(b.err, fmt.Errorf("%w: cells", ErrDamaged))
			return
		}
		g.Cells.Parent = append(g.Cells.Parent, parents[:counts.Cells[l]:counts.Cells[l]])
		parents = parents[counts.Cells[l]:]
	}
}

// bindCopies reads the lists of copies: each list is its length and its edges.
func (b *binder) bindCopies(g *graph.Graph) {
	copies, ok := graph.NewCopies(layerColumn[uint32](b, secCopies, -1), g.Edges())
	if !ok {
		b.err = errors.Join(b.err, fmt.Errorf("%w: copies of the %s layer", ErrDamaged, b.mode.Route()))
	}
	g.Copies = copies
}
