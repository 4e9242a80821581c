// Package search finds the addresses of one vintage that a parsed question may mean. The same question has the same answer
// every time, to the last tie; how long it may take is counted in steps, not in time.
//
// A question passes through these stages, each a small type over the query, in the order in which they may use one another:
//
//	newQuery        parse.Question ──> query        with the typed postcode, the division, and a lexicon of the terms that its words may mean
//	recognizer      query ──> recognition           the communes that words name (place), and the words that name one (communeMention)
//	streetFinder    place, words ──> []hit          streets of a commune whose names share words with the question
//	areaFinder      Area, words ──> []hit           streets of a department or of everywhere
//	wholeFinder     Area, heldWords ──> streets     that hold every word of an unfinished line
//	matcher         place, street ──> Candidate     alignment of words, house number
//	    wordMatcher                                 which words belong to the street, and whether they mean it
//	    complementReader                            which words stand next to the address
//	    placeFilter                                 whether it lies where it was typed
//	ranker          Candidate ──> evidence, score   and the shortlist of the best candidates
//
// A searcher runs the stages for one reading of the question, more and more loosely until the best candidate settles it: with words as
// typed, as prefixes, as misspelt. A completer runs them first, strictly, for an unfinished line: it finds what holds every typed word.
// A rewriter writes the question differently if its words do not all fit. Result.Explain shows how each word was read.
//
// A word is one of the question, a term one of the vintage. A distinctive word tells streets apart: it is not a kind of street, no
// stop word and no number. A fuzzy word is read as a term that it does not spell. Likeness (sim) is in hundredths. A weight says
// how much a word counts. A candidate is confirmed if it confirms every typed word.
//
// The streets come from the vintage's own index or from a Source outside, for which a queryPlanner plans the queries; what either
// names is matched in the same way.
package search

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
	"lieudit/queries/worker"
)

// MaxSteps bounds the work on one reading of a question. A look at a term, a place, a street or a number counts
// one step. Each round of a source and each rewriting has a budget of its own.
const MaxSteps = 60_000

const (
	// Accepted is the least score of an answer that is worth showing.
	Accepted = 5000
	// sureScore is the least score at which the search ends at once.
	sureScore = 9700
	// placedScore is the least score at which the search may stay within the communes that the words name.
	placedScore = 7000
	// likelyScore is the least score at which words that all fit as typed are not read more loosely.
	likelyScore = 8000
)

// Index is a vintage with what is known of communes next to it. It is safe for concurrent use.
type Index struct {
	v      *vintage.Vintage
	table  *commune.Table
	source Source // nil: the vintage's own index

	departments func() map[string][]uint32 // the communes of each
}

// New makes the index of a vintage. With a source the candidates come from there.
func New(v *vintage.Vintage, table *commune.Table, source Source) *Index {
	return &Index{v: v, table: table, source: source, departments: sync.OnceValue(func() map[string][]uint32 { return byDepartment(v) })}
}

// InDepartments is the area of some departments.
func (x *Index) InDepartments(codes []string) Area {
	byDepartment := x.departments()
	var all []uint32
	for _, code := range codes {
		all = append(all, byDepartment[code]...)
	}
	return NewArea(all)
}

// byDepartment lists the communes of a vintage by the department they lie in.
func byDepartment(v *vintage.Vintage) map[string][]uint32 {
	all := map[string][]uint32{}
	for i := range uint32(v.Communes) {
		d := commune.DepartmentOf(v.Commune(i).String())
		all[d] = append(all[d], i)
	}
	return all
}

// Scope narrows a search.
type Scope struct {
	Types       []Type         // none: all
	Communes    Area           // in which answers must lie; nil: anywhere
	Postcodes   []string       // of which answers must have one; empty: any
	Departments []string       // in one of which answers must lie; empty: any. Communes already includes their communes
	Cited       Area           // the communes of an INSEE code that was given next to the words; nil without one
	Near        *vintage.Point // of answers that fit about as well, the one nearer to this point comes first
	Around      Area           // the communes around that point
}

// Result is what a search found.
type Result struct {
	Best        []Candidate // the best first
	IsParsable  bool        // a number, a street, a postcode or a commune can be read from the words
	IsTruncated bool        // there may be other answers that were not looked at
	leftOut     []bool      // for each query that a source answered in part: whether communes (true) or streets (false) may be missing
	run         *searcher
}

// Steps is the work on the reading that gave the result. Other readings that were tried do not count.
func (r *Result) Steps() int { return r.run.budget.total - r.run.budget.left }

