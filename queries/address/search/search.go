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
// A rewriter writes the question otherwise if its words do not all fit. Result.Explain tells what became of the words.
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
	Communes    Area           // where answers may lie; nil: anywhere
	Postcodes   []string       // that answers may have; none: any
	Departments []string       // they lie in; none: any. Communes holds their communes already
	Cited       Area           // the communes of an INSEE code that was given next to the words; nil: none was given
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
