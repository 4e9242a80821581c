package search

import (
	"iter"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// query is one reading of a question with the vintage that it is asked of: what every stage reads. None changes it but for the
// budget, and the lexicon, to which looser readings of the words are added.
type query struct {
	index    *Index
	v        *vintage.Vintage
	table    *commune.Table
	q        *parse.Question
	scope    Scope
	lexicon  *lexicon
	budget   *budget
	postcode typedPostcode
	division division
}

// newQuery reads what the words of a question say by themselves.
func newQuery(x *Index, q *parse.Question, scope Scope, steps int) *query {
	b := &budget{left: steps, total: steps, isCut: q.IsCut}
	return &query{index: x, v: x.v, table: x.table, q: q, scope: scope, lexicon: newLexicon(x.v, q, x.v, b), budget: b,
		postcode: readPostcode(x.v, x.table, q), division: readDivision(x.table, q)}
}

// budget bounds the work on one question.
type budget struct {
	left  int  // steps that may still be taken
	total int  // steps at the beginning
	isCut bool // some of what fits was not looked at
}

// streetWords are the words that may name a street where a place is named by others.
func (x *query) streetWords(p place) parse.Mask {
	return x.q.Words() &^ p.at &^ x.q.PlaceOnly &^ x.q.Complement &^ x.q.Reps &^ x.q.Corner
}

// wantsType reports whether answers of a type are let through.
func (x *query) wantsType(t Type) bool {
	if len(x.scope.Types) == 0 {
		return true
	}
	for _, wanted := range x.scope.Types {
		if wanted == t {
			return true
		}
	}
	return false
}

// isNamedPlace reports whether the words or a code name the commune of a candidate.
func (x *query) isNamedPlace(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= boundSim || x.scope.Cited != nil && x.scope.Cited.Has(c.Commune)
}

// isPlaced reports whether the place of a candidate is certain: a name says it exactly, or the postcode is
// its own.
func (x *query) isPlaced(c *Candidate) bool {
	return c.name != vintage.None && c.sim >= literalSim || x.postcode.code != 0 && c.facet.Postcode == x.postcode.code
}

// isCited reports whether a commune has the code that was given, where no postcode is known. The typed digits are
// then that code.
func (x *query) isCited(c uint32) bool {
	return x.scope.Cited != nil && x.postcode.code == 0 && x.scope.Cited.Has(c)
}

// rowsWithNumber are the rows of a street that bear a number.
func (x *query) rowsWithNumber(of vintage.Street, number uint32) (from, to uint32) {
	from = x.v.FirstNumber(of, number)
	for to = from; to < of.To && x.v.Number(to) == number; to++ {
		x.budget.left--
	}
	return from, to
}

// beginsAsTyped reports whether the name of a street begins with the words that do not name its place, in their order and with their
// links. If what was typed continues with the place, they are the whole name.
func (x *query) beginsAsTyped(street uint32, placeAt parse.Mask) bool {
	name := x.v.NameTerms(x.v.StreetName(street))
	words := x.q.Words() &^ placeAt &^ x.q.Complement &^ x.q.Reps
	k, isWhole := 0, true
	for i := range x.q.Terms {
		switch {
		case !words.Has(i), k == 0 && x.q.Terms[i].Digits:
		case k < name.Len() && (i == x.q.Unfinished && x.lexicon.sim(i, name.At(k)) > 0 || x.lexicon.sim(i, name.At(k)) >= literalSim):
			k++
			isWhole = i != x.q.Unfinished
		case x.q.Terms[i].Digits:
		case k == name.Len() && x.q.IsStopWord(i): // of the name of the commune
		default:
			return false
		}
	}
	return k > 0 && (!isWhole || k == name.Len())
}

// unfinishedWord is the word that may still grow.
func unfinishedWord(q *parse.Question) parse.Mask {
	if q.Unfinished < 0 {
		return 0
	}
	return parse.Bit(q.Unfinished)
}

// innerTypes are the kinds of streets but the first one: they are distinctive, as in rue du Parc.
func innerTypes(q *parse.Question, words parse.Mask) parse.Mask {
	types := q.StreetTypes(words)
	return types & (types - 1) // without the lowest bit
}

// areQualifiers reports whether words are all such as "ancien", which name no street by themselves. It is false for no words.
func areQualifiers(q *parse.Question, words parse.Mask) bool {
	for i := range q.Terms {
		if words.Has(i) && !text.IsQualifier(q.Terms[i].Text) {
			return false
		}
	}
	return words != 0
}

// followsLink reports whether a link stands before words. They then belong to the name of a street: rue de
// Strasbourg.
func followsLink(q *parse.Question, words parse.Mask) bool {
	return words != 0 && words.First() > 0 && q.IsStopWord(words.First()-1)
}

// years are the words that are a year. In a street named after a date a year is not a house number.
func years(q *parse.Question, words parse.Mask) (out parse.Mask) {
	for i := range q.Terms {
		if n := parse.Number(q.Terms[i].Typed); words.Has(i) && q.Terms[i].Digits && n >= 1700 && n < 2030 {
			out |= parse.Bit(i)
		}
	}
	return out
}

// streetDigits are the digits behind a kind of street: rue du 4.
func streetDigits(q *parse.Question, words parse.Mask) (out parse.Mask) {
	hasType := false
	for i := range q.Terms {
		if words.Has(i) {
			hasType = hasType || q.IsStreetType(i)
			if hasType && q.Terms[i].Digits {
				out |= parse.Bit(i)
			}
		}
	}
	return out
}

// countWords counts words without links.
func countWords(q *parse.Question, words parse.Mask) (n int) {
	for i := range q.Terms {
		if words.Has(i) && !q.IsStopWord(i) {
			n++
		}
	}
	return n
}

// typedWords are the words of a set as they were typed, without links.
func typedWords(q *parse.Question, words parse.Mask) (typed []string) {
	for i := range q.Terms {
		if words.Has(i) && !q.IsStopWord(i) && !q.Terms[i].Part {
			typed = append(typed, q.Typed(parse.Bit(i)))
		}
	}
	return typed
}

// typedRun are terms [from, to) as typed.
func typedRun(q *parse.Question, from, to int) (words []string) {
	for _, t := range q.Terms[from:to] {
		words = append(words, t.Typed)
	}
	return words
}

// gluedWords are the words that no character separates from the one before.
func gluedWords(q *parse.Question) (out parse.Mask) {
	for i := range q.Terms {
		if q.Terms[i].Glued {
			out |= parse.Bit(i)
		}
	}
	return out
}

// isBehindNumber reports whether a word stands right behind a number: the a of 2a is its repetition index, and no link.
func isBehindNumber(q *parse.Question, i int) bool { return i > 0 && q.Terms[i-1].Digits }

// isExplained reports whether the words that a candidate leaves unread are only links, articles and complements.
func isExplained(q *parse.Question, unread parse.Mask) bool {
	for i := range q.Terms {
		isArticle := q.Terms[i].Elided && q.IsStopWord(i)
		if (unread &^ q.Complement).Has(i) && !q.IsLink(i) && !isArticle {
			return false
		}
	}
	return true
}

// Area is a set of communes by their ordinals, in ascending order. A nil area is everywhere; an empty one is
// nowhere.
type Area []uint32

// NewArea makes an area of ordinals. It is never nil, so no ordinals make an area that is nowhere.
func NewArea(ordinals []uint32) Area {
	slices.Sort(ordinals)
	return append(Area{}, slices.Compact(ordinals)...)
}

// Has reports whether a commune lies in the area.
func (a Area) Has(commune uint32) bool {
	if a == nil {
		return true
	}
	_, ok := slices.BinarySearch(a, commune)
	return ok
}

// within is the part of an area that lies in another one.
func (a Area) within(b Area) Area {
	if b == nil {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(commune uint32) bool { return !b.Has(commune) })
}

// ranges are the ranges [from, to) of the streets that lie in the area.
func (a Area) ranges(v *vintage.Vintage) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		if a == nil {
			yield(0, uint32(v.Streets+v.Localities))
			return
		}
		for _, ordinal := range a {
			if c := v.Commune(ordinal); !yield(c.From, c.To) {
				return
			}
		}
	}
}
