package address

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
	"lieudit/queries/address/text"
)

// The rule by which an inexact match is taken for the typed address without human confirmation. Measured on real questions: it
// refuses 8 in 100 right answers.
const (
	resolvedScore = 0.70
	resolvedAhead = 0.05 // of the next other address
)

// line is the question in one line.
func (q *Query) line() string {
	if q.Text != "" {
		return q.Text
	}
	street := q.Street
	if street == "" {
		street = q.Complement
	}
	return joined(q.Number, street, q.Postcode, q.Commune)
}

// Verify returns the matches of an address that are good enough, the best first. No match is not an error; ErrUnparsable is.
// The context bounds an external source; the vintage's own index does not wait.
func (e *Engine) Verify(ctx context.Context, query Query) ([]Match, error) {
	out, _, err := e.verify(ctx, &query, query.parse(false))
	return out, err
}

// verify is Verify with the whole result of the search.
func (e *Engine) verify(ctx context.Context, query *Query, q *parse.Question) (out []Match, found *search.Result, err error) {
	if found, err = e.search(ctx, query, q); err != nil {
		return nil, nil, err
	}
	for i := range found.Best {
		if found.Best[i].Score < search.Accepted || len(out) == query.Limit || e.isUnmapped(cmp.Or(query.CityCode, q.Postcode.Corsican)) {
			break
		}
		out = append(out, e.match(query, found, i))
	}
	if len(out) == 0 && query.CommuneFallback {
		if m, ok := (fallback{e}).match(query, q, found); ok {
			out = append(out, m)
		}
	}
	return out, found, nil
}

// Resolve returns the address that can be taken for a text without human confirmation, if there is one. Everything that is
// located or routed by address follows this rule. Text that is not an address resolves to nothing.
func (e *Engine) Resolve(ctx context.Context, query Query) (m Match, ok bool, err error) {
	query.Limit, query.CommuneFallback = 1, false
	found, err := e.Verify(ctx, query)
	if errors.Is(err, ErrUnparsable) {
		return m, false, nil
	}
	if err != nil || len(found) == 0 || !found[0].IsResolved {
		return m, false, err
	}
	return found[0], true, nil
}

// ExplainUnresolved is why Resolve has no address for a query; empty if it has one.
func (e *Engine) ExplainUnresolved(ctx context.Context, query Query) (Reason, error) {
	query.Limit, query.CommuneFallback = 1, false
	found, reason, err := e.Explain(ctx, query)
	switch {
	case errors.Is(err, ErrUnparsable):
		return WordsUnknown, nil
	case err == nil && len(found) > 0:
		return found[0].Reason, nil
	}
	return reason, err
}

// search finds the candidates of a query. It fails with ErrUnparsable if the query names no part of an address.
func (e *Engine) search(ctx context.Context, query *Query, q *parse.Question) (*search.Result, error) {
	found, err := e.index.Search(ctx, q, e.scopeOf(query, q))
	if err != nil {
		return nil, err
	}
	if len(found.Best) == 0 && !found.IsParsable && !e.knows(query.line(), q.Completing) {
		return nil, ErrUnparsable
	}
	return found, nil
}

func (e *Engine) match(query *Query, found *search.Result, i int) Match {
	c := &found.Best[i]
	x := found.Explain(c)
	m := Match{Record: e.record(c), Score: float64(c.Score) / 10000, Verdict: Probable, Precision: c.Type,
		NumberTyped: x.IsNumberTyped, NumberFound: c.Type == HouseNumber && (x.Rep == "" || x.IsRepKept)}
	next := 0
	if i == 0 {
		next = 1
	}
	if next < len(found.Best) {
		m.Next = float64(found.Best[next].Score) / 10000
	}
	if number, ok := c.MissingNumber(); ok {
		m.Nearby = e.nearby(c.Street, number)
	}
	m.Components = components(&x, &m.Record)
	m.Components.Complement = complement(joined(query.complement(), x.Complement), &m.Record)
	m.Components.citeCode(query.CityCode, len(e.ordinals(query.CityCode)) > 0)
	if found.IsExact(i) {
		m.Verdict = Exact
		m.Components.confirm()
	}
	isOpen := c.IsDoubted || c.IsContradicted || c.IsAmbiguous || x.IsFromPlace || x.MayBeOther || x.IsNamesake
	m.IsResolved = m.Verdict == Exact && m.isCommuneAlone() || i == 0 && m.isResolved() && !isOpen
	if !m.IsResolved {
		m.Reason = reasoner{e}.reasonOf(query, found, i, &x, &m)
	}
	return m
}

