package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/partition"
	"lieudit/queries/route/profile"
)

// The stages of a build, as reported to Options.Progress.
const (
	StageRoads     = "roads"
	StageNodes     = "nodes"
	StageGeometry  = "geometry"
	StageCells     = "cells"
	StageGraphs    = "graphs"
	StageShortcuts = "shortcuts"
)

// Options are what a build cannot read from the map. The zero value is valid.
type Options struct {
	IsSynthetic bool
	// Date is the date of the data, for a map that does not state it. If it is zero too, the date of the file is used.
	Date time.Time
	// Progress reports how much of a stage is done; total is 0 while unknown. Calls do not overlap.
	Progress func(stage string, done, total int64)
}

// Summary describes what a build wrote, and what it could not use.
type Summary struct {
	Meta
	Bytes        int64
	Restrictions int       // turn restrictions that some mode applies
	LeftOut      []LeftOut // restrictions that no mode applies, by reason
	MissingNodes int       // nodes of roads that the map lacks, because it is an extract: roads end there
}

// LeftOut counts the restrictions that no mode applies for one reason.
type LeftOut struct {
	Reason    string
	Count     int
	Relations []int64 // the first few
}

var (
	// ErrEmpty says that the map has no roads.
	ErrEmpty = errors.New("no roads in the map")
	// ErrTooLarge says that the map has more roads than the format of the file can hold.
	ErrTooLarge = errors.New("the map is too large")
)

// cellSizes are the most junctions that a cell of each level may have, the finest level first.
func cellSizes() []int { return []int{256, 2_048, 16_384, 131_072, 1_048_576} }

// Build writes the network of a map in OSM PBF to a file. The file appears when it is complete, or not at all. Temporary files lie
// in a folder next to it and are removed. It fails with the errors of package osmpbf, ErrEmpty, ErrTooLarge and the context's.
func Build(ctx context.Context, path, source string, o Options) (s Summary, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	file, err := osmpbf.Open(source)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if o.Date.IsZero() {
		info, err := os.Stat(source)
		if err != nil {
			return s, err
		}
		o.Date = info.ModTime()
	}
	b := &builder{Options: o}
	s.Bytes, err = mappedfile.Build(path, Format(), func(_ string, w *mappedfile.Writer) error {
		b.w = w
		return b.build(ctx, file)
	})
	b.summary.Bytes = s.Bytes
	return b.summary, err
}

// builder is the state of a build.
type builder struct {
	Options
	w         *mappedfile.Writer
	summary   Summary
	cutter    *cutter
	numbering *numbering
	cells     graph.Cells // of the junctions of all modes
	placeOf   []uint32    // the position of each junction in the order of the cells
	outcomes  []outcome   // of restrictions
}

// build reads the map and writes the sections that all modes share, then those of each mode. The meta section comes last, because
// it holds the counts.
func (b *builder) build(ctx context.Context, file *osmpbf.File) error {
	source, err := readSource(ctx, file, b.Progress)
	if err != nil {
		return err
	}
	if err := b.writeShape(source); err != nil {
		return err
	}
	if err := b.divide(ctx); err != nil { // one division for all modes, so that their junctions keep the same order
		return err
	}
	b.outcomes = make([]outcome, len(source.restrictions))
	b.summary.MissingNodes = source.countMissing()
	for m := range profile.Mode(profile.Modes) {
		b.Progress(StageGraphs, int64(m), profile.Modes)
		if err := b.buildLayer(ctx, m); err != nil {
			return err
		}
	}
	b.Progress(StageGraphs, profile.Modes, profile.Modes)
	return b.writeMeta(source)
}

// writeShape cuts the ways into pieces and writes them.
func (b *builder) writeShape(s *source) error {
	b.Progress(StageGeometry, 0, 0)
	s.markJunctions()
	b.cutter = newCutter(s)
	if b.cutter.count == 0 {
		return ErrEmpty
	}
	box, err := b.cutter.writePieces(b.w)
	southWest, northEast := toPoint(box[0], box[1]), toPoint(box[2], box[3])
	b.summary.Box = Box{southWest.Lon, southWest.Lat, northEast.Lon, northEast.Lat}
	b.summary.Roads = int(b.cutter.count)
	b.numbering = s.numberJunctions()
	return err
}

// divide divides the junctions of all modes into cells.
func (b *builder) divide(ctx context.Context) error {
	b.Progress(StageCells, 0, 0)
	s := b.cutter.source
	in := partition.Input{Edges: b.numbering.edges(b.cutter)}
	for _, node := range b.numbering.junctionNodes {
		in.Lon, in.Lat = append(in.Lon, s.lon[node]), append(in.Lat, s.lat[node])
	}
	result, err := partition.Cells(ctx, in, cellSizes(), func(done, total int64) { b.Progress(StageCells, done, total) })
	b.cells, b.placeOf = result.Cells, result.Order
	return err
}

