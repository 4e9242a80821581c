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
// A word is one of the question, a term one of the vintage. A distinctive word tells streets apart: it is no kind of street, no
// stop word and no number. A fuzzy word is read as a term that it does not spell. Likeness (sim) is in hundredths. A weight says
// how much a word counts. A candidate is sound when it confirms every typed word. Words that do not all fit as typed are read
// as prefixes, then as misspelt, and at last the question is written otherwise (rewrites).
// An unfinished line is read strictly before all that (complete): it finds what holds every typed word.
//
// The candidates come from the vintage's own index or from a Source outside, which names streets and communes; what either
// names is judged in the same way.
package search

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
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

// Index is a vintage with what is known of communes beside it. It is safe for concurrent use.
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
	Communes    Area           // where answers may lie; nil: anywhere
	Postcodes   []string       // that answers may have; none: any
	Departments []string       // they lie in; none: any. Communes holds their communes already
	Cited       Area           // the communes of an INSEE code that was given beside the words; nil: none was given
	Near        *vintage.Point // of answers that fit about as well, the one nearer to this point comes first
	Around      Area           // the communes around that point
}

// Result is what a search found.
type Result struct {
	Best        []Candidate // the best first
	IsParsable  bool        // a number, a street, a postcode or a commune can be read from the words
	IsTruncated bool        // there may be other answers that were not looked at
	leftOut     []bool      // for each ask that a source answered in part: whether communes (true) or streets (false) may be missing
	run         *searcher
}

// Steps is the work on the reading that gave the result. Other readings that were tried do not count.
func (r *Result) Steps() int { return r.run.budget.total - r.run.budget.left }

// budget bounds the work on one question.
type budget struct {
	left  int  // steps that may still be taken
	total int  // steps at the beginning
	isCut bool // some of what fits was not looked at
}

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

// searcher is the search for one reading of a question.
type searcher struct {
	*query
	communes    recognizer
	streets     *streetFinder
	areas       areaFinder
	found       recognition
	named       *namedEntities // by a source; nil: the vintage has an index of its own
	match       *matcher
	ranking     *ranker
	isCompleted bool // an unfinished line has answers that hold all its words
}

// collect judges the candidates of the current readings of the words.
func (s *searcher) collect() {
	s.recognize()
	if s.named != nil {
		s.collectNamed()
	} else {
		s.collectOwn()
	}
}

// recognize finds the communes that the question may mean by the current readings of its words.
func (s *searcher) recognize() {
	s.found = s.communes.recognize()
	s.match.places.found = s.found
}

// Search finds the candidates of a question, the best first. Where the words do not all fit and half of the steps
// are left, it also tries the question written otherwise. A rewriting must score clearly better, because it is not
// what was typed. An unfinished line is also read without a last word that begins a part of a building. Before
// each reading it gives way to other requests. An error is one of the source, or of worker.Yield.
func (x *Index) Search(ctx context.Context, q *parse.Question, scope Scope) (*Result, error) {
	best, err := x.searchCounted(ctx, q, scope, MaxSteps)
	if err != nil || best.run.isCompleted {
		return best, err
	}
	if found, ok, err := x.searchWithoutComplement(ctx, q, scope, best); ok || err != nil {
		return found, err
	}
	w := rewriter{best.run.query, best.run.found, best.run.ranking}
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

// How long it takes, about, to prepare a reading or its rewritings, for each word, and what a step of a reading takes.
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
	communes, streets, ranking := recognizer{c}, &streetFinder{query: c}, &ranker{query: c}
	s := &searcher{query: c, communes: communes, streets: streets, areas: areaFinder{streets, communes}, match: newMatcher(c, ranking), ranking: ranking}
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
	ranking.dropDoubleCorrections()
	ranking.preferNumbered()
	result.Best, result.IsParsable = ranking.list.best, s.isParsable()
	result.IsTruncated = s.budget.left <= 0 || s.budget.isCut
	return result, nil
}

// search reads the words more and more loosely: as typed, as prefixes, as misspelt. It stops at the first reading
// whose best candidate settles the question, since a looser one adds only wrong candidates. Words that the vintage
// does not have are read as misspelt from the start, unless the user is still typing.
func (s *searcher) search() {
	for i := range s.q.Terms {
		if len(s.lexicon.alternatives[i]) == 0 && i != s.q.Unfinished && !s.q.Completing {
			s.lexicon.addFuzzy(i)
		}
	}
	s.collect()
	if s.q.Completing && !s.ranking.isSettled() {
		if s.lexicon.addPrefixes(s.q.Words()) {
			s.collect()
		}
		s.lexicon.addFuzzyAll(s.unknownWords())
	}
	if !s.ranking.isSettled() && s.lexicon.addFuzzyAll(s.ranking.unusedWords()) {
		s.collect()
	}
	if s.ranking.list.top() < doubtScore(s.q) && s.lexicon.addFuzzyAll(s.q.Distinctive(s.q.Words())) {
		s.collect()
	}
}

// unknownWords are the words that stand for no term of the vintage.
func (s *searcher) unknownWords() (out parse.Mask) {
	for i := range s.q.Terms {
		if len(s.lexicon.alternatives[i]) == 0 && !s.lexicon.prefixes.Has(i) {
			out |= parse.Bit(i)
		}
	}
	return out
}

// doubtScore is the score below which even words that fit as typed are read as misspelt. It is lower for an
// unfinished line, because the user sees the answers and types on.
func doubtScore(q *parse.Question) int32 {
	if q.Completing {
		return placedScore
	}
	return likelyScore
}

// isSettled says whether no looser reading can be better. The best candidate is nearly perfect, or it explains all
// words that have not been read as misspelt yet; then only its number, postcode or commune differs.
func (r *ranker) isSettled() bool {
	return r.list.top() >= sureScore || r.list.top() >= likelyScore && r.unusedWords()&^r.lexicon.fuzzied == 0
}

// unusedWords are the words that the best candidate does not explain as they were typed.
func (r *ranker) unusedWords() parse.Mask {
	b := r.list.first()
	if b == nil {
		return r.q.Words()
	}
	matched := b.used&^b.fuzzy | b.otherNames&^b.fuzzy | b.terms() | b.postcodePrefix
	if b.sim >= literalSim {
		matched |= b.at
	}
	return r.q.Words() &^ matched &^ r.q.Complement
}

// isParsable says whether the line holds anything that an address may consist of.
func (s *searcher) isParsable() bool {
	if s.q.Postcode.Code != 0 || s.scope.Cited != nil || s.q.HasStreetType(s.q.All) || len(s.found.mentions) > 0 {
		return true
	}
	for i := range s.q.Terms {
		if s.q.Terms[i].Digits || len(s.lexicon.alternatives[i]) > 0 || i == s.q.Unfinished && s.lexicon.prefixes.Has(i) {
			return true
		}
	}
	return false
}

// wantsType says whether answers of a type are let through.
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

// Area is a set of communes by their ordinals, in ascending order. A nil area is everywhere; an empty one is
// nowhere.
type Area []uint32

// NewArea makes an area of ordinals. It is never nil, so no ordinals make an area that is nowhere.
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
