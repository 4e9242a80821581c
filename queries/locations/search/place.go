package search

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
)

// SortKey is where a hit stands in the order of a search. What the order does not look at is zero.
type SortKey struct {
	Rank        uint64  // of the relevance, the best first; the engine's own scale
	Distance    float64 // metres from the center, +Inf for a site without a position
	Name        string  // as Name folds it
	ExternalID  string
	Referential string
}

// Compare orders places as every Sort does.
func (p SortKey) Compare(o SortKey) int {
	return cmp.Or(
		cmp.Compare(p.Rank, o.Rank), cmp.Compare(p.Distance, o.Distance), compareNames(p.Name, o.Name),
		strings.Compare(p.ExternalID, o.ExternalID), strings.Compare(p.Referential, o.Referential))
}

// compareNames puts what has no name last.
func compareNames(a, b string) int {
	if (a == "") != (b == "") {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
}

var cursorEncoding = base64.RawURLEncoding.Strict()

// FormatCursor is the cursor for what comes after a place.
func (q Query) FormatCursor(after SortKey) string {
	b := append(make([]byte, 0, 64), q.cursorKind())
	b = binary.AppendUvarint(b, after.Rank)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(after.Distance))
	b = append(append(b, after.Name...), 0)
	b = append(append(b, after.ExternalID...), 0)
	return cursorEncoding.EncodeToString(append(b, after.Referential...))
}

// ParseCursor reads the cursor the question comes with, or says false when it comes with none. It fails with ErrCursor alone.
func (q Query) ParseCursor() (p SortKey, ok bool, err error) {
	if q.After == "" {
		return p, false, nil
	}
	b, err := cursorEncoding.DecodeString(q.After)
	if err != nil || len(b) == 0 || b[0] != q.cursorKind() {
		return p, false, ErrInvalidCursor
	}
	rank, n := binary.Uvarint(b[1:])
	if n <= 0 || len(b) < 1+n+8 {
		return p, false, ErrInvalidCursor
	}
	texts := strings.Split(string(b[1+n+8:]), "\x00")
	p.Rank, p.Distance = rank, math.Float64frombits(binary.BigEndian.Uint64(b[1+n:]))
	if len(texts) != 3 || !(p.Distance >= 0) || q.FormatCursor(SortKey{p.Rank, p.Distance, texts[0], texts[1], texts[2]}) != q.After {
		return SortKey{}, false, ErrInvalidCursor
	}
	p.Name, p.ExternalID, p.Referential = texts[0], texts[1], texts[2]
	return p, true, nil
}

// cursorKind tells the orders apart that a place can be in.
func (q Query) cursorKind() byte {
	switch order := q.EffectiveSort(); {
	case order == ByName:
		return 'n'
	case order == ByDistance:
		return 'd'
	case q.Center == nil:
		return 'p'
	}
	return 'q'
}
