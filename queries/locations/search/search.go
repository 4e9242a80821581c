// Package search is the contract of the search of an account's sites: what a Query asks, what a Result holds and in which
// order (Sort, SortKey). The engines in queries/locations/memory and queries/locations/meili implement it, and searchtest
// tests both. It does not depend on an engine and holds no data.
package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// Status selects which sites a query finds.
type Status string

const (
	Active   Status = "actif" // what "" means
	Inactive Status = "inactif"
	All      Status = "tous"
)

// Includes reports whether a query with the status finds a site that is active, or one that is not.
func (s Status) Includes(isActive bool) bool {
	switch s {
	case All:
		return true
	case Inactive:
		return !isActive
	}
	return isActive
}

// Sort is the order that a query asks for.
type Sort string

const (
	// ByRelevance orders by how well a site matches the text. It is the default. Fewer typos come first; then fewer words
	// that are only the beginning of the site's word, or only stand for it; then words of the name before those of tags,
	// town and postcode, and these before those of the rest of the address. If the query matches external ids, a site whose
	// external id is the text comes before all others. Sites that match equally well are nearest first if there is a center,
	// then as ByName. Without a text it is ByDistance if there is a center, otherwise ByName.
	ByRelevance Sort = "pertinence"
	// ByDistance is from the center outwards, sites without a position last, then as ByName.
	ByDistance Sort = "distance"
	// ByName is by the folded name, sites without one last, then by external id, then by referential, all as bytes.
	ByName Sort = "nom"
)

// Query is a query about the sites of one account. A site that is found matches every part of it that is set.
//
// A text is cut into words as QueryWords does. Each of them must be among the words of the site's name, address and tags,
// which VisitTerms cuts: unchanged; expanded (st: saint); as a prefix, which is allowed for the last word and two before it
// (mag flo: Magasin Florac); or with the typos that CountTypos allows. A text of punctuation alone finds nothing; a blank
// text counts as absent.
//
// With MatchExternalIDs the whole text may instead be a site's external id or a prefix of it, in any case. No other field of
// a site is ever searched for a text, whoever asks: not its id_ban, telephone, email, site_web, horaires, proprietes, nor
// its geocode_score.
type Query struct {
	Account          string
	Text             string
	Center           *geo.Point
	Radius           float64   // metres from the center, its edge included; 0 for none
	Box              *Box      // edges included
	Referential      string    // a code; "" for all
	Tags             []string  // the site has all of them, compared as FoldTag folds them
	OpenAt           time.Time // the site is open then, as locations.Opening says; zero for any site
	Status           Status
	Sort             Sort
	Limit            int    // hits per page, at least 1
	After            string // Next of the page before, "" for the first
	MatchExternalIDs bool   // a secret key asks
}

// Hit is a site that was found.
type Hit struct {
	Site     locations.Site
	Distance float64 // metres from the center; 0 without a center, or if the site has no position
}

// Result is a page of hits. Next is the cursor of the page after it, or "" if there is none. The cursor holds the SortKey of
// the last hit: even if sites are added, removed and moved, unchanged ones are neither repeated nor left out. The cursor is
// not signed; a caller that hands it to clients must do so if needed.
type Result struct {
	Hits []Hit
	Next string
}

// Engine finds sites. It is safe for concurrent use. It finds everything that was written before the query, as far as the
// engine was notified of it, or returns the error that prevents it. An unknown account has no sites.
//
// Errors: ErrInvalidQuery, ErrInvalidCursor, ErrStaleIndex, *table.StoppedError, that of ctx, and those of the database
// and the server that the engine uses.
type Engine interface {
	Search(ctx context.Context, q Query) (Result, error)
	// Count counts what Search finds on all pages together. If facets are asked for, it looks at every site that is found.
	Count(ctx context.Context, q Query, facets []Facet) (Counts, error)
}

var (
	// ErrInvalidQuery means that Validate rejects the query.
	ErrInvalidQuery = errors.New("not a question about sites")
	// ErrInvalidCursor means that the cursor does not come from a search, or comes from one with another order.
	ErrInvalidCursor = errors.New("not a cursor of this search")
	// ErrStaleIndex means that recent writes cannot be found yet, although the engine waited for them.
	ErrStaleIndex = errors.New("the search of sites is behind what was written")
)

