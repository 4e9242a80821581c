package address

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lieudit/queries/address/text"
)

// line is the question in one line. A complement is read where no street is given: it is not in the base otherwise.
func (q Query) line() string {
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
	q := e.ask(query, false)
	found, err := e.find(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && !q.parsable() && !e.knows(query.line(), false) {
		return nil, ErrUnparsable
	}
	var out []Match
	for i := range found {
		if found[i].score < accepted || len(out) == query.Limit {
			break
		}
		out = append(out, e.match(q, found, i))
	}
	return out, nil
}

// parsable says whether anything of an address was typed.
func (q *question) parsable() bool {
	if q.postcode != 0 || q.citedAs != "" {
		return true
	}
	for i := range q.terms {
		if q.terms[i].Digits || len(q.alts[i]) > 0 || text.ClassOf(q.terms[i].Text) == text.Way {
			return true
		}
	}
	return false
}

// wants says whether answers of a type are let through.
func (q *question) wants(t Type) bool {
	return len(q.filter.Types) == 0 || slices.Contains(q.filter.Types, t)
}

// passes says whether the question's filter lets a candidate through.
func (q *question) passes(c *candidate) bool {
	if !q.wants(c.kind) || !q.area.has(c.commune) {
		return false
	}
	return len(q.filter.Postcodes) == 0 || slices.Contains(q.filter.Postcodes, postcodeText(q.postcodeOf(c)))
}

// postcodeOf is the postcode a candidate is shown with.
func (q *question) postcodeOf(c *candidate) uint32 {
	if c.kind == Municipality {
		return q.communePostcode(c.commune)
	}
	return q.facet(c, q.v.Street(c.street)).Postcode
}

func (e *Engine) match(q *question, found []candidate, i int) Match {
	c := &found[i]
	m := Match{Record: e.record(c, q), Score: float64(c.score) / 10000, Verdict: Probable, Precision: c.kind,
		NumberTyped: c.typed(), NumberFound: c.kind == HouseNumber}
	next := 0
	if i == 0 {
		next = 1
	}
	if next < len(found) {
		m.Next = float64(found[next].score) / 10000
	}
	if c.missing && c.kind == StreetType {
		m.Nearby = e.nearby(c)
	}
	m.Components = e.components(q, c, &m.Record)
	if q.alone(found, i) {
		m.Verdict = Exact
		m.Components.confirm()
	}
	return m
}

// alone says whether a candidate is confirmed, and no other is.
func (q *question) alone(found []candidate, i int) bool {
	if q.steps <= 0 || q.cut || !found[i].sound || slices.Contains(q.leftOut, found[i].kind == Municipality) {
		return false
	}
	for j := range found {
		if j != i && found[j].kind == found[i].kind && found[j].sound {
			return false
		}
	}
	return true
}

// nearby are the numbers of a street closest to one it does not have, at most six, in their order.
func (e *Engine) nearby(c *candidate) []string {
	s := e.v.Street(c.street)
	at := e.v.FirstNumber(s, c.number)
	from, to := at, at
	for to-from < 6 && (from > s.From || to < s.To) {
		before := to == s.To || from > s.From && c.number-e.v.Number(from-1) <= e.v.Number(to)-c.number
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

// typed is the text of terms, as folded.
func (q *question) typed(at mask) string {
	var words []string
	for i := range q.terms {
		if at.has(i) && !q.terms[i].Part {
			words = append(words, q.terms[i].Typed)
		}
	}
	return strings.Join(words, " ")
}

// components compares part by part.
func (e *Engine) components(q *question, c *candidate, r *Record) (out Components) {
	street := q.words() &^ c.span &^ c.numberAt &^ c.repAt
	out.Number = component(q.typed(c.numberAt), r.Number, !c.missing && !c.ranged)
	out.Rep = component(c.rep, r.Rep, c.rep == r.Rep || !c.missing && c.rep != "")
	out.Street = component(q.typed(street), r.Street, c.certain && c.loose == 0 && q.explained(c))
	postcode := q.typed(q.postcodeMask)
	if postcode == q.citedAs { // it was read as the code of the commune
		postcode = ""
	}
	out.Postcode = component(postcode, r.Postcode, postcode == r.Postcode)
	out.City = component(q.typed(c.span), r.City, c.sim >= confirmedSim)
	if c.span == 0 {
		out.City = component(q.citedAs, r.City, q.cited.has(c.commune))
	}
	return out
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