// Search finds the candidates of a question, the best first. If the words do not all fit and half of the steps
// are left, it also tries other ways to write the question. A rewriting must score clearly better, because it is not
// what was typed. An unfinished line is also read without a last word that begins a part of a building. Before
// each reading it yields to other requests. Errors are those of the source and of worker.Yield.
func (x *Index) Search(ctx context.Context, q *parse.Question, scope Scope) (*Result, error) {
	best, err := x.searchCounted(ctx, q, scope, MaxSteps)
	if err != nil || best.run.isCompleted {
		return best, err
	}
	if found, ok, err := x.searchWithoutComplement(ctx, q, scope, best); ok || err != nil {
		return found, err
	}
	w := rewriter{best.run.query, best.run.found, &best.run.ranking}
	if w.ranking.isSettled() && !w.hasMixedWord() && !w.hasJoinedWord() || w.budget.left < MaxSteps/2 {
		return best, nil
	}
	if err := worker.Yield(ctx, time.Duration(len(q.Terms))*wordWork); err != nil {
		return nil, err
	}
	for _, other := range w.rewrites() {
		found, err := x.searchCounted(ctx, other, scope, rewriteSteps)
		if err != nil {
			return nil, err
		}
		if found.run.ranking.list.top() > best.run.ranking.list.top()+rewriteCost {
			found.markRewritten()
			best = found
		}
	}
	return best, nil
}

// searchWithoutComplement searches for an unfinished line without its last word, if that begins a part of a building and nothing holds
// it. It answers false if that leads to no whole address.
func (x *Index) searchWithoutComplement(ctx context.Context, q *parse.Question, scope Scope, best *Result) (*Result, bool, error) {
	other, ok := q.WithoutBegunComplement()
	if !ok {
		return nil, false, nil
	}
	found, err := x.searchCounted(ctx, other, scope, rewriteSteps)
	if err != nil {
		return nil, false, err
	}
	c := found.run.ranking.list.first()
	return found, c != nil && c.isComplete() && c.isWhole && c.Score >= placedScore && c.Score > best.run.ranking.list.top(), nil
}

// Roughly how long it takes to prepare a reading or its rewritings, for each word, and how long a step of a reading takes.
const (
	wordWork = 15 * time.Microsecond
	stepWork = 25 * time.Nanosecond
)

// searchCounted is searchOne that counts its work. The words count before it, so that a question with very many waits for a worker.
func (x *Index) searchCounted(ctx context.Context, q *parse.Question, scope Scope, steps int) (*Result, error) {
	if err := worker.Yield(ctx, time.Duration(len(q.Terms))*wordWork); err != nil {
		return nil, err
	}
	found, err := x.searchOne(ctx, q, scope, steps)
	if err == nil {
		worker.Count(ctx, time.Duration(found.Steps())*stepWork)
	}
	return found, err
}

// searchOne searches for the question as it is written.
func (x *Index) searchOne(ctx context.Context, q *parse.Question, scope Scope, steps int) (*Result, error) {
	c := newQuery(x, q, scope, steps)
	s := &searcher{query: c, communes: recognizer{c}, streets: streetFinder{query: c}, ranking: ranker{query: c}}
	s.areas, s.match = areaFinder{&s.streets, s.communes}, newMatcher(c, &s.ranking)
	result := &Result{run: s}
	if x.source == nil {
		if s.isCompleted = q.Completing && s.completeLine(); !s.isCompleted {
			s.search()
		}
	} else {
		worker.Release(ctx) // the source may not answer
		if err := s.searchSource(ctx, result); err != nil {
			return nil, fmt.Errorf("find candidates: %w", err)
		}
	}
	s.ranking.dropDoubleCorrections()
	s.ranking.preferNumbered()
	result.Best, result.IsParsable = s.ranking.list.best, s.isParsable()
	result.IsTruncated = s.budget.left <= 0 || s.budget.isCut
	return result, nil
}

// Explanation maps the typed words to the parts of a candidate's address.
type Explanation struct {
	Number, Rep, Street, Postcode, City, Complement string   // as typed, folded
	Unknown                                         []string // words of the complement that no reading explains, links left out

	IsNumberTyped bool
	IsOtherNumber bool // the number is not the first of those typed
	IsRepKept     bool // the repetition index is the street's
	IsStreetSame  bool // the street fits exactly, and no typed word is left over
	IsCitySame    bool
	IsCityUnknown bool // City holds words that do not name the commune of the candidate
	IsCode        bool // the typed digits are the INSEE code of the commune
	IsFromPlace   bool // words of the street also name a commune elsewhere
	HasUnread     bool // words other than kinds of streets are left that nothing explains
	MayBeOther    bool // words behind the street, or one that the base has elsewhere, may make another street of it
	IsNamesake    bool // another street was typed, or none, and this one has a like name
}

