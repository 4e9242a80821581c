package mapping

import (
	"slices"
	"strings"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/geometry"
	"lieudit/http/sitefile/record"
)

// PositionKind is the form of a position in a file.
type PositionKind string

// The forms of positions.
const (
	TwoColumns PositionKind = "two columns" // degrees
	OneColumn  PositionKind = "one column"  // a pair of degrees
	Geometric  PositionKind = "geometry"    // WKT or GeoJSON
	Projected  PositionKind = "metres"      // of a projection, in two columns
)

// Position is where a record holds a position.
type Position struct {
	Kind    PositionKind
	Columns [2]int         // lat and lon, x and y, or one column
	Order   geometry.Order // of OneColumn
	CRS     string         // of Projected and Geometric; "" is degrees
	filled  int
}

// choosePositions lists the columns that hold positions, the fullest first, and equally full ones in the order geometry of a
// feature, two columns, one column, metres. A row takes the first that it has. The other columns repeat it.
func (s *guesser) choosePositions() {
	s.addGeometry()
	s.addTwoColumns()
	s.addOneColumn()
	s.addShapes()
	s.addProjected()
	list := s.m.Positions
	for i := 1; i < len(list); i++ { // an insertion sort keeps the order of nearly equal ones
		for j := i; j > 0 && list[j].filled > list[j-1].filled+s.profile.Rows/20; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	for i, p := range list {
		if i > 0 {
			s.markRepeated(p)
		}
	}
}

// markRepeated marks the columns of a further position as read only if a row has no other.
func (s *guesser) markRepeated(p Position) {
	for _, column := range p.Columns {
		s.m.Targets[column].IsSecondary = true
	}
}

func (s *guesser) addPosition(p Position) {
	p.filled = s.profile.Columns[p.Columns[0]].Filled
	s.m.Positions = append(s.m.Positions, p)
}

// addGeometry takes the geometry of a file of features.
func (s *guesser) addGeometry() {
	for i, c := range s.profile.Columns {
		if c.Column.Kind == record.Geometry && c.Filled > 0 && s.m.Targets[i].LeftOut == "" {
			if !s.isDecided[i] || s.m.IsExport { // otherwise the user keeps it as a property too
				s.assign(i, Shape, ByName)
			}
			s.addPosition(Position{Kind: Geometric, Columns: [2]int{i, i}, CRS: s.given.CRS})
		}
	}
}

// addTwoColumns takes lat and lon. One without the other is a property.
func (s *guesser) addTwoColumns() {
	lat, hasLat := s.m.Find(Lat)
	lon, hasLon := s.m.Find(Lon)
	switch {
	case hasLat && hasLon:
		s.addPosition(Position{Kind: TwoColumns, Columns: [2]int{lat, lon}})
	case hasLat:
		s.unassign(lat)
	case hasLon:
		s.unassign(lon)
	}
}

// addOneColumn takes columns of pairs, by name or by content, in the order that lies in France.
func (s *guesser) addOneColumn() {
	for i, c := range s.profile.Columns {
		isNamed := s.m.Targets[i].Field == Pair
		if !isNamed && (s.isDecided[i] || c.Filled == 0 || c.share(isPairInFrance) < 0.9) {
			continue
		}
		if !isNamed {
			s.assign(i, Pair, ByContent)
		}
		s.addPosition(Position{Kind: OneColumn, Columns: [2]int{i, i}, Order: c.pairOrder()})
	}
}

// pairOrder decides the order of a column of pairs by the location of its samples.
func (c *Stats) pairOrder() geometry.Order {
	var pairs [][2]float64
	for _, v := range c.samples {
		if a, b, ok := geometry.ParsePair(v.text); ok {
			pairs = append(pairs, [2]float64{a, b})
		}
	}
	return geometry.OrderPairs(pairs)
}

// addShapes takes columns of WKT or GeoJSON, by name or by content.
func (s *guesser) addShapes() {
	for i, c := range s.profile.Columns {
		if c.Column.Kind == record.Geometry {
			continue
		}
		isNamed := s.m.Targets[i].Field == Shape
		if !isNamed && (s.isDecided[i] || c.Filled == 0 || c.share(isShape) < 0.9) {
			continue
		}
		if !isNamed {
			s.assign(i, Shape, ByContent)
		}
		s.addPosition(Position{Kind: Geometric, Columns: [2]int{i, i}, CRS: s.given.CRS})
	}
}

// addProjected takes x and y. The user or their names give the projection; if neither does, they are an error
// only if the file has no other position.
func (s *guesser) addProjected() {
	x, hasX := s.m.Find(X)
	y, hasY := s.m.Find(Y)
	switch {
	case hasX && hasY:
	case hasX:
		s.unassign(x)
		return
	case hasY:
		s.unassign(y)
		return
	default:
		return
	}
	crs := s.given.CRS
	if crs == "" && isCalledLambert93(s.m.Columns[x]) {
		crs = "EPSG:2154"
	}
	if crs == "" {
		crs = s.crsColumn()
	}
	if crs == "" && len(s.m.Positions) > 0 {
		s.leaveOut(x, "repeats the position")
		s.leaveOut(y, "repeats the position")
		return
	}
	if _, known := geometry.FindCRS(crs); !known && crs != "" {
		s.addError("name it by its EPSG number, such as EPSG:2154", "the reference system %q is none of France's", crs)
		return
	} else if !known && !s.looksLambert93(x, y) {
		s.addError("say which projection it is: --crs EPSG:NUMBER",
			"the columns %q and %q are metres of a projection that nothing in the file names", s.m.Columns[x], s.m.Columns[y])
		return
	} else if !known {
		s.addError("--crs EPSG:2154 says that they are Lambert-93, as they look",
			"the columns %q and %q are metres of a projection that nothing in the file names", s.m.Columns[x], s.m.Columns[y])
		return
	}
	s.addPosition(Position{Kind: Projected, Columns: [2]int{x, y}, CRS: crs})
}

// looksLambert93 reports whether the samples of two columns lie in France as metres of Lambert-93.
func (s *guesser) looksLambert93(x, y int) bool {
	a, b := s.profile.Columns[x].samples, s.profile.Columns[y].samples
	n := min(len(a), len(b), maxSamples/4)
	for i := range n { // the first samples of two columns come from the same rows, unless cells are empty
		east, isEast := clean.Decimal(a[i].text)
		north, isNorth := clean.Decimal(b[i].text)
		if !isEast || !isNorth || !geometry.LooksLambert93(east, north) {
			return false
		}
	}
	return n > 0
}

func isCalledLambert93(name string) bool {
	folded := strings.ReplaceAll(normalizeName(name), " ", "")
	for _, mark := range []string{"l93", "lambert93", "lamb93", "rgf93", "2154"} {
		if strings.Contains(folded, mark) {
			return true
		}
	}
	return false
}

// crsColumn is the projection that a column of the file names, the same in all rows.
func (s *guesser) crsColumn() string {
	for _, c := range s.profile.Columns {
		name := normalizeName(c.Column.Name)
		isCalledCRS := slices.ContainsFunc([]string{"epsg", "crs", "srid", "projection"}, func(mark string) bool { return strings.Contains(name, mark) })
		if len(c.samples) == 0 || !isCalledCRS {
			continue
		}
		value := c.samples[0].text
		if _, known := geometry.FindCRS(value); known && c.share(func(v sample) bool { return v.text == value }) == 1 {
			return value
		}
	}
	return ""
}
