package address

import (
	"context"
	"fmt"
	"slices"

	"lieudit/queries/address/search"
)

// The rule by which a match stands for what was typed without a look, where it is not exact. Measured on real questions: it
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

// Verify judges an address: the matches that are good enough, the best first. None is no error; ErrUnparsable is one.
// The context bounds a source outside; the vintage's own index does not wait.
func (e *Engine) Verify(ctx context.Context, query Query) ([]Match, error) {
	found, err := e.search(ctx, &query, false)
	if err != nil {
		return nil, err
	}
	var out []Match
	for i := range found.Best {
		if found.Best[i].Score < search.Accepted || len(out) == query.Limit {
			break
		}
		out = append(out, e.match(&query, found, i))
	}
	if len(out) == 0 && query.CommuneFallback {
		if c, ok := found.NamedCommune(); ok {
			found.Best = append(found.Best[:0], c)
			out = append(out, e.match(&query, found, 0))
		}
	}
	return out, nil
}

// search finds the candidates of a query. What names no part of an address is ErrUnparsable.
func (e *Engine) search(ctx context.Context, query *Query, completing bool) (*search.Result, error) {
	q := query.parse(completing)
	found, err := e.index.Search(ctx, q, e.scopeOf(query, q))
	if err != nil {
		return nil, err
	}
	if len(found.Best) == 0 && !found.IsParsable && !e.knows(query.line(), completing) {
		return nil, ErrUnparsable
	}
	return found, nil
}

func (e *Engine) match(query *Query, found *search.Result, i int) Match {
	c := &found.Best[i]
	x := found.Explain(c)
	m := Match{Record: e.record(c), Score: float64(c.Score) / 10000, Verdict: Probable, Precision: c.Type,
		NumberTyped: x.IsNumberTyped, NumberFound: c.Type == HouseNumber}
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
	if query.CityCode != "" && x.City == "" {
		m.Components.City = e.codeComponent(query.CityCode, &m.Record)
	}
	if found.IsExact(i) {
		m.Verdict = Exact
		m.Components.confirm()
	}
	m.IsResolved = m.Verdict == Exact || i == 0 && m.isResolved() && !c.IsDoubted && !x.IsFromPlace
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
	return m.Score >= resolvedScore && m.Score-m.Next >= resolvedAhead && (!m.NumberTyped || m.NumberFound)
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
		out = append(out, fmt.Sprint(e.v.Number(row))+string(e.v.Rep(row)))
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
	out.Complement = x.Complement
	return out
}

// codeComponent compares a commune that was given by its code alone.
func (e *Engine) codeComponent(code string, r *Record) Component {
	ordinal, ok := e.v.CommuneOf(r.CityCode)
	if ok && slices.Contains(e.ordinals(code), ordinal) {
		return Component{code, r.City, Confirmed}
	}
	return Component{code, r.City, Unconfirmed}
}

// confirm takes what is written in another way for what it is, once every word is known to be confirmed.
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
