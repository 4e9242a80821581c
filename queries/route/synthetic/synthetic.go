// Package synthetic invents a road network in the shape of real ones and writes it as OpenStreetMap PBF: streets of towns that
// stand where the communes of the program's table are, departmental and national roads between them, motorways between the largest,
// ferries to islands. The same Options give the same bytes, and memory grows with the number of communes, not of roads. A caller
// with invented addresses can pass their streets (ReadStreets): a road of the same name is laid along the numbers of each.
//
//	commune.Table, Streets ── newPlan ──► places, roads between them, motorways
//	place ── town (scatter, connect, lay streets, gates, one-ways, names) ──► drawing ── nodes, then ways ──► PBF
//	gates of the towns ── drawRoads ──► drawing ──────────────────────────────────────────────┘
//
// Towns are drawn twice, because a PBF has all nodes before the first way: that is cheaper than keeping a country in memory.
//
// Every road is open to cars in both senses or lies on a way round, so that the mainland with its islands is one connected part
// for cars, and each territory overseas another.
package synthetic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/route/osmpbf"
)

// Generator is the writing program in the header of an invented network, so that no import takes it for a real one.
const Generator = "lieudit synthetic"

// Options say what to generate.
type Options struct {
	Segments int       // about this many directed segments for cars, besides those of Streets
	Seed     uint64    //
	Date     time.Time // of the data, in the header; may be zero
	// Communes are the INSEE codes of the towns. If empty, they are those of Streets; without Streets, as many as Segments requires
	// around a town that Seed picks.
	Communes []string
	Streets  []Street
	Progress func(done, total int) // called now and then with a count of towns; may be nil
}

// Street is a street with addresses: a road with its name is laid along the positions of its numbers.
type Street struct {
	Name, Commune string // the commune by its INSEE code
	IsLocality    bool   // a hamlet: a lane leads there
	Points        []Position
}

// Position is a position in degrees.
type Position struct{ Lon, Lat float64 }

// Summary is what was written.
type Summary struct{ Towns, Nodes, Ways, Relations int64 }

// ErrNone means that Options ask for no road.
var ErrNone = errors.New("no road is asked for")

// ReadStreets collects the streets of rows of addresses that are grouped by street, as invented ones are.
func ReadStreets(rows iter.Seq2[ban.Row, error]) (streets []Street, err error) {
	last := ""
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if key := row.CodeInsee + row.Voie; key != last || len(streets) == 0 {
			streets = append(streets, Street{Name: row.Voie, Commune: row.CodeInsee, IsLocality: row.Kind == ban.Locality})
			last = key
		}
		s := &streets[len(streets)-1]
		s.Points = append(s.Points, Position{row.Lon, row.Lat})
	}
	return streets, nil
}

// Generate writes a network. It ends early with the error of ctx.
func Generate(ctx context.Context, w io.Writer, t *commune.Table, o Options) (Summary, error) {
	p, err := newPlan(t, o)
	if err != nil {
		return Summary{}, err
	}
	header := osmpbf.Header{Generator: Generator, Date: o.Date, Features: []string{"Sort.Type_then_ID"}, Box: p.box()}
	g := &generator{plan: p, out: osmpbf.NewWriter(w, header), first: make([]int64, len(p.places)+1), roadEnds: map[gateKey]gate{}}
	if err := g.write(ctx); err != nil {
		return Summary{}, fmt.Errorf("invent a road network: %w", err)
	}
	return Summary{int64(len(p.places)), g.nodeCount, g.wayCount, int64(len(g.relations))}, nil
}

// drawing is a piece of the network as elements. Its nodes are numbered from 0 on; those below base belong to others.
type drawing struct {
	base  int64
	nodes []osmpbf.Node // without IDs
	ways  []osmpbf.Way  // without IDs
	bans  []turnBan
	gates []int64 // of a town: the node where each of its roads begins
}

// turnBan is a turn that must not be taken, by the numbers of nodes and ways of the drawing.
type turnBan struct {
	from, to int
	via      int64
	kind     string
}

// addNode adds a node and returns its number.
func (d *drawing) addNode(lon, lat float64, tags ...osmpbf.Tag) int64 {
	d.nodes = append(d.nodes, osmpbf.Node{Lon: toUnits(lon), Lat: toUnits(lat), Tags: tags})
	return d.base + int64(len(d.nodes)) - 1
}

