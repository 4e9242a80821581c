package route

import (
	"math"

	"lieudit/queries/route/osmpbf"
	"lieudit/schemas/geo"
)

// wall is a line between two nodes that nobody can cross on foot, with the tag that says so.
type wall struct {
	from, to geo.Point
	name     string
}

// wallTags are the tags of walls.
var wallTags = map[string]map[string]bool{
	"barrier":  {"wall": true, "retaining_wall": true, "city_wall": true, "fence": true, "hedge": true, "guard_rail": true, "jersey_barrier": true},
	"natural":  {"cliff": true, "coastline": true},
	"waterway": {"river": true, "canal": true, "stream": true},
	"railway":  {"rail": true, "light_rail": true},
	"man_made": {"embankment": true, "dyke": true},
}

// addWalls adds the lines of a way that is a wall.
func (m *mapRoads) addWalls(w osmpbf.Way, nodes map[int64]geo.Point) {
	name := ""
	for key, values := range wallTags {
		if v := w.Tags.Get(key); values[v] && levelOf(w.Tags) == "" {
			name = v
		}
	}
	if name == "" {
		return
	}
	for i := 1; i < len(w.Nodes); i++ {
		from, hasFrom := nodes[w.Nodes[i-1]]
		to, hasTo := nodes[w.Nodes[i]]
		if !hasFrom || !hasTo {
			continue
		}
		for cell := range cellsAlong(from, to) {
			m.walls[cell] = append(m.walls[cell], wall{from, to, name})
		}
	}
}

// levelOf distinguishes the levels of ways.
func levelOf(tags osmpbf.Tags) string {
	if v := tags.Get("layer"); v != "" && v != "0" {
		return v
	}
	for _, key := range []string{"bridge", "tunnel"} {
		if v := tags.Get(key); v != "" && v != "no" {
			return key
		}
	}
	return ""
}

// wallBetween returns the name of a wall between two positions; "" if there is none.
func (m *mapRoads) wallBetween(a, b geo.Point) string {
	for cell := range cellsAlong(a, b) {
		for _, w := range m.walls[cell] {
			if intersect(a, b, w.from, w.to) {
				return w.name
			}
		}
	}
	return ""
}

// levelAt returns the level of the road at a position on it.
func (m *mapRoads) levelAt(p geo.Point) (level string) {
	least := math.Inf(1)
	for _, i := range m.near[cellOf(p)] {
		l := m.lines[i]
		if d := distanceToLine(p, l.from, l.to); d < least && l.uses&(useTrack|useForbidden|useConstruction) == 0 {
			least, level = d, l.level
		}
	}
	return level
}

// intersect reports whether two lines cross.
func intersect(a, b, c, d geo.Point) bool {
	return isLeft(a, b, c) != isLeft(a, b, d) && isLeft(c, d, a) != isLeft(c, d, b)
}

func isLeft(a, b, p geo.Point) bool {
	return (b.Lon-a.Lon)*(p.Lat-a.Lat) > (b.Lat-a.Lat)*(p.Lon-a.Lon)
}