// isResolved applies the rule to what a match shows.
func (m *Match) isResolved() bool {
	c := &m.Components
	for _, part := range [...]*Component{&c.Number, &c.Rep, &c.Street, &c.Postcode, &c.City} {
		if part.Status == Unconfirmed {
			return false
		}
	}
	return m.Score >= resolvedScore && m.isAhead() && (!m.NumberTyped || m.NumberFound) && m.isCommuneAlone()
}

// isAhead reports whether the score is clearly above that of the next other address.
func (m *Match) isAhead() bool {
	const scale = 10_000 // scores have four decimals; unrounded, 0.85 - 0.80 would be less than 0.05
	return math.Round(m.Score*scale)-math.Round(m.Next*scale) >= resolvedAhead*scale
}

// isCommuneAlone is false if a commune matches and more than a commune was typed: a building is not its commune's centre.
// CEDEX belongs to the name of a commune.
func (m *Match) isCommuneAlone() bool {
	c := &m.Components
	return m.Precision != Municipality || c.Street.Typed == "" && (c.Complement.Typed == "" || strings.HasPrefix(c.Complement.Typed, "cedex"))
}

// nearby are the numbers of a street closest to one it does not have, at most six, in their order.
func (e *Engine) nearby(street, number uint32) []string {
	s := e.v.Street(street)
	at := e.v.FirstNumber(s, number)
	from, to := at, at
	for to-from < 6 && (from > s.From || to < s.To) {
		before := to == s.To || from > s.From && number-e.v.Number(from-1) <= e.v.Number(to)-number
		if before {
			from--
		} else {
			to++
		}
	}
	var out []string
	for row := from; row < to; row++ {
		r := Record{Number: fmt.Sprint(e.v.Number(row)), Rep: string(e.v.Rep(row))}
		out = append(out, r.HouseNumber())
	}
	return out
}

// components compares part by part.
func components(x *search.Explanation, r *Record) (out Components) {
	out.Number = component(x.Number, r.Number, !x.IsOtherNumber)
	out.Rep = component(x.Rep, r.Rep, x.IsRepKept)
	out.Street = component(x.Street, r.Street, x.IsStreetSame)
	out.Postcode = component(x.Postcode, r.Postcode, x.Postcode == r.Postcode)
	out.City = component(x.City, r.City, x.IsCitySame)
	if x.IsCode && x.City == "" {
		out.City = component(r.CityCode, r.City, true)
	}
	if x.IsCityUnknown {
		out.City.Status = Unconfirmed
	}
	out.Unknown = x.Unknown
	return out
}

// citeCode shows a code that stands alone for the commune, and marks a code that no commune has: it contradicts the name
// next to it, and alone it names nothing.
func (c *Components) citeCode(code string, isKnown bool) {
	switch {
	case code == "":
	case isKnown && c.City.Typed == "":
		c.City = Component{code, c.City.Kept, Confirmed}
	case isKnown:
	case c.City.Typed == "":
		c.City = Component{code, c.City.Kept, Unconfirmed}
	default:
		c.City.Status = Unconfirmed
	}
}

// complement compares the typed complement with the lieu-dit of the record, the only one that the base has.
func complement(typed string, r *Record) Component {
	if locality := text.Fold(r.Locality); typed != "" && typed == locality && r.Type == HouseNumber {
		return Component{typed, r.Locality, Confirmed}
	}
	return Component{typed, "", Absent}
}

// complement is the complement of an address in parts, folded. Without a street it is read as the street.
func (q *Query) complement() string {
	if q.Text != "" || q.Street == "" {
		return ""
	}
	return text.Fold(q.Complement)
}

// confirm accepts another spelling of a component once every word is known to be confirmed.
func (c *Components) confirm() {
	for _, part := range [...]*Component{&c.Number, &c.Rep, &c.Street, &c.Postcode, &c.City} {
		if part.Status == Corrected {
			part.Status = Confirmed
		}
	}
}

func component(typed, kept string, same bool) Component {
	status := Corrected
	switch {
	case typed == "" && kept == "":
		status = Absent
	case typed == "":
		status = Added
	case kept == "":
		status = Unconfirmed
	case same:
		status = Confirmed
	}
	return Component{typed, kept, status}
}
