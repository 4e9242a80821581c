package sitefile

import (
	"strings"

	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/geometry"
	"lieudit/http/sitefile/mapping"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// positionFault is a cell that should hold a position and does not.
type positionFault struct {
	column int
	value  string
}

// fillPosition puts the first position that a record has into a content. A point of another column is preferred to a line or a
// polygon, and to a cell that cannot be read. It returns false for a site that is left out: a line or a polygon, if the user asked
// for that.
func (b *builder) fillPosition(c *locations.Content) bool {
	shape := -1 // the column of a line or a polygon
	for _, p := range b.mapping.Positions {
		point, state := b.parsePosition(p)
		switch state {
		case hasPoint:
			c.Lat, c.Lon = &point.Lat, &point.Lon
			b.reportPositionFaults(true)
			return true
		case hasShape:
			shape = p.Columns[0]
		}
	}
	b.reportPositionFaults(false)
	switch {
	case shape < 0:
	case b.shapes == SkipShapes:
		b.recordWarning(warningSkipped, shape, "")
		return false
	default:
		f := b.addFault(shape, "a line or a polygon instead of a point", "")
		f.advice = "--shapes center takes the point in the middle of each, --shapes skip leaves these sites out; " +
			"--map proprietes=COLUMN keeps the outlines too"
	}
	return true
}

// reportPositionFaults records the cells that hold no position: a warning if another column has it, otherwise an error. The text stays in
// proprietes.
func (b *builder) reportPositionFaults(hasPoint bool) {
	for _, fault := range b.positionFaults {
		if fault.value != "" {
			b.keepInProperties(fault.column, fault.value)
		}
		if hasPoint {
			b.recordWarning(warningPosition, fault.column, fault.value)
			continue
		}
		f := b.addFault(fault.column, "the column "+b.mapping.Columns[fault.column]+" holds no position there", fault.value)
		f.advice = "correct these cells or empty them; if the cells of these lines are shifted, a separator is missing or too many before"
		f.isTolerable = !b.mapping.IsExport
	}
}

// positionState is the outcome of reading a position.
type positionState int

const (
	noPoint positionState = iota // the record has none there, or an unreadable one
	hasPoint
	hasShape // a line or a polygon whose middle the user did not ask for
)

func (b *builder) parsePosition(p mapping.Position) (geo.Point, positionState) {
	switch p.Kind {
	case mapping.TwoColumns:
		lat, lon, ok := b.decimals(p, 90, 180)
		return geo.Point{Lat: lat, Lon: lon}, stateOf(ok)
	case mapping.OneColumn:
		return b.parsePair(p)
	case mapping.Projected:
		x, y, ok := b.decimals(p, 1e8, 1e8)
		if !ok {
			return geo.Point{}, noPoint
		}
		return b.project(p, x, y)
	}
	return b.parseShape(p)
}

func stateOf(ok bool) positionState {
	if ok {
		return hasPoint
	}
	return noPoint
}

// decimals are the numbers of two columns. Both are empty if the record has no position; one alone, or a text that is not a number,
// is an error of the file.
func (b *builder) decimals(p mapping.Position, maxFirst, maxSecond float64) (first, second float64, ok bool) {
	a, z := b.readNumber(p.Columns[0]), b.readNumber(p.Columns[1])
	switch {
	case a == "" && z == "":
		return 0, 0, false
	case a == "":
		b.addPositionFault(p.Columns[0], a)
		return 0, 0, false
	case z == "":
		b.addPositionFault(p.Columns[1], z)
		return 0, 0, false
	}
	first, isFirst := clean.Decimal(a)
	second, isSecond := clean.Decimal(z)
	if !isFirst || first > maxFirst || first < -maxFirst {
		b.addPositionFault(p.Columns[0], a)
		return 0, 0, false
	}
	if !isSecond || second > maxSecond || second < -maxSecond {
		b.addPositionFault(p.Columns[1], z)
		return 0, 0, false
	}
	return first, second, true
}

// readNumber is the text of a column of numbers, "" if it is empty or a sign of emptiness.
func (b *builder) readNumber(column int) string {
	text := strings.TrimSpace(b.value(column).Text)
	if text != "" && (clean.IsEmptySign(text) || strings.EqualFold(text, "nan")) {
		b.recordFix(clean.EmptySign, column, text, "")
		return ""
	}
	return text
}

// addFault records a value that keeps the file from being imported.
func (b *builder) addFault(column int, kind, value string) *Issue {
	return b.faults.add(kind, b.record.Line, b.mapping.Columns[column], value, "")
}

func (b *builder) addPositionFault(column int, value string) {
	b.positionFaults = append(b.positionFaults, positionFault{column, value})
}

func (b *builder) parsePair(p mapping.Position) (geo.Point, positionState) {
	v := b.value(p.Columns[0])
	text := v.Text
	if v.JSON != nil {
		text = string(v.JSON)
	}
	if text = strings.TrimSpace(text); text == "" || clean.IsEmptySign(text) {
		return geo.Point{}, noPoint
	}
	if point, ok := geometry.ParseJSONPoint(text); ok {
		return point, hasPoint
	}
	first, second, ok := geometry.ParsePair(text)
	if !ok {
		b.recordWarning(warningPosition, p.Columns[0], text)
		b.keepInProperties(p.Columns[0], text)
		return geo.Point{}, noPoint
	}
	return p.Order.Point(first, second), hasPoint
}

// parseShape is the point of a geometry. A line or a polygon becomes the point in its middle if the user says so.
func (b *builder) parseShape(p mapping.Position) (geo.Point, positionState) {
	v := b.value(p.Columns[0])
	text := v.Text
	if v.JSON != nil {
		text = string(v.JSON)
	}
	if text = strings.TrimSpace(text); text == "" || clean.IsEmptySign(text) {
		return geo.Point{}, noPoint
	}
	shape, err := geometry.ParseShape(text)
	if err != nil {
		b.recordWarning(warningPosition, p.Columns[0], text)
		b.keepInProperties(p.Columns[0], text)
		return geo.Point{}, noPoint
	}
	if !shape.IsOnePoint() {
		if b.shapes != CenterShapes {
			return geo.Point{}, hasShape
		}
		b.recordFix(fixCenter, p.Columns[0], string(shape.Kind), "")
	}
	x, y := shape.Center()
	return b.project(p, x, y)
}

// project converts a point to degrees from the reference system that the position names, otherwise from that of the file.
func (b *builder) project(p mapping.Position, x, y float64) (geo.Point, positionState) {
	name := p.CRS
	if name == "" {
		name = b.info.CRS
	}
	if name == "" {
		at := geo.Point{Lat: y, Lon: x}
		if !at.IsOnGlobe() {
			f := b.addFault(p.Columns[0], "positions that are no degrees, in a reference system that nothing in the file names", b.value(p.Columns[0]).Text)
			f.advice = "name it with --crs EPSG:2154 (Lambert-93), or export the file in WGS 84"
			return geo.Point{}, noPoint
		}
		return at, hasPoint
	}
	crs, known := geometry.FindCRS(name)
	if !known {
		f := b.addFault(p.Columns[0], "positions in the reference system "+name+", which is none of France's", b.value(p.Columns[0]).Text)
		f.advice = "export the file in WGS 84 (EPSG:4326)"
		return geo.Point{}, noPoint
	}
	point, ok := crs.ToWGS84(x, y)
	if !ok {
		b.addPositionFault(p.Columns[0], b.value(p.Columns[0]).Text)
	}
	return point, stateOf(ok)
}
