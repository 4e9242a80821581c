package search

import (
	"cmp"
	"maps"
	"slices"

	"lieudit/schemas/locations"
)

// Facet is a member of sites whose values are counted.
type Facet string

const (
	TagFacet         Facet = "tags"
	TownFacet        Facet = "commune"
	ReferentialFacet Facet = "referentiel"
)

// MaxFacetValues is how many values of a facet are returned: the most frequent ones.
const MaxFacetValues = 100

// Counts holds how many sites a query finds in all, and how many of them have each value of its facets. The most frequent values come
// first, equally frequent ones in byte order.
type Counts struct {
	Total  int
	Facets map[Facet][]ValueCount
}

// ValueCount is a value in its most frequent spelling, with the number of sites that have it in any spelling that folds to the same
// text.
type ValueCount struct {
	Value string
	Sites int
}

// Counter counts sites one by one. It is used by one goroutine.
type Counter struct {
	total  int
	facets map[Facet]map[string]spellings
}

// spellings maps the spellings of a value to the number of sites that have each.
type spellings map[string]int

// NewCounter returns a Counter of sites and of the values of some facets.
func NewCounter(facets []Facet) *Counter {
	c := &Counter{facets: map[Facet]map[string]spellings{}}
	for _, f := range facets {
		c.facets[f] = map[string]spellings{}
	}
	return c
}

// CountSites counts n sites without their values.
func (c *Counter) CountSites(n int) { c.total += n }

// NeedsValues reports whether Add must be called with each site.
func (c *Counter) NeedsValues() bool { return len(c.facets) > 0 }

// Add counts a site.
func (c *Counter) Add(s locations.Site) {
	c.total++
	c.addValue(ReferentialFacet, s.Referential, s.Referential)
	if a := s.Address; a != nil {
		c.addValue(TownFacet, FoldTag(a.City), a.City)
	}
	seen := map[string]bool{}
	for _, tag := range s.Tags {
		if folded := FoldTag(tag); !seen[folded] {
			seen[folded] = true
			c.addValue(TagFacet, folded, tag)
		}
	}
}

// addValue counts a value of a site, unless it is empty.
func (c *Counter) addValue(f Facet, folded, value string) {
	values, isCounted := c.facets[f]
	if !isCounted || folded == "" {
		return
	}
	if values[folded] == nil {
		values[folded] = spellings{}
	}
	values[folded][value]++
}

// Counts returns the counts of all sites so far.
func (c *Counter) Counts() Counts {
	counts := Counts{Total: c.total, Facets: map[Facet][]ValueCount{}}
	for f, values := range c.facets {
		all := make([]ValueCount, 0, len(values))
		for _, s := range values {
			all = append(all, s.mostFrequent())
		}
		slices.SortFunc(all, func(a, b ValueCount) int {
			return cmp.Or(cmp.Compare(b.Sites, a.Sites), cmp.Compare(a.Value, b.Value))
		})
		counts.Facets[f] = all[:min(len(all), MaxFacetValues)]
	}
	return counts
}

func (s spellings) mostFrequent() (v ValueCount) {
	most := 0
	for _, spelling := range slices.Sorted(maps.Keys(s)) {
		v.Sites += s[spelling]
		if s[spelling] > most {
			v.Value, most = spelling, s[spelling]
		}
	}
	return v
}
