package address

import (
	"context"
	"fmt"
)

// Source says which streets, localities and communes of a vintage may be meant by words. It is safe for concurrent use.
type Source interface {
	// Find answers all asks in one go, in their order. What it names need not fit: the engine judges it.
	Find(ctx context.Context, asks []Ask) ([]Found, error)
}

// Ask asks for what holds all of some words in its own names or in those of its commune, letter for letter or nearly so.
// The last word may be the beginning of one.
type Ask struct {
	Words       []string // as terms of the vintage are written; none asks for all that the rest lets through
	Communes    bool     // communes are asked for; else streets and localities
	Within      []uint32 // ordinals of the communes it lies in; nil: any
	Postcodes   []string // one of which its commune has; none: any
	Departments []string // one of which it lies in; none: any
	Limit       int

	whole bool // all of its kind that the question's words confirm is among what is asked for
}

// Found is what an ask led to.
type Found struct {
	Entities []uint32 // ordinals of streets, or of communes, the likeliest first
	More     bool     // there may be others
}

// finder is where the candidates of a question come from.
type finder interface {
	// Like calls yield with terms within so many edits, some more than once, until it answers false.
	Like(term string, edits int, yield func(term uint32, distance int) bool)
	// Sounding calls yield with terms that sound the same, until it answers false.
	Sounding(sound string, yield func(term uint32) bool)
	// collect judges what the words may mean as they are read by now.
	collect(q *question)
}

// find finds the candidates of a question, the best first.
func (e *Engine) find(ctx context.Context, q *question) ([]candidate, error) {
	if e.source == nil {
		return q.search(), nil
	}
	return q.searchIn(ctx, e.source)
}

// searchIn asks a source less and less strictly, until what it names cannot be bettered.
func (q *question) searchIn(ctx context.Context, s Source) ([]candidate, error) {
	n := &named{v: q.v}
	for asks := range q.rounds() {
		found, err := s.Find(ctx, asks)
		if err == nil && len(found) != len(asks) {
			err = fmt.Errorf("%d answers to %d asks", len(found), len(asks))
		}
		if err != nil {
			return nil, fmt.Errorf("find candidates: %w", err)
		}
		n.add(asks, found)
		for i, a := range asks {
			if a.whole && found[i].More {
				q.leftOut = append(q.leftOut, a.Communes)
			}
		}
		if q.reread(n); len(q.search()) > 0 && q.settled() {
			break
		}
	}
	return q.list.best, nil
}

// reread forgets what was found and how words were read loosely.
func (q *question) reread(from finder) {
	q.from, q.steps, q.loosened, q.list.best = from, maxSteps, 0, q.list.best[:0]
	for i := range q.terms {
		q.alts[i] = q.alts[i][:0]
		q.exact(i)
	}
}
