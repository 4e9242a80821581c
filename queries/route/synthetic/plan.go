package synthetic

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/route/osmpbf"
)

// class is a kind of road, the most important first. Those after service are closed to cars.
type class uint8

const (
	trunk class = iota
	primary
	secondary
	tertiary
	unclassified
	residential
	livingStreet
	service
	pedestrian
	footway
	path
	cycleway
	steps
)

// highways are the values of the tag highway.
var highways = [...]string{"trunk", "primary", "secondary", "tertiary", "unclassified", "residential", "living_street", "service",
	"pedestrian", "footway", "path", "cycleway", "steps"}

// plan is what the network consists of before anything is drawn.
type plan struct {
	table     *commune.Table
	options   Options
	whole     plane // of all places
	places    []place
	roads     []road
	motorways []motorway
}

// place is a commune with what is to be drawn there.
type place struct {
	*commune.Commune
	plane
	at        point // in the plane of the whole plan
	junctions int   // to be invented
	streets   []Street
	roads     []int32 // those that begin or end here
}

// road leads between two places.
type road struct {
	a, b    int32
	class   class
	number  int // of the name, such as D 12
	isFerry bool
}

// other is the end that is not i.
func (r road) other(i int32) int32 { return r.a + r.b - i }

// newPlan chooses places and connects them.
func newPlan(t *commune.Table, o Options) (*plan, error) {
	p := &plan{table: t, options: o}
	chosen, err := p.choose()
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 || o.Segments < 1 && len(o.Streets) == 0 {
		return nil, ErrNone
	}
	streets := map[string][]Street{}
	for _, s := range o.Streets {
		streets[s.Commune] = append(streets[s.Commune], s)
	}
	// A single plane is wrong by some percent at its ends, which does not matter to roads.
	lat := 0.0
	for _, c := range chosen {
		lat += c.Lat / float64(len(chosen))
	}
	p.whole = newPlane(chosen[0].Lon, lat)
	for _, c := range chosen {
		p.places = append(p.places, place{Commune: c, plane: newPlane(c.Lon, c.Lat), at: p.whole.project(c.Lon, c.Lat), streets: streets[c.Code]})
	}
	p.allotJunctions()
	p.joinPlaces()
	for i, r := range p.roads {
		p.places[r.a].roads = append(p.places[r.a].roads, int32(i))
		p.places[r.b].roads = append(p.places[r.b].roads, int32(i))
	}
	p.planMotorways()
	return p, nil
}

// segmentsPerPlace is how many directed segments a commune of France has on average.
const segmentsPerPlace = 200

