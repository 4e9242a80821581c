// Package search finds the addresses of one vintage that a parsed question may mean. The same question has the same answer
// every time, to the last tie; how long it may take is counted in steps, not in time.
//
// How a question passes through it:
//
//	parse.Question ──> lexicon        the terms that each word may stand for: letter for letter first, loosely where that finds too little
//	               ──> recognize      the communes that words name (place), and the words that name one (mention)
//	               ──> findStreets    streets of those communes, or of all, whose names share words with the question (hit)
//	               ──> judge          one street in one place: alignment of words, house number, postcode, as a Candidate
//	               ──> fitsWords      the street is meant, and not another that shares a first name or a kind
//	               ──> admits         the address lies where it was typed
//	               ──> evidence       its score
//	               ──> shortlist      the best candidates in their order ──> Result
//
// Words here are those of the question, terms those of the vintage. A distinctive word tells streets apart: it is no kind of
// street, no stop word, no number. A fuzzy word was taken for another than it says. What the question does not settle letter
// for letter is looked for again with prefixes, then with fuzzy words, at last written otherwise (rewrites).
//
// The candidates come from the vintage's own index or from a Source outside, which names streets and communes; what either
// names is judged in the same way.
package search

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

// MaxSteps bounds the work on one question: looks at terms, places, streets and numbers count one each.
const MaxSteps = 60_000

const (
	// Accepted is the score from which on an answer is worth showing.
	Accepted = 5000
	// sureScore is the score at which nothing better is looked for.
	sureScore = 9700
	// placedScore is the score from which on the place is believed.
	placedScore = 7000
	// likelyScore is the score at which words that fit are taken at their word.
	likelyScore = 8000
)

// Index is a vintage with what is known of communes beside it. It is safe for concurrent use.
type Index struct {
	v      *vintage.Vintage
	table  *commune.Table
	source Source // nil: the vintage's own index
}

// New makes the index of a vintage. With a source the candidates come from there.
func New(v *vintage.Vintage, table *commune.Table, source Source) *Index {
	return &Index{v: v, table: table, source: source}
}

// Scope narrows a search.
type Scope struct {
	Types       []Type         // none: all
	Communes    Area           // where answers may lie; nil: anywhere
	Postcodes   []string       // that answers may have; none: any
	Departments []string       // they lie in; none: any. Communes holds their communes already
	Cited       Area           // the communes whose code was given beside the words, if one was
	Near        *vintage.Point // what lies nearer comes first among what fits about as well
	Around      Area           // the communes there
}

// Result is what a search found.
type Result struct {
	Best        []Candidate // the best first
	IsParsable  bool        // a number, a street, a postcode or a commune can be read from the words
	IsTruncated bool        // there may be other answers that were not looked at
	leftOut     []bool      // a source may have left out communes (true), or streets (false)
	run         *searcher
}

// Steps is the work that the search took.
func (r *Result) Steps() int { return r.run.budget.most - r.run.budget.steps }

// budget bounds the work on one question.
type budget struct {
	steps int
	most  int
	isCut bool // more fits than was looked at
}

// searcher is one search under way.
type searcher struct {
	x              *Index
	v              *vintage.Vintage
	q              *parse.Question
	scope          Scope
	words          *lexicon
	budget         *budget
	from           retriever
	postcode       uint32   // the typed one, where the vintage or the table has it
	near           []uint32 // else those one digit away that the vintage has
	nearCodes      Area     // their communes
	prefixCommunes Area     // the communes of the postcodes that unfinished digits may become
	mentions       []mention
	list           shortlist
	scratch        []hit
}

// retriever is where the candidates of a question come from.
type retriever interface {
	dictionary
	// collect judges what the words may mean as they are read by now.
	collect(s *searcher)
}

// Search finds the candidates of a question, the best first. An error is one of the source.
func (x *Index) Search(ctx context.Context, q *parse.Question, scope Scope) (*Result, error) {
	best, err := x.searchOne(ctx, q, scope, MaxSteps)
	if err != nil || best.run.isSettled() && !best.run.hasMixed() || best.run.budget.steps < MaxSteps/2 {
		return best, err
	}
	for _, other := range best.run.rewrites() {
		found, err := x.searchOne(ctx, other, scope, rewriteSteps)
		if err != nil {
			return nil, err
		}
		if found.run.list.top() > best.run.list.top()+rewriteCost {
			found.takeForRewritten()
			best = found
		}
	}
	return best, nil
}

func (x *Index) searchOne(ctx context.Context, q *parse.Question, scope Scope, steps int) (*Result, error) {
	s := &searcher{x: x, v: x.v, q: q, scope: scope, budget: &budget{steps: steps, most: steps, isCut: q.IsCut}, from: ownIndex{x.v}}
	s.words = newLexicon(x.v, q, s.from, s.budget)
	s.readPostcode()
	result := &Result{run: s}
	if x.source == nil {
		s.search()
	} else if err := s.searchSource(ctx, result); err != nil {
		return nil, fmt.Errorf("find candidates: %w", err)
	}
	s.preferNumbered()
	result.Best, result.IsParsable = s.list.best, s.isParsable()
	result.IsTruncated = s.budget.steps <= 0 || s.budget.isCut
	return result, nil
}

