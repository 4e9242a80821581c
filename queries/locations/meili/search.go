// Package meili searches sites in the index that projections/searchindex/meili fills on a Meilisearch server (see schemas/siteindex
// for its content). The server only finds and orders ids. Every site of an answer is read from the read model and checked again, so no
// site of another account can be shown, whatever the index holds.
//
//	search.Query ── buildSubqueries ──► subquery… ── fetchHits ──► serverHit… ── collectCandidates ──► candidateSet
//	   the ways to read the words          one request to the server          in the order of the query    │
//	                                                                                                        ▼
//	search.Result ◄── search.Hit ◄── verifyRow ◄── table.Site… ◄── loadRows ◄───────────────────────── readPage
//
// If a page does not fill up, the next attempt looks farther (scopeFor).
package meili

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/eventstore/sqldb"
	"lieudit/queries/locations/search"
	"lieudit/queries/worker"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/siteindex"
	"lieudit/schemas/table"
)

// Engine searches the index of sites on a server. It is safe for concurrent use.
type Engine struct {
	server   meilisearch.ServiceManager
	registry *sqldb.Registry
	timeout  time.Duration
	name     atomic.Pointer[string] // of the index; nil until the log is known
}

// New returns an engine on a server for the sites in a registry's read model. It does not contact the server.
func New(s meiliclient.Server, registry *sqldb.Registry) *Engine {
	x := &Engine{server: s.Client(), registry: registry, timeout: cmp.Or(s.Timeout, siteindex.SearchTimeout)}
	if s.Index != "" {
		x.name.Store(&s.Index)
	}
	return x
}

// Search answers a query as search.Engine says. It fails with search.ErrStaleIndex while the index is being filled. All attempts
// together take at most the engine's timeout. Each looks farther than the one before, until the page is full or everything on the
// server was looked at.
func (x *Engine) Search(ctx context.Context, q search.Query) (search.Result, error) {
	s, err := x.newSearch(ctx, q)
	if err != nil || len(s.subqueries) == 0 {
		return search.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	if s.indexName, err = x.indexName(ctx); err != nil || s.indexName == "" {
		return search.Result{}, err
	}
	for attempt := 0; ; attempt++ {
		candidates, err := s.collectCandidates(ctx, s.scopeFor(attempt))
		if err != nil {
			return search.Result{}, err
		}
		r, isFull, err := s.readPage(ctx, candidates)
		if isFull || candidates.isComplete || err != nil {
			return r, err
		}
	}
}

// Count counts as search.Engine says. It reads the row of every site that the server finds.
func (x *Engine) Count(ctx context.Context, q search.Query, facets []search.Facet) (search.Counts, error) {
	q.After = ""
	s, err := x.newSearch(ctx, q)
	counter := search.NewCounter(facets)
	if err != nil || len(s.subqueries) == 0 {
		return counter.Counts(), err
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	if s.indexName, err = x.indexName(ctx); err != nil || s.indexName == "" {
		return counter.Counts(), err
	}
	found, err := s.collectCandidates(ctx, searchScope{limit: siteindex.MaxAccountSites})
	if err == nil {
		err = s.countCandidates(ctx, found.candidates, counter)
	}
	return counter.Counts(), err
}

// rowsAtOnce is how many rows are read at once to be counted.
const rowsAtOnce = 1000

// countCandidates counts each candidate that is part of the answer once.
func (s *indexSearch) countCandidates(ctx context.Context, candidates []candidate, counter *search.Counter) error {
	seen := map[string]bool{}
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		isRepeated := seen[c.rowID]
		seen[c.rowID] = true
		return isRepeated
	})
	for chunk := range slices.Chunk(candidates, rowsAtOnce) {
		rows, err := s.loadRows(ctx, chunk)
		if err != nil {
			return err
		}
		for _, row := range rows {
			h, ok, err := s.verifyRow(row)
			if err != nil {
				return err
			}
			if ok {
				counter.Add(h.Site)
			}
		}
	}
	return nil
}

// newSearch checks a query, and that its account may be shown. If no site can answer the query, the search has neither subqueries nor
// the index's name.
func (x *Engine) newSearch(ctx context.Context, q search.Query) (*indexSearch, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	worker.Release(ctx) // neither the server nor the database may answer
	after, hasCursor, err := q.ParseCursor()
	if err != nil {
		return nil, err
	}
	if err := x.checkAccount(ctx, q.Account); err != nil {
		return nil, fmt.Errorf("sites of %s: %w", q.Account, err)
	}
	s := &indexSearch{Query: q, engine: x, order: q.EffectiveSort(), encoder: newWordEncoder(q.Account), moment: locations.NewMoment(q.OpenAt)}
	if hasCursor {
		s.after = &after
	}
	s.subqueries = s.buildSubqueries()
	return s, nil
}

