package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"time"

	"lieudit/queries/locations/search"
	"lieudit/queries/worker"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
)

// indexSearch is one query on one index.
type indexSearch struct {
	search.Query
	ctx     context.Context
	index   *index
	buffers *rankBuffers
	order   search.Sort
	after   *search.SortKey // nil on the first page
	bounds  *search.Box     // contains everything that is near enough, and narrows as nearer sites are found; nil for everywhere
	decoded int             // sites so far
}

// candidate is a site that was found. Candidates are compared by their fields in turn.
type candidate struct {
	rank     uint32
	distance float64 // 0 if the order does not use it
	ordinal  uint32
}

func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance), cmp.Compare(a.ordinal, b.ordinal))
}

// findSites builds the page of the first sites that a query finds.
func (s *indexSearch) findSites() (search.Result, error) {
	s.rankSites()
	return s.buildPage(s.topCandidates())
}

// decodeSite decodes a site of the index. Every sitesToYield sites it yields to other requests; all other work on an account's
// sites together takes less than a millisecond.
func (s *indexSearch) decodeSite(n uint32) (site locations.Site, err error) {
	const (
		sitesToYield = 64
		decodeWork   = 5 * time.Microsecond // about
	)
	if s.decoded++; s.decoded%sitesToYield == 0 {
		if err := worker.Yield(s.ctx, sitesToYield*decodeWork); err != nil {
			return site, err
		}
	}
	return s.index.record(n).decodeSite(s.index.dictionary)
}

// countSites counts all sites of the index that a query finds.
func (s *indexSearch) countSites(facets []search.Facet) (search.Counts, error) {
	s.rankSites()
	c := search.NewCounter(facets)
	for n, rank := range s.buffers.ranks {
		switch {
		case rank == notMatched || !s.isWithinArea(uint32(n)):
		case !c.NeedsValues():
			c.CountSites(1)
		default:
			site, err := s.decodeSite(uint32(n))
			if err != nil {
				return search.Counts{}, err
			}
			c.Add(site)
		}
	}
	return c.Counts(), nil
}

// rankSites ranks all sites of the index, and drops those that a filter excludes. isWithinArea checks their positions.
func (s *indexSearch) rankSites() {
	if text := s.TrimmedText(); text != "" {
		s.buffers.rankByText(s.index, text, s.MatchExternalIDs)
	} else {
		s.buffers.ranks = fillSlice(s.buffers.ranks, len(s.index.recordRefs), 0)
	}
	if s.Referential != "" {
		s.buffers.keepOnly(s.index, referentialFacet(s.Referential))
	}
	for _, tag := range s.Tags {
		s.buffers.keepOnly(s.index, tagFacet(tag))
	}
	if !s.OpenAt.IsZero() {
		s.buffers.keepOpen(s.index, locations.NewMoment(s.OpenAt))
	}
	if s.Center != nil && s.Radius > 0 {
		around := search.BoxAround(*s.Center, s.Radius)
		s.bounds = &around
	}
}

// topCandidates returns the first sites of the page in order, and one beyond the page if there are more. Ordinals are in the
// order of names, so by name it begins after the cursor and stops when the page is full.
func (s *indexSearch) topCandidates() []candidate {
	top := topK{k: s.Limit + 1}
	var after candidate
	if s.after != nil {
		after = candidate{uint32(s.after.Rank), s.after.Distance, s.index.firstAfter(*s.after)}
	}
	first := uint32(0)
	if s.order == search.ByName {
		first = after.ordinal
	}
	for n := first; int(n) < len(s.index.recordRefs); n++ {
		if s.buffers.ranks[n] == notMatched || !s.isWithinArea(n) {
			continue
		}
		if p := s.candidate(n); s.after == nil || p.compare(after) >= 0 {
			if top.offer(p) && len(top.candidates) == top.k && !s.mayImprove(top.candidates[0]) {
				break
			}
		}
	}
	slices.SortFunc(top.candidates, candidate.compare)
	return top.candidates
}

// candidate returns the candidate of a matching site, with the values that the order uses.
func (s *indexSearch) candidate(n uint32) candidate {
	p := candidate{ordinal: n}
	if s.order == search.ByRelevance {
		p.rank = s.buffers.ranks[n]
	}
	if s.order != search.ByName && s.Center != nil {
		p.distance = s.distanceTo(n)
	}
	return p
}

