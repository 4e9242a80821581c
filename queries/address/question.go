package address

import (
	"math/bits"
	"strconv"

	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// maxTerms bounds the words that are looked at; a longer question is cut.
const maxTerms = 32

// mask is a set of terms of a question.
type mask uint32

func bit(i int) mask          { return 1 << i }
func (m mask) has(i int) bool { return m&bit(i) != 0 }
func (m mask) count() int     { return bits.OnesCount32(uint32(m)) }
func span(from, to int) mask  { return mask(uint64(1)<<to - uint64(1)<<from) }

// question is what was typed, as far as it can be read without looking for an address.
type question struct {
	v      *vintage.Vintage
	from   finder
	terms  []text.Term
	all    mask // every term
	noise  mask // complements, boxes, CEDEX: read and left aside
	prefix int  // the term that may still grow, or -1

	postcode     uint32 // 0 is none
	postcodeMask mask
	cedex        bool
	stem         stem

	alts      [maxTerms][]alt
	weight    [maxTerms]int32
	low, high uint32 // the range of terms the growing one may become
	steps     int
	cut       bool   // more fits than was looked at
	leftOut   []bool // a source may have left out communes (true), or streets (false), that fit
	loosened  mask
	filter    Filter
	area      area
	cited     area           // the communes whose code was typed, if one was
	citedAs   string         // it
	here      *vintage.Point // what lies nearer comes first
	around    area           // the communes there
	list      shortlist
	scratch   []rough
}

// ask reads a question and where its answers may lie.
func (e *Engine) ask(query Query, growing bool) *question {
	q := read(e.v, query.line(), growing)
	q.filter, q.area = query.Filter, e.areaOf(query.Filter)
	if query.CityCode != "" {
		q.cite(query.CityCode, e.ordinals(query.CityCode))
	} else if q.postcode != 0 && e.v.PostcodeCommunes(q.postcode).Len() == 0 {
		if code := postcodeText(q.postcode); len(e.ordinals(code)) > 0 {
			q.cite(code, e.ordinals(code))
			q.postcode = 0
		}
	}
	if query.Bias != nil {
		q.here = &vintage.Point{Lon: degrees(query.Bias.Lon), Lat: degrees(query.Bias.Lat)}
		q.around = e.communesAround(*q.here)
	}
	return q
}

// cite takes note of a typed code and the communes it stands for.
func (q *question) cite(code string, communes []uint32) {
	q.citedAs, q.cited = code, sorted(communes)
}

// read reads a line. growing says that its last word may be unfinished.
func read(v *vintage.Vintage, line string, growing bool) *question {
	q := &question{v: v, from: index{v}, terms: text.Terms(line), prefix: -1, steps: maxSteps}
	if len(q.terms) > maxTerms {
		q.terms, q.cut = q.terms[:maxTerms], true
	}
	q.all = span(0, len(q.terms))
	q.readPostcode()
	q.readNoise()
	if last := len(q.terms) - 1; growing && last >= 0 && !q.noise.has(last) && !q.postcodeMask.has(last) {
		q.prefix = last
		q.low, q.high = v.Prefix(q.terms[last].Typed)
		q.readStem(last)
	}
	for i := range q.terms {
		q.weight[i] = weightOf(q.terms[i].Text)
		q.exact(i)
	}
	return q
}

// weightOf is how much a term counts.
func weightOf(term string) int32 {
	switch text.ClassOf(term) {
	case text.Link:
		return 5
	case text.Way:
		return 35
	}
	return 100
}

// readPostcode takes the last word of five digits, or of two and three, for the postcode.
func (q *question) readPostcode() {
	for i := len(q.terms) - 1; i >= 0; i-- {
		t := q.terms[i]
		if !t.Digits || t.Tail != "" {
			continue
		}
		if len(t.Typed) == 5 {
			q.takePostcode(t.Typed, bit(i))
			return
		}
		if i > 1 && len(t.Typed) == 3 && len(q.terms[i-1].Typed) == 2 && q.terms[i-1].Digits && !t.Glued {
			if code := q.terms[i-1].Typed + t.Typed; q.v.PostcodeCommunes(number(code)).Len() > 0 {
				q.takePostcode(code, bit(i)|bit(i-1))
				return
			}
		}
	}
}

func (q *question) takePostcode(code string, at mask) {
	q.postcode, q.postcodeMask = number(code), at
}

// number reads digits; what is no number is 0.
func number(digits string) uint32 {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// readNoise finds what belongs to an address on paper and not to the base.
func (q *question) readNoise() {
	for i := range q.terms {
		switch q.terms[i].Typed {
		case "cedex":
			q.cedex = true
			q.take(i, 1, func(t text.Term) bool { return t.Digits && len(t.Typed) <= 2 })
		case "bp", "cs", "tsa", "cidex":
			q.take(i, 1, func(t text.Term) bool { return t.Digits })
		case "bat", "batiment", "apt", "appt", "appartement", "porte", "esc", "escalier", "hall":
			if i+1 < len(q.terms) && len(q.terms[i+1].Typed) <= 2 {
				q.take(i, 1, func(t text.Term) bool { return len(t.Typed) <= 2 })
			}
		case "etage":
			if i > 0 && (q.terms[i-1].Digits || q.terms[i-1].Typed == "premier") {
				q.noise |= bit(i - 1)
				q.noise |= bit(i)
			}
		case "france":
			if i == len(q.terms)-1 && i > 0 && text.ClassOf(q.terms[i-1].Text) != text.Link {
				q.noise |= bit(i)
			}
		}
	}
	q.noise &^= q.postcodeMask
}

// take leaves a term aside, and up to n after it that go with it.
func (q *question) take(i, n int, goes func(text.Term) bool) {
	q.noise |= bit(i)
	for j := i + 1; j < len(q.terms) && j <= i+n && goes(q.terms[j]) && !q.postcodeMask.has(j); j++ {
		q.noise |= bit(j)
	}
}

// words are the terms that may name a street or a commune.
func (q *question) words() mask { return q.all &^ q.noise &^ q.postcodeMask }