// checkAccount fails while nothing of the account may be shown. Otherwise only reading a row would fail, and no row is read if the
// server finds nothing.
func (x *Engine) checkAccount(ctx context.Context, account string) error {
	return x.registry.ReadAccount(ctx, table.LocationsModel, account, func(*sqldb.DB) error { return nil })
}

// indexName returns the name of the index on the server, or "" while the log is empty, when there is no index.
func (x *Engine) indexName(ctx context.Context) (string, error) {
	if name := x.name.Load(); name != nil {
		return *name, nil
	}
	log, err := x.registry.LogID(ctx, table.LocationsModel)
	if err != nil {
		return "", fmt.Errorf("index of sites: %w", err)
	}
	if log == "" {
		return "", nil
	}
	name := siteindex.Name(log)
	x.name.Store(&name)
	return name, nil
}

// indexSearch is one query. Its fields do not change while it runs.
type indexSearch struct {
	search.Query
	engine     *Engine
	indexName  string
	order      search.Sort
	encoder    wordEncoder
	moment     *locations.Moment // of OpenAt
	after      *search.SortKey   // nil on the first page
	subqueries []subquery
}

// candidate is a site that the server found, with the sort key that follows from the server's data.
type candidate struct {
	rowID   string
	sortKey search.SortKey
}

// candidateSet holds the first candidates in order, and whether they are all there are. Sites that the server found beyond them are
// not in the set, because sites that it did not return may come before those.
type candidateSet struct {
	candidates []candidate
	isComplete bool
}

// searchScope is how far an attempt looks.
type searchScope struct {
	limit    int     // candidates of each subquery
	radius   float64 // metres from the center; 0 for everywhere
	sameRank bool    // only sites after the last one of the page before by name, and of no higher rank
}

const (
	spareCandidates = 8     // candidates beyond the page size, because some may have changed since they were indexed
	closedShare     = 16    // factor on the candidates if the query asks for open sites, because the index does not hold opening hours
	wideningFactor  = 4     // of the radius, from one attempt to the next; its square for the limit
	firstRadius     = 1_000 // metres
	lastRadius      = 2_000_000
)

// scopeFor returns how far an attempt looks; the first attempt is 0. Each looks farther than the one before, and the last one
// everywhere.
//
// By distance, the radius grows, because the server cannot sort by distance without looking at the sites of all accounts. By name or
// relevance, the number of candidates grows, and a later page by relevance first tries the sites of the same rank. If the server does
// not support the order, everything that matches is fetched at once.
func (s *indexSearch) scopeFor(attempt int) searchScope {
	limit := s.pageCandidates()
	switch {
	case s.order == search.ByDistance:
		radius := float64(firstRadius)
		for ; attempt > 0 || s.after != nil && radius < s.after.Distance && radius <= lastRadius; radius *= wideningFactor {
			attempt = max(0, attempt-1)
		}
		if radius <= lastRadius && (s.Radius == 0 || radius < s.Radius) {
			return searchScope{limit: siteindex.MaxAccountSites, radius: radius}
		}
		return searchScope{limit: siteindex.MaxAccountSites}
	case !s.usesServerOrder():
		return searchScope{limit: siteindex.MaxAccountSites}
	case s.order == search.ByRelevance && s.after != nil && attempt == 0:
		return searchScope{limit: 2 * limit, sameRank: true}
	}
	for ; attempt > 0 && limit < siteindex.MaxAccountSites; attempt-- {
		limit *= wideningFactor * wideningFactor
	}
	return searchScope{limit: min(limit, siteindex.MaxAccountSites)}
}

// pageCandidates returns how many candidates the first attempt at a page looks at, and how many rows are read at once.
func (s *indexSearch) pageCandidates() int {
	if s.OpenAt.IsZero() {
		return s.Limit + spareCandidates
	}
	return closedShare * (s.Limit + spareCandidates)
}

// usesServerOrder reports whether the server's order is that of the query. If it is not, all hits are sorted here.
func (s *indexSearch) usesServerOrder() bool {
	if s.order == search.ByName {
		return s.TrimmedText() == ""
	}
	return s.order == search.ByRelevance && s.Center == nil
}

