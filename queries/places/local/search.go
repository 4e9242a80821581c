package local

import (
	"cmp"
	"math"
	"slices"

	"lieudit/queries/places/finder"
)

// search is one question to one index.
type search struct {
	finder.Query
	x *index
	*scratch
	order finder.Sort
	after *finder.Place // nil on the first page
	near  *finder.Box   // holds all that is near enough
}

// pick is a site that is found. Their order is that of the fields.
type pick struct {
	rank     uint32
	distance float64 // where the order looks at it
	ordinal  uint32
}

func (a pick) compare(b pick) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance), cmp.Compare(a.ordinal, b.ordinal))
}

func (s *search) run() (finder.Result, error) {
	if text := s.Asked(); text != "" {
		s.match(s.x, text, s.Private)
	} else {
		s.total = filled(s.total, len(s.x.rows), 0)
	}
	if s.Referential != "" {
		s.only(s.x, referentialMark(s.Referential))
	}
	for _, tag := range s.Tags {
		s.only(s.x, tagMark(tag))
	}
	if s.Center != nil && s.Radius > 0 {
		around := finder.Around(*s.Center, s.Radius)
		s.near = &around
	}
	return s.page(s.picks())
}

// picks are the first sites of the page in their order, one more than it has room for where there are.
func (s *search) picks() []pick {
	found := best{room: s.Limit + 1}
	var after pick
	if s.after != nil {
		after = pick{uint32(s.after.Rank), s.after.Distance, s.x.after(*s.after)}
	}
	from := uint32(0)
	if s.order == finder.ByName {
		from = after.ordinal
	}
	for n := from; int(n) < len(s.x.rows); n++ {
		if s.total[n] == none || !s.within(n) {
			continue
		}
		if p := s.pick(n); s.after == nil || p.compare(after) >= 0 {
			if found.offer(p) && len(found.picks) == found.room && !s.further(found.picks[0]) {
				break
			}
		}
	}
	slices.SortFunc(found.picks, pick.compare)
	return found.picks
}

func (s *search) pick(n uint32) pick {
	p := pick{ordinal: n}
	if s.order == finder.ByRelevance {
		p.rank = s.total[n]
	}
	if s.order != finder.ByName && s.Center != nil {
		p.distance = s.distance(n)
	}
	return p
}

// further says whether anything that is still to come may be before the last of a full page.
func (s *search) further(last pick) bool {
	if s.order == finder.ByDistance && !math.IsInf(last.distance, 1) {
		near := finder.Around(*s.Center, last.distance)
		s.near = &near
	}
	return s.order != finder.ByName
}

// within says whether a site is where it is looked for.
func (s *search) within(n uint32) bool {
	if s.Box == nil && s.near == nil {
		return true
	}
	at := finder.Point{Lat: s.x.lat[n], Lon: s.x.lon[n]}
	return (s.Box == nil || s.Box.Holds(at)) && (s.near == nil || s.near.Holds(at)) &&
		(s.Radius == 0 || finder.Distance(*s.Center, at) <= s.Radius)
}

// distance is from the center, +Inf for a site without a position.
func (s *search) distance(n uint32) float64 {
	if math.IsNaN(s.x.lat[n]) {
		return math.Inf(1)
	}
	return finder.Distance(*s.Center, finder.Point{Lat: s.x.lat[n], Lon: s.x.lon[n]})
}

func (s *search) page(found []pick) (r finder.Result, err error) {
	if len(found) > s.Limit {
		found = found[:s.Limit]
		last := found[s.Limit-1]
		place := s.x.place(last.ordinal)
		place.Rank, place.Distance = uint64(last.rank), last.distance
		r.Next = s.Cursor(place)
	}
	r.Hits = make([]finder.Hit, len(found))
	for i, p := range found {
		h := &r.Hits[i]
		if h.Site, err = s.x.parcel(p.ordinal).site(s.x.primer); err != nil {
			return finder.Result{}, err
		}
		if s.Center != nil && h.Site.Lat != nil {
			h.Distance = s.distance(p.ordinal)
		}
	}
	return r, nil
}

// best keeps the first picks of all that it is offered, as a heap whose top is the last of them.
type best struct {
	picks []pick
	room  int
}

// offer says whether the pick is among them.
func (b *best) offer(p pick) bool {
	if len(b.picks) < b.room {
		b.picks = append(b.picks, p)
		b.rise(len(b.picks) - 1)
		return true
	}
	if p.compare(b.picks[0]) >= 0 {
		return false
	}
	b.picks[0] = p
	b.sink(0)
	return true
}

func (b *best) rise(i int) {
	for up := (i - 1) / 2; i > 0 && b.picks[i].compare(b.picks[up]) > 0; i, up = up, (up-1)/2 {
		b.picks[i], b.picks[up] = b.picks[up], b.picks[i]
	}
}

func (b *best) sink(i int) {
	for {
		down := 2*i + 1
		if down >= len(b.picks) {
			return
		}
		if down+1 < len(b.picks) && b.picks[down+1].compare(b.picks[down]) > 0 {
			down++
		}
		if b.picks[down].compare(b.picks[i]) <= 0 {
			return
		}
		b.picks[i], b.picks[down] = b.picks[down], b.picks[i]
		i = down
	}
}
