package address

import (
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
	"lieudit/queries/address/vintage"
)

// Engine answers from one vintage and the table of communes. It is safe for concurrent use, until the vintage is closed.
//
// Each embeds the one before and adds a stage: communes resolves codes, postcodes and names to communes, records makes a Record of
// an entity of the vintage, and Engine searches and compares. Above it, fallback finds the commune that answers if the address is
// missing, and reasoner finds the reason why a match does not resolve.
type Engine struct{ records }

// communes resolves codes, postcodes, names and positions to communes of the vintage and of the table.
type communes struct {
	v     *vintage.Vintage
	table *commune.Table
	index *search.Index
}

// New returns an engine of a vintage. The table adds what it knows of communes.
func New(v *vintage.Vintage, table *commune.Table) *Engine { return NewOn(v, table, nil) }

// NewOn returns an engine whose candidates come from a source that holds the same vintage.
func NewOn(v *vintage.Vintage, table *commune.Table, source Source) *Engine {
	table.PrepareSearch()
	return &Engine{records{communes{v: v, table: table, index: search.New(v, table, source)}}}
}

// Vintage is the vintage from which the engine answers.
func (e *Engine) Vintage() *vintage.Vintage { return e.v }

// parse reads a query.
func (q *Query) parse(completing bool) *parse.Question {
	if q.Text != "" {
		return parse.Line(q.Text, completing)
	}
	street := q.Street
	if street == "" {
		street = q.Complement // next to a street it holds nothing that the base has
	}
	return parse.Fields(parse.Parts{Number: q.Number, Street: street, Postcode: q.Postcode, Commune: q.Commune})
}

// scopeOf returns what narrows a query: its filter, a code, a position.
func (e *Engine) scopeOf(query *Query, q *parse.Question) search.Scope {
	s := search.Scope{Types: query.Types, Communes: e.areaOf(query.Filter), Postcodes: query.Postcodes, Departments: query.Departments}
	if code := e.codeOf(query, q); code != "" {
		s.Cited = search.NewArea(e.ordinals(code))
	}
	if query.Bias != nil {
		near := vintage.Fix(*query.Bias)
		s.Near = &near
		s.Around = e.communesAround(*s.Near)
	}
	return s
}

// codeOf is the INSEE code that was typed, or empty. A postcode that no commune has and that is the INSEE code of one is taken
// for the code, unless CEDEX or the name of another commune stands next to it: 38042 Grenoble CEDEX. A code of Corsica is
// never a postcode.
func (e *Engine) codeOf(query *Query, q *parse.Question) string {
	if query.CityCode != "" {
		return query.CityCode
	}
	if _, isKnown := e.table.ByCode(q.Postcode.Corsican); isKnown {
		return q.Postcode.Corsican
	}
	if q.Postcode.Code == 0 || q.HasCedex || e.v.PostcodeCommunes(q.Postcode.Code).Len() > 0 {
		return ""
	}
	typed := search.PostcodeText(q.Postcode.Code)
	if len(e.ordinals(typed)) == 0 || len(e.table.ByPostcode(typed)) > 0 {
		return ""
	}
	words := q.Words()
	for _, at := range [...]parse.Mask{q.PlaceOnly, words &^ parse.Span(0, q.Postcode.At.Last()), words} {
		if name := q.Typed(at); e.IsCommune(name) && !e.IsCodeOf(typed, name) {
			return ""
		}
	}
	return typed
}

const (
	firstCircle = 500 // metres searched for the communes around a position, doubled until there are some
	lastCircle  = 16_000
)

// communesAround are the communes of the streets nearest to a point.
func (x *communes) communesAround(p vintage.Point) search.Area {
	all := []uint32{}
	for radius := float64(firstCircle); len(all) == 0 && radius <= lastCircle; radius *= 2 {
		x.v.StreetsAround(p.Lon, p.Lat, radius, func(street uint32, at vintage.Point) {
			if vintage.Metres(p, at) <= radius {
				all = append(all, x.v.StreetCommune(street))
			}
		})
	}
	return search.NewArea(all)
}

// areaOf are the communes that a filter admits. A filter that matches no commune excludes everything.
func (x *communes) areaOf(f Filter) search.Area {
	var parts []search.Area
	if len(f.CityCodes) > 0 {
		parts = append(parts, x.communesOf(f.CityCodes))
	}
	if len(f.Postcodes) > 0 {
		parts = append(parts, x.servedBy(f.Postcodes))
	}
	if len(f.Departments) > 0 {
		parts = append(parts, x.index.InDepartments(f.Departments))
	}
	if len(parts) == 0 {
		return nil
	}
	both := parts[0]
	for _, part := range parts[1:] {
		both = slices.DeleteFunc(both, func(commune uint32) bool { return !part.Has(commune) })
	}
	return both
}

// communesOf are the communes with some codes: a city stands for its arrondissements, a former commune for the one it
// is part of.
func (x *communes) communesOf(codes []string) search.Area {
	var all []uint32
	for _, code := range codes {
		all = append(all, x.ordinals(code)...)
	}
	return search.NewArea(all)
}

// ordinals are the communes of the vintage that a code stands for.
func (x *communes) ordinals(code string) (all []uint32) {
	if ordinal, ok := x.v.CommuneOf(code); ok {
		return []uint32{ordinal}
	}
	known, ok := x.table.ByCode(code)
	if !ok {
		return nil
	}
	for _, part := range x.table.Children(code) {
		if ordinal, ok := x.v.CommuneOf(part.Code); ok && part.Kind == commune.Arrondissement {
			all = append(all, ordinal)
		}
	}
	if ordinal, ok := x.v.CommuneOf(known.Parent); ok && known.Parent != "" {
		all = append(all, ordinal)
	}
	return all
}

func (x *communes) servedBy(postcodes []string) search.Area {
	var all []uint32
	for _, code := range postcodes {
		communes := x.v.PostcodeCommunes(parse.Number(code))
		for i := range communes.Len() {
			all = append(all, communes.At(i))
		}
		for _, c := range x.table.ByPostcode(code) {
			if ordinal, ok := x.v.CommuneOf(c.Code); ok && x.v.CommunePostcodes(ordinal).Len() == 0 {
				all = append(all, ordinal)
			}
		}
	}
	return search.NewArea(all)
}