// collectCandidates asks the server for candidates and sorts them. It leaves out those that may not be the first of
// all: beyond the last candidate of a subquery that has more (the horizon), and beyond the radius. A site may be among
// the candidates more than once, by several subqueries; readPage takes the first.
func (s *indexSearch) collectCandidates(ctx context.Context, scope searchScope) (candidateSet, error) {
	hitsBySubquery, err := s.fetchHits(ctx, scope)
	if err != nil {
		return candidateSet{}, err
	}
	f := candidateSet{isComplete: scope.radius == 0 && !scope.sameRank}
	var horizon *search.SortKey
	for i, hits := range hitsBySubquery {
		var last search.SortKey
		for _, h := range hits {
			c, ok := s.candidateOf(s.subqueries[i], h)
			if ok && (scope.radius == 0 || c.sortKey.Distance <= scope.radius) && (!scope.sameRank || c.sortKey.Rank <= s.after.Rank) {
				f.candidates = append(f.candidates, c)
			}
			last = c.sortKey
		}
		if len(hits) == scope.limit {
			f.isComplete = false
			if horizon == nil || last.Compare(*horizon) < 0 {
				horizon = &last
			}
		}
	}
	slices.SortFunc(f.candidates, func(a, b candidate) int { return a.sortKey.Compare(b.sortKey) })
	if horizon != nil {
		n, _ := slices.BinarySearchFunc(f.candidates, *horizon, func(c candidate, p search.SortKey) int {
			if c.sortKey.Compare(p) <= 0 {
				return -1
			}
			return 1
		})
		f.candidates = f.candidates[:n]
	}
	return f, nil
}

// candidateOf returns the candidate of a hit, or false if the document's id is not that of a site. The parts of the sort key that the
// order does not use stay zero.
func (s *indexSearch) candidateOf(sub subquery, hit serverHit) (candidate, bool) {
	row, referential, externalID, ok := siteindex.ParseDocumentID(hit.ID)
	c := candidate{row, search.SortKey{Name: hit.FoldedName, ExternalID: externalID, Referential: referential}}
	if s.order == search.ByRelevance {
		c.sortKey.Rank = sub.rank(hit)
	}
	if s.order != search.ByName && s.Center != nil {
		c.sortKey.Distance = math.Inf(1)
		if hit.Lat != nil && hit.Lon != nil {
			c.sortKey.Distance = geo.Distance(*s.Center, geo.Point{Lat: *hit.Lat, Lon: *hit.Lon})
		}
	}
	return c, ok
}

// readPage returns the page after the cursor. It reads candidates from the read model a page at a time, until the page is full. isFull
// reports whether the page is full and a site is known to follow. The cursor is made of the sort key that the server gave, not of the
// row's: it must compare with those of the next page's candidates.
func (s *indexSearch) readPage(ctx context.Context, f candidateSet) (r search.Result, isFull bool, err error) {
	var last search.SortKey
	seen := map[string]bool{}
	pending := make([]candidate, 0, s.pageCandidates())
	flushPending := func() error {
		rows, err := s.loadRows(ctx, pending)
		for _, c := range pending {
			row, ok := rows[c.rowID]
			if !ok || isFull || err != nil {
				continue
			}
			var h search.Hit
			if h, ok, err = s.verifyRow(row); !ok || err != nil {
				continue
			}
			if isFull = len(r.Hits) == s.Limit; isFull {
				r.Next = s.FormatCursor(last)
				continue
			}
			r.Hits, last = append(r.Hits, h), c.sortKey
		}
		pending = pending[:0]
		return err
	}
	for _, c := range f.candidates {
		if seen[c.rowID] {
			continue
		}
		seen[c.rowID] = true // even if it is before the cursor: another subquery may find it again after it
		if s.after != nil && c.sortKey.Compare(*s.after) <= 0 {
			continue
		}
		if pending = append(pending, c); s.OpenAt.IsZero() && len(r.Hits)+len(pending) > s.Limit || len(pending) == cap(pending) {
			if err := flushPending(); isFull || err != nil {
				return r, isFull, err
			}
		}
	}
	return r, isFull, flushPending()
}

// loadRows returns the candidates' rows by id. Rows of sites that are gone are missing.
func (s *indexSearch) loadRows(ctx context.Context, candidates []candidate) (map[string]table.Site, error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	keys := make([]string, len(candidates))
	for i, c := range candidates {
		keys[i] = c.rowID
	}
	rows := make(map[string]table.Site, len(keys))
	err := s.engine.registry.ReadAccount(ctx, table.LocationsModel, s.Account, func(db *sqldb.DB) error {
		loaded, err := sqldb.LoadByKeys(ctx, db, table.Sites, keys)
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
