package address

import (
	"cmp"
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// LocalityQuery asks for communes. What is zero asks nothing.
type LocalityQuery struct {
	Text        string
	Limit       int // at least 1
	Postcodes   []string
	Departments []string
	Regions     []string

	MinPopulation uint32
	MaxPopulation uint32 // 0 is no bound
}

// Locality is a commune of the table, and how well its name fits.
type Locality struct {
	*commune.Commune
	Department commune.Division
	Region     commune.Division
	Score      float64
}

// namedCommune is a commune under one of its names.
type namedCommune struct {
	name string // folded, without links
	of   *commune.Commune
}

// byName lists the table by name; a former commune's name leads to the one it is part of now.
func byName(table *commune.Table) (all []namedCommune) {
	for c := range table.All() {
		of := c
		if c.Kind == commune.Delegated || c.Kind == commune.Associated {
			if parent, ok := table.Parent(c); ok {
				of = parent
			}
		}
		all = append(all, namedCommune{bare(c.Name), of})
	}
	return all
}

// bare is a name's terms, links left out.
func bare(name string) string {
	var words []string
	terms := text.Terms(name)
	for _, t := range terms {
		if text.ClassOf(t.Text) != text.Link {
			words = append(words, t.Text)
		}
	}
	if len(words) == 0 {
		for _, t := range terms {
			words = append(words, t.Text)
		}
	}
	return strings.Join(words, " ")
}

// Localities are the communes that fit, the best first; of as good ones the most populous, then by code.
func (e *Engine) Localities(query LocalityQuery) []Locality {
	want := bare(query.Text)
	found := e.fitting(query, func(name string) float64 { return nameWorth(want, name) })
	if len(found) == 0 {
		found = e.fitting(query, func(name string) float64 { return looseWorth(want, name) })
	}
	slices.SortFunc(found, func(x, y Locality) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Population, x.Population), cmp.Compare(x.Code, y.Code))
	})
	seen := map[string]bool{}
	found = slices.DeleteFunc(found, func(l Locality) bool {
		known := seen[l.Code]
		seen[l.Code] = true
		return known
	})
	return found[:min(len(found), query.Limit)]
}

func (e *Engine) fitting(query LocalityQuery, worth func(string) float64) (found []Locality) {
	for _, n := range e.places() {
		w := worth(n.name)
		if w == 0 || n.of.Population < query.MinPopulation || query.MaxPopulation > 0 && n.of.Population > query.MaxPopulation {
			continue
		}
		l := Locality{Commune: n.of, Score: w}
		l.Department, _ = commune.Department(n.of.Department())
		l.Region, _ = commune.RegionOf(n.of.Department())
		if query.admits(&l) {
			found = append(found, l)
		}
	}
	return found
}

func (q *LocalityQuery) admits(l *Locality) bool {
	admitted := func(of []string, has func(string) bool) bool { return len(of) == 0 || slices.ContainsFunc(of, has) }
	return admitted(q.Postcodes, l.HasPostcode) &&
		admitted(q.Departments, func(d string) bool { return d == l.Department.Code }) &&
		admitted(q.Regions, func(r string) bool { return r == l.Region.Code })
}

// nameWorth is how well what was typed fits a name: whole, its beginning, or the beginning of one of its words.
func nameWorth(want, name string) float64 {
	switch {
	case name == want || want == "":
		return 1
	case strings.HasPrefix(name, want):
		return 0.9
	case strings.Contains(name, " "+want):
		return 0.7
	}
	return 0
}

// looseWorth lets one letter be wrong, or two of eight.
func looseWorth(want, name string) float64 {
	most := min(len(want)/4, 2)
	if d := text.Distance(want, name, most); d <= most {
		return 0.8 - 0.1*float64(d)
	}
	if len(want) > 2 && text.Sound(want) != "" && !strings.Contains(name, " ") && text.Sound(want) == text.Sound(name) {
		return 0.65
	}
	return 0
}