// buildLayer builds and writes the graph of a mode.
func (b *builder) buildLayer(ctx context.Context, m profile.Mode) error {
	l := &layerBuilder{cutter: b.cutter, numbering: b.numbering, mode: m, placeOf: b.placeOf}
	l.cutSegments()
	l.addRules(b.outcomes)
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := l.buildGraph()
	if err != nil {
		return err
	}
	g := e.g
	g.Connection = connect(g)
	g.Cells = cellsOf(&b.cells, l.places)
	w := &layerWriter{w: b.w, mode: m}
	w.writeSegments(l.segments, e.plain)
	w.writeGraph(g)
	w.writeExits(l)
	w.writeMiniRoundabouts(l)
	counts := Counts{Mode: m.Route(), Junctions: g.Junctions(), Segments: len(l.segments), Edges: g.Edges(), Restrictions: l.applied,
		Cells: g.Cells.Count}
	*l, *e = layerBuilder{}, edgeBuilder{} // their memory is needed
	b.Progress(StageShortcuts, int64(m), profile.Modes)
	err = b.customize(ctx, w, g, &counts)
	b.summary.Modes = append(b.summary.Modes, counts)
	return err
}

// writeMeta writes the description of the network.
func (b *builder) writeMeta(s *source) error {
	b.summary.IsSynthetic, b.summary.Date = b.IsSynthetic, s.date
	if s.date.IsZero() {
		b.summary.Date = b.Date
	}
	b.summary.Date = b.summary.Date.UTC().Truncate(time.Second)
	b.countRestrictions(s)
	meta, err := json.Marshal(b.summary.Meta)
	if err != nil {
		return fmt.Errorf("describe the network: %w", err)
	}
	b.w.Append(secMeta, meta)
	return b.w.Err()
}

// namedRelations is how many relations a LeftOut names.
const namedRelations = 5

// countRestrictions counts the restrictions by their outcome.
func (b *builder) countRestrictions(s *source) {
	byOutcome := map[outcome][]int64{isUnsupported: s.unsupported}
	for i, f := range b.outcomes {
		byOutcome[f] = append(byOutcome[f], s.restrictions[i].id)
	}
	b.summary.Restrictions = len(byOutcome[isApplied])
	for _, left := range []struct {
		outcome outcome
		reason  string
	}{
		{lacksMembers, "a member is no road of the map"},
		{doesNotMeet, "the members do not meet, or are closed"},
		{isUnsupported, "for other vehicles, or of no known form"},
	} {
		if relations := byOutcome[left.outcome]; len(relations) > 0 {
			b.summary.LeftOut = append(b.summary.LeftOut, LeftOut{left.reason, len(relations), relations[:min(namedRelations, len(relations))]})
		}
	}
}

// layerWriter writes the sections of a mode. The writer of the file keeps the first error, which the builder asks for.
type layerWriter struct {
	w    *mappedfile.Writer
	mode profile.Mode
}

// writeColumn appends numbers to a section of the mode.
func writeColumn[T mappedfile.Number](w *layerWriter, s mappedfile.Section, column []T) {
	mappedfile.AppendColumn(w.w, layerSection(w.mode, s), column)
}

// writeSegments writes the pieces and the edges of each segment.
func (w *layerWriter) writeSegments(segments []segment, plain []uint32) {
	for i := range segments {
		w.w.AppendU32(layerSection(w.mode, secSegmentPiece), segments[i].firstPiece)
		w.w.AppendU16(layerSection(w.mode, secSegmentPieces), segments[i].pieces)
	}
	writeColumn(w, secSegmentEdges, plain)
}

// writeGraph writes the columns of a graph.
func (w *layerWriter) writeGraph(g *graph.Graph) {
	for section, column := range map[mappedfile.Section][]uint32{
		secFirstOut: g.FirstOut, secFirstIn: g.FirstIn, secTurnTable: g.TurnTable, secIn: g.In, secTail: g.Tail, secHead: g.Head,
		secDuration: g.Duration, secDistance: g.Distance, secSegment: g.Segment, secCells: g.Cells.Of,
		secCellParents: slices.Concat(g.Cells.Parent...), secCopies: g.Copies.Lists,
	} {
		writeColumn(w, section, column)
	}
	writeColumn(w, secTurns, g.Turns)
	mappedfile.AppendColumn(w.w, penaltySection(w.mode), g.Penalty)
	writeColumn(w, secInRank, g.InRank)
	writeColumn(w, secFlags, g.Flags)
	mappedfile.AppendColumn(w.w, connectionSection(w.mode), g.Connection)
}
