package routertest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/queries/route/osmpbf"
	"lieudit/schemas/geo"
)

const (
	townLon, townLat = 2.5, 46.5 // of the north end of the through road
	columnMetres     = 50
	lineMetres       = 100
	quarterGap       = 400 // metres between quarters
	islandDistance   = 4_000
	metresPerDegree  = 111_195
	throughRoad      = "Route des Quartiers"
	throughRoadTags  = "highway=secondary ref=D+40"
)

// town is the drawing as data of OpenStreetMap. Junctions and roads are called by their quarter and their letters: oneway.A,
// oneway.AB.
type town struct {
	nodes     []osmpbf.Node
	ways      []osmpbf.Way
	relations []osmpbf.Relation
	ids       map[string]int64     // of junctions and of roads
	points    map[string]geo.Point // of junctions
	roadNames map[string]string    // names of roads by their letters
}

// townDate is the date of the town's data.
var townDate = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// readTown reads the drawing.
func readTown() (*town, error) {
	t := &town{ids: map[string]int64{}, points: map[string]geo.Point{}, roadNames: map[string]string{}}
	south := 0.0
	through := osmpbf.Way{ID: 1, Tags: readTags("name=" + strings.ReplaceAll(throughRoad, " ", "+") + " " + throughRoadTags)}
	for text := range strings.SplitSeq(drawing, "\n# ") {
		if text = strings.TrimPrefix(text, "\n"); text == "" {
			continue
		}
		q, err := readQuarter(text)
		if err != nil {
			return nil, err
		}
		height := t.addJunctions(q, south)
		if id, ok := t.ids[q.name+".0"]; ok {
			through.Nodes = append(through.Nodes, id)
		}
		if err := t.addRoads(q); err != nil {
			return nil, err
		}
		south += height + quarterGap
	}
	t.ways = append([]osmpbf.Way{through}, t.ways...)
	return t, nil
}

// quarter is a part of the drawing.
type quarter struct {
	name        string
	east, south float64 // metres of a column and of a line
	lines       []string
	roads       []string
}

func readQuarter(text string) (q quarter, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	picture, roads, ok := strings.Cut(rest, "\n\n")
	if !ok {
		return q, fmt.Errorf("quarter %q has no roads", head)
	}
	fields := strings.Fields(head)
	q = quarter{name: fields[0], east: columnMetres, south: lineMetres,
		lines: strings.Split(picture, "\n"), roads: strings.Split(strings.TrimSpace(roads), "\n")}
	if len(fields) == 3 {
		var err2 error
		q.east, err = strconv.ParseFloat(fields[1], 64)
		q.south, err2 = strconv.ParseFloat(fields[2], 64)
		err = errors.Join(err, err2)
	}
	return q, err
}

// addJunctions adds the letters of a quarter that begins some metres south of the first one, and returns its height. The first column
// lies on the through road, and a quarter without a 0 in the sea.
func (t *town) addJunctions(q quarter, south float64) (height float64) {
	if !strings.Contains(strings.Join(q.lines, ""), "0") {
		south += islandDistance
	}
	for row, line := range q.lines {
		for column, sign := range line {
			isDrawn := strings.ContainsRune("-|~= ", sign)
			if isDrawn {
				continue
			}
			at := offset(geo.Point{Lon: townLon, Lat: townLat}, float64(column)*q.east, south+float64(row)*q.south)
			n := osmpbf.Node{ID: int64(len(t.nodes) + 1), Lon: units(at.Lon), Lat: units(at.Lat)}
			t.nodes = append(t.nodes, n)
			t.ids[q.name+"."+string(sign)], t.points[q.name+"."+string(sign)] = n.ID, at
		}
	}
	return float64(len(q.lines)) * q.south
}

// units returns degrees in the unit of a map.
func units(degrees float64) int32 { return int32(math.Round(degrees * osmpbf.UnitsPerDegree)) }

// offset returns the position some metres east and south of another.
func offset(p geo.Point, east, south float64) geo.Point {
	return geo.Point{Lon: p.Lon + east/metresPerDegree/math.Cos(townLat*math.Pi/180), Lat: p.Lat - south/metresPerDegree}
}

// addRoads adds the roads, tags and restrictions of a quarter.
func (t *town) addRoads(q quarter) error {
	for _, line := range q.roads {
		first, rest, _ := strings.Cut(line, " ")
		var err error
		switch {
		case first == "node":
			name, tags, _ := strings.Cut(rest, " ")
			t.nodes[t.ids[q.name+"."+name]-1].Tags = readTags(tags)
		case strings.HasPrefix(first, "no_") || strings.HasPrefix(first, "only_"):
			err = t.addRestriction(q.name, first, strings.Fields(rest))
		default:
			err = t.addRoad(q.name, first, rest)
		}
		if err != nil {
			return fmt.Errorf("quarter %s: %q: %w", q.name, line, err)
		}
	}
	return nil
}

func (t *town) addRoad(quarter, letters, description string) error {
	name, tags, _ := strings.Cut(description, " | ")
	way := osmpbf.Way{ID: int64(len(t.ways) + 2), Tags: osmpbf.Tags{{Key: "name", Value: name}}}
	if !strings.Contains(tags, "highway=") {
		way.Tags = append(way.Tags, osmpbf.Tag{Key: "highway", Value: "residential"})
	}
	way.Tags = append(way.Tags, readTags(tags)...)
	for _, letter := range letters {
		id, ok := t.ids[quarter+"."+string(letter)]
		if !ok {
			return fmt.Errorf("no junction is called %c", letter)
		}
		way.Nodes = append(way.Nodes, id)
	}
	t.ids[quarter+"."+letters], t.roadNames[quarter+"."+letters] = way.ID, name
	t.ways = append(t.ways, way)
	return nil
}

// addRestriction adds a restriction of three members, of which the second is a junction or a road.
func (t *town) addRestriction(quarter, kind string, members []string) error {
	r := osmpbf.Relation{ID: int64(len(t.relations) + 1), Tags: readTags("type=restriction restriction=" + kind)}
	for i, role := range []string{"from", "via", "to"} {
		id, ok := t.ids[quarter+"."+members[i]]
		if !ok {
			return fmt.Errorf("nothing is called %s", members[i])
		}
		m := osmpbf.Member{Type: osmpbf.WayMember, ID: id, Role: role}
		if len(members[i]) == 1 {
			m.Type = osmpbf.NodeMember
		}
		r.Members = append(r.Members, m)
	}
	t.relations = append(t.relations, r)
	return nil
}

// readTags reads tags; a tag without a value is left out, and "+" stands for a space.
func readTags(text string) (tags osmpbf.Tags) {
	for field := range strings.FieldsSeq(text) {
		if key, value, _ := strings.Cut(field, "="); value != "" {
			tags = append(tags, osmpbf.Tag{Key: key, Value: strings.ReplaceAll(value, "+", " ")})
		}
	}
	return tags
}

// write writes the town as a PBF into a folder of the test's.
func (t *town) write(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "town.osm.pbf")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	features := []string{"OsmSchema-V0.6", "DenseNodes", "Sort.Type_then_ID"}
	w := osmpbf.NewWriter(f, osmpbf.Header{Date: townDate, Generator: "lieudit", Features: features})
	for _, n := range t.nodes {
		err = errors.Join(err, w.WriteNode(n))
	}
	for _, way := range t.ways {
		err = errors.Join(err, w.WriteWay(way))
	}
	for _, r := range t.relations {
		err = errors.Join(err, w.WriteRelation(r))
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		tb.Fatal(err)
	}
	return path
}