// Validate returns nil if an engine can answer the query, and otherwise ErrInvalidQuery with the reason. The cursor is
// checked by ParseCursor.
func (q Query) Validate() error {
	switch {
	case q.Limit < 1:
		return fmt.Errorf("%w: a page of %d", ErrInvalidQuery, q.Limit)
	case !slices.Contains([]Status{"", Active, Inactive, All}, q.Status):
		return fmt.Errorf("%w: status %q", ErrInvalidQuery, q.Status)
	case !slices.Contains([]Sort{"", ByRelevance, ByDistance, ByName}, q.Sort):
		return fmt.Errorf("%w: sort %q", ErrInvalidQuery, q.Sort)
	case q.Center == nil && (q.Sort == ByDistance || q.Radius != 0):
		return fmt.Errorf("%w: a distance from no center", ErrInvalidQuery)
	case q.Center != nil && !q.Center.IsOnGlobe(), q.Box != nil && !q.Box.isValid(), !(q.Radius >= 0):
		return fmt.Errorf("%w: no such place on Earth", ErrInvalidQuery)
	}
	return nil
}

// TrimmedText returns the text, or "" if it is blank.
func (q Query) TrimmedText() string { return strings.TrimSpace(q.Text) }

// EffectiveSort returns the order that the whole query asks for. It is ByRelevance only if there is a text.
func (q Query) EffectiveSort() Sort {
	switch {
	case q.Sort == ByName, q.Sort == ByDistance:
		return q.Sort
	case q.TrimmedText() != "":
		return ByRelevance
	case q.Center != nil:
		return ByDistance
	}
	return ByName
}

// SortKey is the sort key of a hit in the order of a search. Fields that the order does not use are zero.
type SortKey struct {
	Rank        uint64  // the lower, the more relevant: RankTypo, RankPrefix and RankWords added up
	Distance    float64 // metres from the center, +Inf for a site without a position
	Name        string  // as FoldName folds it
	ExternalID  string
	Referential string
}

// Compare orders sort keys as every Sort does.
func (p SortKey) Compare(o SortKey) int {
	return cmp.Or(
		cmp.Compare(p.Rank, o.Rank), cmp.Compare(p.Distance, o.Distance), compareNames(p.Name, o.Name),
		strings.Compare(p.ExternalID, o.ExternalID), strings.Compare(p.Referential, o.Referential))
}

// compareNames puts sites without a name last.
func compareNames(a, b string) int {
	if (a == "") != (b == "") {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
}

var cursorEncoding = base64.RawURLEncoding.Strict()

// FormatCursor makes the cursor of the page after a sort key.
func (q Query) FormatCursor(after SortKey) string {
	b := append(make([]byte, 0, 64), q.cursorKind())
	b = binary.AppendUvarint(b, after.Rank)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(after.Distance))
	b = append(append(b, after.Name...), 0)
	b = append(append(b, after.ExternalID...), 0)
	return cursorEncoding.EncodeToString(append(b, after.Referential...))
}

// ParseCursor reads the query's cursor. ok is false if there is none. The only error is ErrInvalidCursor.
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

// cursorKind returns the first byte of a cursor. It keeps the cursor of one order from being used in another.
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

// Box lies between two meridians and two parallels, in degrees. If West is greater than East, it crosses the antimeridian.
type Box struct{ West, South, East, North float64 }

func (b Box) isValid() bool {
	return (geo.Point{Lon: b.West, Lat: b.South}).IsOnGlobe() && (geo.Point{Lon: b.East, Lat: b.North}).IsOnGlobe() && b.South <= b.North
}

// Contains reports whether a point is in the box or on its edge. It is false for NaN.
func (b Box) Contains(p geo.Point) bool {
	if !(b.South <= p.Lat && p.Lat <= b.North) {
		return false
	}
	if b.West <= b.East {
		return b.West <= p.Lon && p.Lon <= b.East
	}
	return p.Lon >= b.West || p.Lon <= b.East
}

// BoxAround returns a box that contains every point within the given distance of p. Its corners are farther away.
func BoxAround(p geo.Point, metres float64) Box {
	angle := metres/geo.EarthRadius + 1e-9 // never smaller than the circle, however numbers are rounded
	south, north := p.Lat-angle/geo.Radian, p.Lat+angle/geo.Radian
	if south <= -90 || north >= 90 {
		return Box{-180, max(south, -90), 180, min(north, 90)}
	}
	halfWidth := math.Asin(min(1, math.Sin(angle)/math.Cos(p.Lat*geo.Radian))) / geo.Radian
	return Box{normalizeLongitude(p.Lon - halfWidth), south, normalizeLongitude(p.Lon + halfWidth), north}
}

func normalizeLongitude(lon float64) float64 {
	switch {
	case lon < -180:
		return lon + 360
	case lon > 180:
		return lon - 360
	}
	return lon
}