// mayImprove reports whether a later site can come before the last one of a full page. In the order of distance it narrows the
// bounds to positions nearer than that one.
func (s *indexSearch) mayImprove(last candidate) bool {
	if s.order == search.ByDistance && !math.IsInf(last.distance, 1) {
		bounds := search.BoxAround(*s.Center, last.distance)
		s.bounds = &bounds
	}
	return s.order != search.ByName
}

// isWithinArea reports whether a site is in the query's box and radius, and within bounds.
func (s *indexSearch) isWithinArea(n uint32) bool {
	if s.Box == nil && s.bounds == nil {
		return true
	}
	point := geo.Point{Lat: s.index.lat[n], Lon: s.index.lon[n]}
	return (s.Box == nil || s.Box.Contains(point)) && (s.bounds == nil || s.bounds.Contains(point)) &&
		(s.Radius == 0 || geo.Distance(*s.Center, point) <= s.Radius)
}

// distanceTo returns the distance to the center, +Inf for a site without a position.
func (s *indexSearch) distanceTo(n uint32) float64 {
	if math.IsNaN(s.index.lat[n]) {
		return math.Inf(1)
	}
	return geo.Distance(*s.Center, geo.Point{Lat: s.index.lat[n], Lon: s.index.lon[n]})
}

// buildPage returns the page of candidates. One candidate beyond the page size means that there is a next page.
func (s *indexSearch) buildPage(candidates []candidate) (r search.Result, err error) {
	if len(candidates) > s.Limit {
		candidates = candidates[:s.Limit]
		last := candidates[s.Limit-1]
		sortKey := s.index.sortKey(last.ordinal)
		sortKey.Rank, sortKey.Distance = uint64(last.rank), last.distance
		r.Next = s.FormatCursor(sortKey)
	}
	r.Hits = make([]search.Hit, len(candidates))
	for i, p := range candidates {
		h := &r.Hits[i]
		if h.Site, err = s.decodeSite(p.ordinal); err != nil {
			return search.Result{}, err
		}
		if s.Center != nil && h.Site.Lat != nil {
			h.Distance = s.distanceTo(p.ordinal)
		}
	}
	return r, nil
}

// topK keeps the first k of all candidates that it is offered, in a heap with the last of them on top. container/heap would box
// each candidate and compare through an interface in the innermost loop.
type topK struct {
	candidates []candidate
	k          int
}

// offer reports whether the candidate is among the first k so far.
func (b *topK) offer(p candidate) bool {
	if len(b.candidates) < b.k {
		b.candidates = append(b.candidates, p)
		b.siftUp(len(b.candidates) - 1)
		return true
	}
	if p.compare(b.candidates[0]) >= 0 {
		return false
	}
	b.candidates[0] = p
	b.siftDown(0)
	return true
}

func (b *topK) siftUp(i int) {
	for parent := (i - 1) / 2; i > 0 && b.candidates[i].compare(b.candidates[parent]) > 0; i, parent = parent, (parent-1)/2 {
		b.candidates[i], b.candidates[parent] = b.candidates[parent], b.candidates[i]
	}
}

func (b *topK) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(b.candidates) {
			return
		}
		if child+1 < len(b.candidates) && b.candidates[child+1].compare(b.candidates[child]) > 0 {
			child++
		}
		if b.candidates[child].compare(b.candidates[i]) <= 0 {
			return
		}
		b.candidates[i], b.candidates[child] = b.candidates[child], b.candidates[i]
		i = child
	}
}

// notMatched is the rank of a site that does not match the text. Other ranks are sums of search.RankWords and the constants next
// to it, so they depend only on the site and the query.
const notMatched = ^uint32(0)

// rankBuffers holds the slices that a search fills, by ordinal. They are reused from search to search.
type rankBuffers struct {
	walk       levenshteinWalk
	ranks      []uint32 // as in search.SortKey, or notMatched
	wordRanks  []uint32 // the same for one word
	termCounts []uint32 // how many of a word's expansions each site has; in the two lowest bits, the last field they are in
}

// fillSlice returns a slice of n equal values, in the memory of s if that is large enough.
func fillSlice(s []uint32, n int, value uint32) []uint32 {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = value
	}
	return s
}