// mostMisspelt is how many letters of a long word may differ from a word of the name of the commune.
const mostMisspelt = 2

// Explain maps the typed words to the parts of a candidate's address.
func (r *Result) Explain(c *Candidate) Explanation {
	s := r.run
	x := Explanation{IsNumberTyped: c.IsTyped(), IsOtherNumber: c.chosen > 0, Rep: c.rep, IsRepKept: c.rep != "" && !c.isMissing && !c.lacksRep,
		IsCode: s.postcode.isCode(c.Commune) || s.isCited(c.Commune), IsFromPlace: c.borrowsCommune}
	x.Number = s.q.Typed(c.At &^ s.q.Reps &^ c.repAt)
	if c.IsList {
		x.Number = s.q.Typed(c.At)
	}
	cityWords := c.place.at
	unknown := s.found.unknownPlaceWords(c)
	if unknown != 0 && (cityWords == 0 || s.isOtherPlace(c, unknown)) {
		cityWords, x.IsCityUnknown = cityWords|unknown, true
	}
	named := c.otherNames & s.q.PlaceOnly &^ c.fuzzy // a former commune or a delivery office
	if cityWords == 0 && c.Street != vintage.None {
		cityWords = named
	}
	x.City = s.q.Typed(cityWords)
	x.IsCitySame = (c.sim >= confirmedSim || cityWords != 0 && cityWords == named) && !c.IsDoubted
	building := buildingWords(s.q, c)
	strange := building | s.match.complements.strangeWords(c)
	if x.IsCityUnknown {
		strange &^= unknown
	}
	aside := (s.q.Complement | s.q.Postal | strange) &^ c.repAt
	postcode := s.q.Postcode.At
	if c.postcode == nearPostcode || c.postcode == zeroPostcode {
		postcode |= s.postcode.shortAt(c.used | c.At)
	}
	if !x.IsCode || s.postcode.code != 0 && c.postcode == samePostcode && c.facet.Postcode == s.postcode.code {
		x.Postcode, x.IsCode = s.q.Typed(postcode), false
	}
	street := s.q.Words() &^ cityWords &^ unknown &^ c.terms() &^ aside &^ postcode &^ c.postcodePrefix
	if c.Street != vintage.None || !isExplained(s.q, street) {
		x.Street = s.q.Typed(street)
	}
	left := c.unread &^ unknown &^ strange &^ s.q.Corner
	x.HasUnread = !isExplained(s.q, left&^s.q.StreetTypes(left))
	x.IsStreetSame = c.isCertain && c.fuzzy == 0 && isExplained(s.q, left)
	x.Unknown, x.MayBeOther = typedWords(s.q, strange&^s.q.Complement), s.match.complements.hasBareTail(c) || c.isRespelt
	x.IsNamesake = namesakes{s.query}.has(c) || c.Street != vintage.None && namesakes{s.query}.isDivisionAlone()
	x.Complement = s.q.Typed(aside &^ country(s.q) &^ s.q.CodeSign)
	return x
}

// buildingWords are unread words before the house number. They name a building or a company there. They are empty
// if they hold a kind of street, since another street is not a complement.
func buildingWords(q *parse.Question, c *Candidate) parse.Mask {
	before := c.unread & beforeNumber(q, c) &^ q.PlaceOnly
	if !c.IsTyped() || c.Street == vintage.None || q.Distinctive(before)|before&q.Digits() == 0 || q.HasStreetType(before&^q.Phrases) {
		return 0
	}
	return before
}

// isOtherPlace reports whether words that are left unread next to the name of the commune make another name of it: Saint-Xyz is not a
// spelling of Saint-Bauzile, but Saint-Bausile is. Words next to a name that was typed in full are a part of town.
func (x *query) isOtherPlace(c *Candidate, unread parse.Mask) bool {
	unread &= x.q.PlaceOnly &^ x.q.InParens
	if c.name == vintage.None || c.sim >= literalSim {
		return false
	}
	name := x.v.BareTerms(x.v.Place(c.name).Name)
	for i, t := range x.q.Terms {
		most := min(mostMisspelt, 1+len(t.Text)/6)
		isLike := func(term uint32) bool { return text.Distance(t.Text, string(x.v.Term(term)), most) <= most }
		if x.q.Distinctive(unread).Has(i) && !slices.ContainsFunc(name, isLike) {
			return true
		}
	}
	return false
}