// preferNumbered lets the house number decide between streets of one commune that share a name and differ in their kind: the
// typed one does not have it, another does. Both stay as likely, so that neither stands for what was typed without a look.
func (s *searcher) preferNumbered() {
	first := s.list.first()
	if first == nil || !first.isMissing || first.IsAmbiguous || first.IsList || s.q.Distinctive(first.used) == 0 {
		return
	}
	for i := range s.list.best {
		if c := &s.list.best[i]; s.isNumberedTwin(c, first) {
			found := *c
			found.Score, found.Bonus = first.Score, first.Bonus
			s.list.best = slices.Insert(slices.Delete(s.list.best, i, i+1), 0, found)
			return
		}
	}
}

// isNumberedTwin says whether a candidate bears the typed number on a street that differs from another in its kind alone.
func (s *searcher) isNumberedTwin(c, of *Candidate) bool {
	if c.Type != HouseNumber || c.Commune != of.Commune || c.lacksRep || c.IsAmbiguous || c.fuzzy != of.fuzzy {
		return false
	}
	return c.isWhollyTyped && of.isWhollyTyped && s.q.Distinctive(c.used) == s.q.Distinctive(of.used) && c.hasUntypedNumber == of.hasUntypedNumber
}

// search looks more and more loosely, until nothing better can be found. What can be read letter for letter is not read
// otherwise.
func (s *searcher) search() {
	for i := range s.q.Terms {
		if len(s.words.alternatives[i]) == 0 && i != s.q.Unfinished && !s.q.Completing {
			s.words.addFuzzy(i)
		}
	}
	s.from.collect(s)
	if s.q.Completing && !s.isSettled() {
		if s.words.addPrefixes(s.q.Words()) {
			s.from.collect(s)
		}
		s.words.addFuzzyAll(s.unknown())
	}
	if !s.isSettled() && s.words.addFuzzyAll(s.unused()) {
		s.from.collect(s)
	}
	if s.list.top() < s.doubtful() && s.words.addFuzzyAll(s.q.Distinctive(s.q.Words())) {
		s.from.collect(s)
	}
}

// unknown are the words that stand for nothing.
func (s *searcher) unknown() (out parse.Mask) {
	for i := range s.q.Terms {
		if len(s.words.alternatives[i]) == 0 && !s.words.prefixes.Has(i) {
			out |= parse.Bit(i)
		}
	}
	return out
}

// doubtful is the score below which words that fit are not taken at their word. Who is still typing will see.
func (s *searcher) doubtful() int32 {
	if s.q.Completing {
		return placedScore
	}
	return likelyScore
}

// isSettled says whether no looser reading can be better: all is found, or all words are and only the number, the postcode
// or the name of the commune is another.
func (s *searcher) isSettled() bool {
	return s.list.top() >= sureScore || s.list.top() >= likelyScore && s.unused()&^s.words.fuzzied == 0
}

// unused are the words that the best candidate does not hold as they are.
func (s *searcher) unused() parse.Mask {
	b := s.list.first()
	if b == nil {
		return s.q.Words()
	}
	matched := b.used&^b.fuzzy | b.otherNames&^b.fuzzy | b.terms() | b.postcodePrefix
	if b.sim >= literalSim {
		matched |= b.at
	}
	return s.q.Words() &^ matched &^ s.q.Complement
}

// isParsable says whether anything of an address was typed.
func (s *searcher) isParsable() bool {
	if s.q.Postcode.Code != 0 || s.scope.Cited != nil || s.q.HasStreetType(s.q.All) || len(s.mentions) > 0 {
		return true
	}
	for i := range s.q.Terms {
		if s.q.Terms[i].Digits || len(s.words.alternatives[i]) > 0 {
			return true
		}
	}
	return false
}

// wantsType says whether answers of a type are let through.
func (s *searcher) wantsType(t Type) bool {
	if len(s.scope.Types) == 0 {
		return true
	}
	for _, wanted := range s.scope.Types {
		if wanted == t {
			return true
		}
	}
	return false
}

// Area is where answers may lie: communes by their ordinals, in their order. A nil one is everywhere.
type Area []uint32

// NewArea makes an area of ordinals that is no nil one.
func NewArea(ordinals []uint32) Area {
	slices.Sort(ordinals)
	return append(Area{}, slices.Compact(ordinals)...)
}

// Has says whether a commune lies in the area.
func (a Area) Has(commune uint32) bool {
	if a == nil {
		return true
	}
	_, ok := slices.BinarySearch(a, commune)
	return ok
}

// ranges are the streets of the area.
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
