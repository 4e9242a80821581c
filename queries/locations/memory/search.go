package memory

import (
	"cmp"
	"math"
	"slices"

	"lieudit/queries/locations/search"
)

// indexSearch is one question to one index.
type indexSearch struct {
	search.Query
	index *index
	*rankBuffers
	order  search.Sort
	after  *search.SortKey // nil on the first page
	bounds *search.Box     // holds all that is near enough
}

// candidate is a site that is found. Their order is that of the fields.
type candidate struct {
	rank     uint32
	distance float64 // where the order looks at it
	ordinal  uint32
}

func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance), cmp.Compare(a.ordinal, b.ordinal))
}

func (s *indexSearch) run() (search.Result, error) {
	if text := s.TrimmedText(); text != "" {
		s.rankByText(s.index, text, s.MatchExternalIDs)
	} else {
		s.ranks = fillSlice(s.ranks, len(s.index.recordRefs), 0)
	}
	if s.Referential != "" {
		s.keepOnly(s.index, referentialFacet(s.Referential))
	}
	for _, tag := range s.Tags {
		s.keepOnly(s.index, tagFacet(tag))
	}
	if s.Center != nil && s.Radius > 0 {
		around := search.BoxAround(*s.Center, s.Radius)
		s.bounds = &around
	}
	return s.buildPage(s.topCandidates())
}

// topCandidates are the first sites of the page in their order, one more than it has room for where there are.
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
		if s.ranks[n] == notMatched || !s.isWithinArea(n) {
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

func (s *indexSearch) candidate(n uint32) candidate {
	p := candidate{ordinal: n}
	if s.order == search.ByRelevance {
		p.rank = s.ranks[n]
	}
	if s.order != search.ByName && s.Center != nil {
		p.distance = s.distanceTo(n)
	}
	return p
}

// mayImprove says whether anything that is still to come may be before the last of a full page.
func (s *indexSearch) mayImprove(last candidate) bool {
	if s.order == search.ByDistance && !math.IsInf(last.distance, 1) {
		bounds := search.BoxAround(*s.Center, last.distance)
		s.bounds = &bounds
	}
	return s.order != search.ByName
}

// isWithinArea says whether a site is where it is looked for.
func (s *indexSearch) isWithinArea(n uint32) bool {
	if s.Box == nil && s.bounds == nil {
		return true
	}
	point := search.Point{Lat: s.index.lat[n], Lon: s.index.lon[n]}
	return (s.Box == nil || s.Box.Contains(point)) && (s.bounds == nil || s.bounds.Contains(point)) &&
		(s.Radius == 0 || search.Distance(*s.Center, point) <= s.Radius)
}

// distanceTo is from the center, +Inf for a site without a position.
func (s *indexSearch) distanceTo(n uint32) float64 {
	if math.IsNaN(s.index.lat[n]) {
		return math.Inf(1)
	}
	return search.Distance(*s.Center, search.Point{Lat: s.index.lat[n], Lon: s.index.lon[n]})
}

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
		if h.Site, err = s.index.record(p.ordinal).decodeSite(s.index.dictionary); err != nil {
			return search.Result{}, err
		}
		if s.Center != nil && h.Site.Lat != nil {
			h.Distance = s.distanceTo(p.ordinal)
		}
	}
	return r, nil
}

// topK keeps the first picks of all that it is offered, as a heap whose top is the last of them.
type topK struct {
	candidates []candidate
	k          int
}

// offer says whether the pick is among them.
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