// country are the terms that name the country.
func country(q *parse.Question) (out parse.Mask) {
	for i := range q.Terms {
		switch q.Terms[i].Typed {
		case "france", "metropolitaine", "metropolitan":
			out |= parse.Bit(i) & q.Postal
		}
	}
	return out
}

// IsExact reports whether candidate i is confirmed and no other of its type is or fits as well. It is false if other answers
// may have been left out.
func (r *Result) IsExact(i int) bool {
	c := &r.Best[i]
	if r.IsTruncated || !c.IsConfirmed || slices.Contains(r.leftOut, c.Type == Municipality) {
		return false
	}
	for j := range r.Best {
		if of := &r.Best[j]; j != i && of.Type == c.Type && (of.IsConfirmed || of.Score >= c.Score) {
			return false
		}
	}
	return true
}

// TypedOf is how many characters of a word of a label were typed.
func (r *Result) TypedOf(t text.Term) int {
	s := r.run
	id, ok := s.v.FindTerm(t.Text)
	if !ok {
		for i := range s.q.Terms {
			if s.q.Terms[i].Typed == t.Typed {
				return t.End - t.Start
			}
		}
		return 0
	}
	most := 0
	for i := range s.q.Terms {
		switch sim := s.lexicon.sim(i, id); {
		case sim == 0:
		case s.lexicon.prefixes.Has(i) && sim == s.lexicon.prefixSimOf(i):
			most = max(most, min(t.End-t.Start, s.q.Terms[i].End-s.q.Terms[i].Start))
		default:
			return t.End - t.Start
		}
	}
	return most
}

// NamedCommune is the commune that was typed next to a street, or one that has the typed postcode. It may answer
// for an address that was not found.
func (r *Result) NamedCommune() (Candidate, bool) {
	s := r.run
	best := -1
	places := s.communes.recognize().places
	for i, p := range places {
		isNamed := p.name != vintage.None && p.isLate && p.sim >= confirmedSim
		if (isNamed || p.hasTypedCode && s.postcode.code != 0) && (best < 0 || p.rank() > places[best].rank()) {
			best = i
		}
	}
	if best < 0 || s.scope.Cited != nil && !s.scope.Cited.Has(places[best].commune) {
		return Candidate{}, false
	}
	p := places[best]
	c := Candidate{place: p, Type: Municipality, Commune: p.commune, Street: vintage.None, Row: vintage.None, IsDoubted: true}
	c.facet = vintage.Facet{Postcode: s.postcode.communePostcode(p.commune), Old: vintage.None}
	c.unread = s.q.Words() &^ p.at
	c.postcode = s.match.places.relatePostcode(&c)
	c.IsCity = s.match.isWholeCity(&c)
	e := s.ranking.evidenceOf(&c)
	e.hasStreet, e.isElsewhere = true, false
	c.Score = e.score()
	return c, true
}

// PlaceStatus is the meaning of the words that stand where a commune is expected.
type PlaceStatus uint8

const (
	PlaceUntyped    PlaceStatus = iota // no words stand there
	PlaceKnown                         // they name a commune of the vintage
	PlaceNotCovered                    // they name a commune of which the vintage has no row
	PlaceUnknown                       // they do not name a commune
)

// TypedPlace is the status of the words that a candidate leaves unread; nil stands for all words.
func (r *Result) TypedPlace(c *Candidate) PlaceStatus {
	s := r.run
	words, found := s.q.Words(), PlaceUntyped
	if c != nil {
		words = c.unread
	}
	if s.q.Distinctive(words&s.q.PlaceOnly&^s.q.Phrases) != 0 {
		found = PlaceUnknown
	}
	for _, m := range s.found.bindingMentions(words) {
		switch {
		case s.found.isCovered(m):
			return PlaceKnown
		case len(m.known) > 0:
			found = PlaceNotCovered
		}
	}
	return found
}

// IsNamedWithin reports whether the words name one of some communes where a commune stands.
func (r *Result) IsNamedWithin(communes []uint32) bool {
	s := r.run
	return slices.ContainsFunc(s.found.bindingMentions(s.q.Words()), func(m communeMention) bool {
		return slices.ContainsFunc(communes, func(c uint32) bool { return s.found.isNamed(c, m) })
	})
}
