package meili

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"lieudit/queries/places/finder"
	"lieudit/schemas/table"
)

// Search answers a question as finder.Engine says.
func (x *Index) Search(ctx context.Context, q finder.Query) (finder.Result, error) {
	if err := q.Check(); err != nil {
		return finder.Result{}, err
	}
	after, paged, err := q.Place()
	if err != nil {
		return finder.Result{}, err
	}
	if err := x.shown(ctx, q.Account); err != nil {
		return finder.Result{}, fmt.Errorf("sites of %s: %w", q.Account, err)
	}
	s := &search{Query: q, x: x, order: q.Order(), words: vocabularyOf(q.Account)}
	if paged {
		s.after = &after
	}
	if s.sources = s.ways(); len(s.sources) == 0 {
		return finder.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, x.patience)
	defer cancel()
	if s.index, err = x.Name(ctx); errors.Is(err, errEmpty) {
		return finder.Result{}, nil
	} else if err != nil {
		return finder.Result{}, err
	}
	for n := 0; ; n++ {
		found, err := s.gather(ctx, s.reach(n))
		if err != nil {
			return finder.Result{}, err
		}
		r, full, err := s.page(ctx, found)
		if full || found.whole || err != nil {
			return r, err
		}
	}
}

// shown is nil where something may be shown of an account, whatever the server finds: where it finds nothing, no row is
// read that would tell.
func (x *Index) shown(ctx context.Context, account string) error {
	return x.shelf.ReadAccount(ctx, table.Places, account, func(*table.DB) error { return nil })
}

// search is one question.
type search struct {
	finder.Query
	x       *Index
	index   string
	order   finder.Sort
	words   vocabulary
	after   *finder.Place // nil on the first page
	sources []source
}

// candidate is a site that the server found, and where it stands in the order by what the server knows of it.
type candidate struct {
	row   string
	place finder.Place
}

// findings are the first candidates of all, in their order, and whether they are all.
type findings struct {
	candidates []candidate
	whole      bool
}

// reach is how far a question looks at once.
type reach struct {
	limit  int     // candidates of each source
	radius float64 // metres from the center; 0 for everywhere
	equal  bool    // only at what answers as well as the last of the page before, and comes after it by name
}

const (
	everything = 1_000_000 // no account has more sites
	spare      = 8         // candidates more than there is room for: some are not what the index says any more
	wider      = 4         // times, from one attempt to the next
	firstRing  = 1_000     // metres
	lastRing   = 2_000_000
)

// reach is how far the n-th attempt looks, each farther than the one before, the last everywhere.
func (s *search) reach(n int) reach {
	limit := s.Limit + spare
	switch {
	case s.order == finder.ByDistance:
		radius := float64(firstRing)
		for ; n > 0 || s.after != nil && radius < s.after.Distance && radius <= lastRing; radius *= wider {
			n = max(0, n-1)
		}
		if radius <= lastRing && (s.Radius == 0 || radius < s.Radius) {
			return reach{limit: everything, radius: radius}
		}
		return reach{limit: everything}
	case !s.native():
		return reach{limit: everything}
	case s.order == finder.ByRelevance && s.after != nil && n == 0:
		return reach{limit: 2 * limit, equal: true}
	}
	for ; n > 0 && limit < everything; n-- {
		limit *= wider * wider
	}
	return reach{limit: min(limit, everything)}
}

// native says whether the server's order is that of the question. Where it is not, all that is found is put in order here.
func (s *search) native() bool {
	if s.order == finder.ByName {
		return s.Asked() == ""
	}
	return s.order == finder.ByRelevance && s.Center == nil
}

// gather asks the server for candidates. What may be incomplete is left out: beyond the last candidate of a source that has more,
// and beyond the radius that was looked within.
func (s *search) gather(ctx context.Context, far reach) (findings, error) {
	answers, err := s.ask(ctx, far)
	if err != nil {
		return findings{}, err
	}
	f := findings{whole: far.radius == 0 && !far.equal}
	var horizon *finder.Place
	for i, hits := range answers {
		var last finder.Place
		for _, h := range hits {
			c, ok := s.candidate(s.sources[i], h)
			if ok && (far.radius == 0 || c.place.Distance <= far.radius) && (!far.equal || c.place.Rank == s.after.Rank) {
				f.candidates = append(f.candidates, c)
			}
			last = c.place
		}
		if len(hits) == far.limit {
			f.whole = false
			if horizon == nil || last.Compare(*horizon) < 0 {
				horizon = &last
			}
		}
	}
	slices.SortFunc(f.candidates, func(a, b candidate) int { return a.place.Compare(b.place) })
	if horizon != nil {
		n, _ := slices.BinarySearchFunc(f.candidates, *horizon, func(c candidate, p finder.Place) int {
			if c.place.Compare(p) <= 0 {
				return -1
			}
			return 1
		})
		f.candidates = f.candidates[:n]
	}
	return f, nil
}

// candidate is what a source found.
func (s *search) candidate(from source, h found) (candidate, bool) {
	row, referential, externalID, ok := h.parts()
	c := candidate{row, finder.Place{Name: h.Sorted, ExternalID: externalID, Referential: referential}}
	if s.order == finder.ByRelevance {
		c.place.Rank = from.rank(h)
	}
	if s.order != finder.ByName && s.Center != nil {
		c.place.Distance = math.Inf(1)
		if h.Lat != nil && h.Lon != nil {
			c.place.Distance = finder.Distance(*s.Center, finder.Point{Lat: *h.Lat, Lon: *h.Lon})
		}
	}
	return c, ok
}

// page is the page after the cursor, and whether it is full and more is known to follow. Candidates are read from the
// read model as far as there is room.
func (s *search) page(ctx context.Context, f findings) (r finder.Result, full bool, err error) {
	var last finder.Place
	seen := map[string]bool{}
	waiting := make([]candidate, 0, s.Limit+spare)
	flush := func() error {
		rows, err := s.rows(ctx, waiting)
		for _, c := range waiting {
			row, ok := rows[c.row]
			if !ok || full || err != nil {
				continue
			}
			var h finder.Hit
			if h, ok, err = s.judge(row); !ok || err != nil {
				continue
			}
			if full = len(r.Hits) == s.Limit; full {
				r.Next = s.Cursor(last)
				continue
			}
			r.Hits, last = append(r.Hits, h), c.place
		}
		waiting = waiting[:0]
		return err
	}
	for _, c := range f.candidates {
		if seen[c.row] || s.after != nil && c.place.Compare(*s.after) <= 0 {
			continue
		}
		seen[c.row] = true
		if waiting = append(waiting, c); len(r.Hits)+len(waiting) > s.Limit {
			if err := flush(); full || err != nil {
				return r, full, err
			}
		}
	}
	return r, full, flush()
}

// rows are the candidates' rows by their ids.
func (s *search) rows(ctx context.Context, candidates []candidate) (map[string]table.Site, error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	keys := make([]string, len(candidates))
	for i, c := range candidates {
		keys[i] = c.row
	}
	rows := make(map[string]table.Site, len(keys))
	err := s.x.shelf.ReadAccount(ctx, table.Places, s.Account, func(db *table.DB) error {
		loaded, err := table.Load(ctx, db, table.Sites, keys)
		for _, r := range loaded {
			rows[r.ID] = r
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sites of %s: %w", s.Account, errors.Join(err, ctx.Err()))
	}
	return rows, nil
}