func toUnits(degrees float64) int32 { return int32(math.Round(degrees * osmpbf.UnitsPerDegree)) }

// generator writes the drawings.
type generator struct {
	*plan
	out                 *osmpbf.Writer
	nodeCount, wayCount int64
	relations           []osmpbf.Relation
	first               []int64 // the first node of each town
	roadEnds            map[gateKey]gate
}

// gateKey names the end of a road in a town.
type gateKey struct{ place, road int32 }

// gate is where a road enters a town.
type gate struct {
	node     int64
	lon, lat float64
}

// write writes all nodes, all ways, all relations.
func (g *generator) write(ctx context.Context) error {
	if err := g.eachTown(ctx, 0, g.writeTownNodes); err != nil {
		return err
	}
	roads := g.drawRoads(g.nodeCount + 1)
	if err := g.writeNodes(roads); err != nil {
		return err
	}
	err := g.eachTown(ctx, len(g.places), func(i int, d *drawing) error { return g.writeWays(d, g.first[i]) })
	if err == nil {
		err = g.writeWays(roads, 0)
	}
	for i, r := range g.relations {
		r.ID = int64(i) + 1
		err = errors.Join(err, g.out.WriteRelation(r))
	}
	return errors.Join(err, g.out.Close())
}

// writeTownNodes writes the nodes of a town and keeps where its roads begin.
func (g *generator) writeTownNodes(i int, d *drawing) error {
	g.first[i] = g.nodeCount + 1
	for n, road := range g.places[i].roads {
		node := d.nodes[d.gates[n]]
		lon, lat := float64(node.Lon)/osmpbf.UnitsPerDegree, float64(node.Lat)/osmpbf.UnitsPerDegree
		g.roadEnds[gateKey{int32(i), road}] = gate{g.first[i] + d.gates[n], lon, lat}
	}
	return g.writeNodes(d)
}

func (g *generator) writeNodes(d *drawing) error {
	for _, n := range d.nodes {
		g.nodeCount++
		n.ID = g.nodeCount
		if err := g.out.WriteNode(n); err != nil {
			return err
		}
	}
	return nil
}

// writeWays writes the ways of a drawing whose node 0 has a number, and keeps its bans for later.
func (g *generator) writeWays(d *drawing, first int64) error {
	for _, b := range d.bans {
		g.relations = append(g.relations, osmpbf.Relation{
			Members: []osmpbf.Member{{Type: osmpbf.WayMember, ID: g.wayCount + 1 + int64(b.from), Role: "from"},
				{Type: osmpbf.NodeMember, ID: first + b.via, Role: "via"}, {Type: osmpbf.WayMember, ID: g.wayCount + 1 + int64(b.to), Role: "to"}},
			Tags: osmpbf.Tags{{Key: "restriction", Value: b.kind}, {Key: "type", Value: "restriction"}}})
	}
	for _, w := range d.ways {
		g.wayCount++
		w.ID = g.wayCount
		for i := range w.Nodes {
			w.Nodes[i] += first
		}
		if err := g.out.WriteWay(w); err != nil {
			return err
		}
	}
	return nil
}

// eachTown draws all towns, on all cores, and visits them in order. done counts what was visited before, for the progress.
func (g *generator) eachTown(ctx context.Context, done int, visit func(i int, d *drawing) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work, feed errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	pending := make(chan chan *drawing, 4*runtime.GOMAXPROCS(0))
	feed.Go(func() error {
		defer close(pending)
		for i := range g.places {
			drawn := make(chan *drawing, 1)
			select {
			case pending <- drawn:
				work.Go(func() error { drawn <- g.drawTown(i); return nil })
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	i := 0
	var err error
	for drawn := range pending {
		if d := <-drawn; err == nil {
			if err = visit(i, d); err != nil {
				cancel()
			}
			i++
			g.report(done+i, i == len(g.places))
		}
	}
	feedErr := feed.Wait()
	work.Wait()
	if err == nil {
		err = feedErr
	}
	return err
}

// report reports the progress now and then.
func (g *generator) report(done int, isLast bool) {
	if g.options.Progress != nil && (isLast || done%100 == 0) {
		g.options.Progress(done, 2*len(g.places))
	}
}