// rankByText ranks all sites of the index by a text. A site matches if it matches every word; its rank is the sum of the ranks of
// the words. Lower is better.
func (s *rankBuffers) rankByText(x *index, text string, matchExternalIDs bool) {
	words := search.QueryWords(text)
	first := uint32(search.RankWords)
	if len(words) == 0 {
		first = notMatched
	}
	s.ranks = fillSlice(s.ranks, len(x.recordRefs), first)
	for _, w := range words {
		s.rankByWord(x, w)
		for i, rank := range s.wordRanks {
			if rank == notMatched || s.ranks[i] == notMatched {
				s.ranks[i] = notMatched
			} else {
				s.ranks[i] += rank
			}
		}
	}
	if matchExternalIDs {
		s.rankByExternalID(x, text)
	}
}

// rankByWord ranks all sites by one word. If several words of the index match in a site, the best one counts.
func (s *rankBuffers) rankByWord(x *index, w search.Word) {
	s.wordRanks = fillSlice(s.wordRanks, len(x.recordRefs), notMatched)
	x.words.visitMatches(w, &s.walk, func(word, typos int, isPrefix bool) {
		rank := uint32(typos * search.RankTypo)
		if isPrefix {
			rank += search.RankPrefix
		}
		s.rankPostings(x.words.postingsOf(word), rank)
	})
	switch len(w.Expansions) {
	case 0:
	case 1:
		s.rankPostings(x.words.lookup(w.Expansions[0]), search.RankPrefix)
	default:
		s.rankByAllTerms(x, w.Expansions)
	}
}

// rankPostings ranks the sites of a list, and keeps a better rank that a site already has.
func (s *rankBuffers) rankPostings(list postingIterator, rank uint32) {
	for {
		n, field, ok := list.nextPosting()
		if !ok {
			return
		}
		s.wordRanks[n] = min(s.wordRanks[n], rank+uint32(field))
	}
}

// rankByAllTerms ranks the sites that have all of the terms, which together are the expansion of an abbreviation. It goes through
// the terms in turn, so a site counts only while it has all previous ones.
func (s *rankBuffers) rankByAllTerms(x *index, terms []string) {
	s.termCounts = fillSlice(s.termCounts, len(x.recordRefs), 0)
	for i, term := range terms {
		for list := x.words.lookup(term); ; {
			n, field, ok := list.nextPosting()
			if !ok {
				break
			}
			if s.termCounts[n]>>2 == uint32(i) {
				s.termCounts[n] = uint32(i+1)<<2 | max(s.termCounts[n]&3, uint32(field))
			}
		}
	}
	for n, t := range s.termCounts {
		if t>>2 == uint32(len(terms)) {
			s.wordRanks[n] = min(s.wordRanks[n], search.RankPrefix+t&3)
		}
	}
}

// rankByExternalID ranks the sites whose external id is the text, or begins with it.
func (s *rankBuffers) rankByExternalID(x *index, text string) {
	from := sort.Search(len(x.byID), func(i int) bool { return compareFolded(x.sortKey(x.byID[i]).ExternalID, text) >= 0 })
	for _, n := range x.byID[from:] {
		found := x.sortKey(n).ExternalID
		if len(found) < len(text) || compareFolded(found[:len(text)], text) != 0 {
			return
		}
		rank := uint32(search.RankWords + search.RankPrefix + uint32(search.InAddress))
		if len(found) == len(text) {
			rank = 0
		}
		s.ranks[n] = min(s.ranks[n], rank)
	}
}

// keepOnly drops the sites that do not have a facet.
func (s *rankBuffers) keepOnly(x *index, facet string) {
	list := x.facets.lookup(facet)
	next := uint32(0)
	for {
		n, _, ok := list.nextPosting()
		if !ok {
			n = uint32(len(s.ranks))
		}
		for ; next < n; next++ {
			s.ranks[next] = notMatched
		}
		if !ok {
			return
		}
		next = n + 1
	}
}

// keepOpen drops the sites that are not open at a moment.
func (s *rankBuffers) keepOpen(x *index, m *locations.Moment) {
	for n, rank := range s.ranks {
		if rank != notMatched && !x.record(uint32(n)).opening().IsOpen(m) {
			s.ranks[n] = notMatched
		}
	}
}
