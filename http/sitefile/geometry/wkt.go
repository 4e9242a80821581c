package geometry

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// ParseWKT parses a geometry as well-known text, with or without the SRID of PostGIS before it: SRID=2154;POINT(…). A text of
// hexadecimal digits is read as well-known binary, as PostGIS exports it. Third and fourth coordinates are dropped.
func ParseWKT(text string) (Shape, error) {
	text = strings.TrimSpace(text)
	if isHex(text) {
		return parseWKB(text)
	}
	srid := 0
	if len(text) > 5 && strings.EqualFold(text[:5], "SRID=") {
		number, rest, _ := strings.Cut(text[5:], ";")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return Shape{}, ErrUnreadable
		}
		srid, text = n, rest
	}
	r := wktReader{rest: text}
	s := r.readGeometry(maxDepth)
	if r.skipSpace(); r.failed || r.rest != "" {
		return Shape{}, ErrUnreadable
	}
	s.SRID = srid
	return s.finish()
}

// wktReader reads well-known text from left to right. After an error it reads nothing more.
type wktReader struct {
	rest   string
	failed bool
}

// skipSpace skips spaces and line ends.
func (r *wktReader) skipSpace() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

// readSign reads one character, if it comes next.
func (r *wktReader) readSign(sign byte) bool {
	r.skipSpace()
	if r.failed || r.rest == "" || r.rest[0] != sign {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// demand reads one character, which must come next.
func (r *wktReader) demand(sign byte) {
	if !r.readSign(sign) {
		r.failed = true
	}
}

// readWord reads letters, in upper case.
func (r *wktReader) readWord() string {
	r.skipSpace()
	end := 0
	for end < len(r.rest) && ('a' <= r.rest[end]|0x20 && r.rest[end]|0x20 <= 'z') {
		end++
	}
	word := r.rest[:end]
	r.rest = r.rest[end:]
	return strings.ToUpper(word)
}

// readGeometry reads a geometry of any type. The words after its type give the number of coordinates, which the coordinates
// show as well, or mark it as empty.
func (r *wktReader) readGeometry(depth int) (s Shape) {
	name := r.readWord()
	name = strings.TrimSuffix(strings.TrimSuffix(name, "M"), "Z")
	for {
		switch r.readWord() {
		case "Z", "M", "ZM":
			continue
		case "EMPTY":
			return s
		case "":
		default:
			r.failed = true
			return s
		}
		break
	}
	switch name {
	case "POINT", "MULTIPOINT":
		s.points = r.readPoints()
	case "LINESTRING":
		s.lines = [][]coordinate{r.readPoints()}
	case "MULTILINESTRING":
		s.lines = r.readRings()
	case "POLYGON":
		s.polygons = [][][]coordinate{r.readRings()}
	case "MULTIPOLYGON":
		r.readList(func() { s.polygons = append(s.polygons, r.readRings()) })
	case "GEOMETRYCOLLECTION":
		r.failed = r.failed || depth == 1
		r.readList(func() { s.add(r.readGeometry(depth - 1)) })
	default:
		r.failed = true
	}
	return s
}

// readList reads the items between parentheses and commas.
func (r *wktReader) readList(readItem func()) {
	r.demand('(')
	for !r.failed {
		readItem()
		if !r.readSign(',') {
			break
		}
	}
	r.demand(')')
}

// readRings reads lists of points.
func (r *wktReader) readRings() (rings [][]coordinate) {
	r.readList(func() { rings = append(rings, r.readPoints()) })
	return rings
}

// readPoints reads points, each of which may have parentheses of its own.
func (r *wktReader) readPoints() (points []coordinate) {
	r.readList(func() {
		inParentheses := r.readSign('(')
		points = append(points, r.readPoint())
		if inParentheses {
			r.demand(')')
		}
	})
	return points
}

// readPoint reads two to four numbers.
func (r *wktReader) readPoint() coordinate {
	var numbers []float64
	for !r.failed {
		r.skipSpace()
		end := strings.IndexAny(r.rest+")", "(), \t\r\n")
		if end == 0 {
			break
		}
		n, ok := parseDecimal(r.rest[:end])
		numbers, r.failed = append(numbers, n), r.failed || !ok
		r.rest = r.rest[end:]
	}
	if len(numbers) < 2 || len(numbers) > 4 {
		r.failed = true
		return coordinate{}
	}
	return coordinate{numbers[0], numbers[1]}
}

// minWKBDigits are the hexadecimal digits of an empty list of geometries, the shortest binary.
const minWKBDigits = 18

// isHex reports whether a text can be well-known binary: its first byte is the byte order, 0 or 1.
func isHex(s string) bool {
	if len(s) < minWKBDigits || s[0] != '0' || s[1] > '1' {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// parseWKB parses well-known binary in hexadecimal digits, all of it.
func parseWKB(text string) (Shape, error) {
	data, err := hex.DecodeString(text)
	if err != nil {
		return Shape{}, ErrUnreadable
	}
	r := wkbReader{rest: data}
	s := r.readGeometry(maxDepth)
	if r.failed || len(r.rest) > 0 {
		return Shape{}, ErrUnreadable
	}
	return s.finish()
}

// wkbReader reads well-known binary, of ISO or of PostGIS, from the first byte to the last. After an error it reads zeros.
type wkbReader struct {
	rest   []byte
	order  binary.ByteOrder
	failed bool
}

// readBytes reads n bytes.
func (r *wkbReader) readBytes(n int) []byte {
	if r.failed || len(r.rest) < n {
		r.failed = true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// readUint32 reads a count or a type, in the order of bytes of the geometry around it.
func (r *wkbReader) readUint32() uint32 { return r.order.Uint32(r.readBytes(4)) }

// readFloat64 reads a coordinate.
func (r *wkbReader) readFloat64() float64 {
	return math.Float64frombits(r.order.Uint64(r.readBytes(8)))
}

// Flags that PostGIS adds to the type of a geometry. ISO adds 1000 for a third coordinate and 2000 for a fourth one.
const (
	flagZ    = 0x80000000
	flagM    = 0x40000000
	flagSRID = 0x20000000
)

// readGeometry reads a geometry of any type.
func (r *wkbReader) readGeometry(depth int) (s Shape) {
	r.order = binary.BigEndian
	if r.readBytes(1)[0] == 1 {
		r.order = binary.LittleEndian
	}
	code := r.readUint32()
	if code&flagSRID != 0 {
		s.SRID = int(r.readUint32() & math.MaxInt32)
	}
	kind, dimensions := wkbType(code)
	switch kind {
	case 1:
		s.points = []coordinate{r.readPoint(dimensions)}
	case 2:
		s.lines = [][]coordinate{r.readPoints(dimensions)}
	case 3:
		s.polygons = [][][]coordinate{r.readRings(dimensions)}
	case 4, 5, 6, 7:
		r.failed = r.failed || depth == 1
		for n := r.readUint32(); n > 0 && !r.failed; n-- {
			s.add(r.readGeometry(depth - 1))
		}
	default:
		r.failed = true
	}
	if kind == 1 && math.IsNaN(s.points[0].x) && math.IsNaN(s.points[0].y) {
		s.points = nil // an empty point
	}
	return s
}

// wkbType is the type of a geometry and how many numbers each of its points has.
func wkbType(code uint32) (kind uint32, dimensions int) {
	dimensions = 2
	for _, flag := range []uint32{flagZ, flagM} {
		if code&flag != 0 {
			dimensions++
		}
	}
	code &^= flagZ | flagM | flagSRID
	return code % 1000, dimensions + []int{0, 1, 1, 2}[min(code/1000, 3)]
}

// readPoint reads a point and skips all but its first two coordinates.
func (r *wkbReader) readPoint(dimensions int) coordinate {
	c := coordinate{r.readFloat64(), r.readFloat64()}
	r.readBytes(8 * (dimensions - 2))
	return c
}

// readPoints reads a counted list of points. A count beyond the end of the data fails at the end.
func (r *wkbReader) readPoints(dimensions int) (points []coordinate) {
	for n := r.readUint32(); n > 0 && !r.failed; n-- {
		points = append(points, r.readPoint(dimensions))
	}
	return points
}

// readRings reads a counted list of lists of points.
func (r *wkbReader) readRings(dimensions int) (rings [][]coordinate) {
	for n := r.readUint32(); n > 0 && !r.failed; n-- {
		rings = append(rings, r.readPoints(dimensions))
	}
	return rings
}