// choose returns the communes of the network by code.
func (p *plan) choose() (chosen []*commune.Commune, err error) {
	codes := slices.Clone(p.options.Communes)
	if len(codes) == 0 {
		for _, s := range p.options.Streets {
			codes = append(codes, s.Commune)
		}
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		c, ok := p.table.ByCode(code)
		if !ok || !c.Located() {
			return nil, fmt.Errorf("no commune with a position has the code %q", code)
		}
		chosen = append(chosen, c)
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	return p.chooseAround(max(3, p.options.Segments/segmentsPerPlace)), nil
}

// chooseAround returns n communes around one that is picked by its inhabitants.
func (p *plan) chooseAround(n int) (all []*commune.Commune) {
	for c := range p.table.All() {
		parts := p.table.Children(c.Code)
		isSplit := len(parts) > 0 && parts[0].Kind == commune.Arrondissement
		if (c.Kind == commune.Current || c.Kind == commune.Arrondissement) && !isSplit && c.Located() && len(c.Postcodes()) > 0 {
			all = append(all, c)
		}
	}
	if n >= len(all) {
		return all
	}
	all = slices.DeleteFunc(all, func(c *commune.Commune) bool { return landOf(c) != "" })
	r := rand.New(rand.NewPCG(p.options.Seed, 1))
	// The smallest of exponential keys wins in proportion to the inhabitants.
	centre, best := all[0], math.Inf(1)
	for _, c := range all {
		if key := r.ExpFloat64() / float64(c.Population+1); key < best {
			centre, best = c, key
		}
	}
	around := newPlane(centre.Lon, centre.Lat)
	distance := func(c *commune.Commune) float64 { return point{}.distance(around.project(c.Lon, c.Lat)) }
	slices.SortStableFunc(all, func(a, b *commune.Commune) int { return cmp.Compare(distance(a), distance(b)) })
	all = all[:min(n, len(all))]
	slices.SortStableFunc(all, func(a, b *commune.Commune) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

// islands are the communes on islands off the coast, with a name for each island.
var islands = map[string]string{"22016": "Bréhat", "29082": "Batz", "29083": "Sein", "29084": "Molène", "29155": "Ouessant",
	"56009": "Belle-Île", "56114": "Belle-Île", "56152": "Belle-Île", "56241": "Belle-Île", "56069": "Groix", "56085": "Hœdic",
	"56086": "Houat", "56087": "Île aux Moines", "56088": "Île d'Arz", "85113": "Yeu", "17004": "Aix"}

const corsica = "Corse"

// landOf names the land that a commune lies on: an island, Corsica, a territory overseas, or the mainland, which has no name.
func landOf(c *commune.Commune) string {
	department := c.Department()
	switch {
	case department == "2A" || department == "2B":
		return corsica
	case len(department) > 2:
		return department
	}
	return islands[c.Code]
}

// isOverseas reports whether a land has no ferry to the mainland.
func isOverseas(land string) bool { return len(land) == 3 && land[0] == '9' }

// segmentsPerJunction is how many directed segments there are for each invented junction: measured.
const segmentsPerJunction = 1.86

// allotJunctions gives each place a number of junctions by its inhabitants, and some more for its streets.
func (p *plan) allotJunctions() {
	total := 0.0
	// Small communes have more road per inhabitant; one without inhabitants has some too.
	weight := func(c *commune.Commune) float64 { return math.Pow(float64(c.Population), 0.7) + 25 }
	for _, place := range p.places {
		total += weight(place.Commune)
	}
	for i := range p.places {
		own := &p.places[i]
		share := float64(p.options.Segments) / segmentsPerJunction * weight(own.Commune) / total
		own.junctions = max(4, int(math.Round(share)))
		if p.options.Segments == 0 {
			own.junctions = 10 + len(own.streets)
		}
	}
}

// joinPlaces plans the roads: on each land by neighbours, then the lands by ferries.
func (p *plan) joinPlaces() {
	lands := map[string][]int32{}
	var names []string
	for i := range p.places {
		land := landOf(p.places[i].Commune)
		if lands[land] == nil {
			names = append(names, land)
		}
		lands[land] = append(lands[land], int32(i))
	}
	slices.Sort(names)
	for _, name := range names {
		p.joinNeighbours(lands[name], isOverseas(name))
	}
	p.raiseRoads()
	p.joinLands(names, lands)
}

// longestRoad is the longest road overseas, and the longest ferry over a lake, in metres: places farther apart overseas lie on
// different islands.
const longestRoad = 40_000

// joinNeighbours plans the roads of a land: to relative neighbours and to a third of the other neighbours. A few of those that get
// no road get a ferry, as over a lake.
func (p *plan) joinNeighbours(of []int32, isOverseas bool) {
	points := make([]point, len(of))
	for n, i := range of {
		points[n] = p.places[i].at
	}
	r := rand.New(rand.NewPCG(p.options.Seed, 2))
	untilFerry := min(10, len(of)/2)
	for _, n := range listNeighbours(points) {
		made := road{a: of[n.a], b: of[n.b], class: tertiary, number: 1 + r.IntN(999)}
		isFar := isOverseas && points[n.a].distance(points[n.b]) > longestRoad
		switch {
		case n.isRelative:
			made.isFerry = isFar
		case isFar || r.Float64() > 0.35:
			if points[n.a].distance(points[n.b]) < longestRoad {
				untilFerry--
			}
			if made.isFerry = true; untilFerry != 0 {
				continue
			}
			untilFerry = 400
		}
		p.roads = append(p.roads, made)
	}
	p.joinRest(of, points)
}

// joinRest joins the parts that listNeighbours left separate, which happens if a dozen communes are closer to each other than to
// the next.
func (p *plan) joinRest(of []int32, points []point) {
	known := newParts(len(p.places))
	for _, r := range p.roads {
		known.join(r.a, r.b)
	}
	for n := 1; n < len(of); n++ {
		if known.find(of[n]) == known.find(of[0]) {
			continue
		}
		best, nearest := int32(0), math.Inf(1)
		for m, q := range points {
			if d := q.distance(points[n]); d < nearest && known.find(of[m]) != known.find(of[n]) {
				best, nearest = of[m], d
			}
		}
		known.join(of[n], best)
		p.roads = append(p.roads, road{a: best, b: of[n], class: tertiary, number: n})
		n = 0 // a part may still be apart after it was joined to another
	}
}

// largest returns the places with the most inhabitants, at least two, of the mainland and its islands. They stand n metres
// apart: the districts of a city count as one.
func (p *plan) largest(n int, apart float64) (some []int32) {
	var all []int32
	for i := range p.places {
		if !isOverseas(landOf(p.places[i].Commune)) {
			all = append(all, int32(i))
		}
	}
	slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(p.places[b].Population, p.places[a].Population) })
	for _, i := range all {
		isNear := func(j int32) bool { return p.places[i].at.distance(p.places[j].at) < apart }
		if !slices.ContainsFunc(some, isNear) {
			some = append(some, i)
		}
		if len(some) == max(2, n) {
			break
		}
	}
	if len(some) < 2 && len(all) > 1 && apart > 500 {
		return p.largest(n, apart/2)
	}
	slices.Sort(some)
	return some
}

// raiseRoads turns the shortest paths between towns into main roads, and those between the largest into national roads.
func (p *plan) raiseRoads() {
	arcs := make([][]arc, len(p.places))
	for i, r := range p.roads {
		length := p.places[r.a].at.distance(p.places[r.b].at)
		arcs[r.a] = append(arcs[r.a], arc{r.b, int32(i), length})
		arcs[r.b] = append(arcs[r.b], arc{r.a, int32(i), length})
	}
	for _, level := range []struct {
		class class
		share int // one place in this many
		apart float64
	}{{secondary, 6, 2000}, {primary, 30, 6000}, {trunk, 150, 15_000}} {
		towns := p.largest(len(p.places)/level.share, level.apart)
		points := make([]point, len(towns))
		for n, i := range towns {
			points[n] = p.places[i].at
		}
		for number, pair := range listNeighbours(points) {
			if !pair.isRelative {
				continue
			}
			for _, e := range findPath(arcs, towns[pair.a], towns[pair.b]) {
				if r := &p.roads[e]; !r.isFerry {
					r.class, r.number = level.class, number+1
				}
			}
		}
	}
}

// joinLands plans a ferry from each island to the nearest of the larger towns on the mainland.
func (p *plan) joinLands(names []string, lands map[string][]int32) {
	for _, name := range names {
		if name == "" || isOverseas(name) || len(lands[""]) == 0 {
			continue
		}
		port := slices.MaxFunc(lands[name], func(a, b int32) int { return cmp.Compare(p.places[a].Population, p.places[b].Population) })
		to := slices.MinFunc(lands[""], func(a, b int32) int {
			return cmp.Compare(p.places[a].at.distance(p.places[port].at), p.places[b].at.distance(p.places[port].at))
		})
		p.roads = append(p.roads, road{a: to, b: port, class: tertiary, isFerry: true})
	}
}

// box holds the bounds of all places.
func (p *plan) box() osmpbf.Box {
	b := osmpbf.Box{West: math.MaxInt32, South: math.MaxInt32, East: math.MinInt32, North: math.MinInt32}
	for _, c := range p.places {
		b.West, b.East = min(b.West, toUnits(c.Bounds.West)), max(b.East, toUnits(c.Bounds.East))
		b.South, b.North = min(b.South, toUnits(c.Bounds.South)), max(b.North, toUnits(c.Bounds.North))
	}
	return b
}

// randomOf are random numbers that depend only on the seed and the place.
func (p *plan) randomOf(i int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(p.places[i].Code))
	return rand.New(rand.NewPCG(p.options.Seed, h.Sum64()))
}
