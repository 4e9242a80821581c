package commune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/address/text"
)

// byHand looks at every commune of a table, one after the other.
type byHand struct {
	*Table
	names, sounds []string // of each commune
}

func newByHand(t *Table) *byHand {
	h := &byHand{Table: t}
	for c := range t.All() {
		h.names = append(h.names, normalizeName(c.Name))
		h.sounds = append(h.sounds, phoneticKey(normalizeName(c.Name)))
	}
	return h
}

func (h *byHand) search(q Query) []Match {
	line := normalizeName(q.Text)
	found := h.matches(&q, func(i int) float64 {
		name := h.names[i]
		switch {
		case line == "" || name == line:
			return 1
		case strings.HasPrefix(name, line):
			return 0.9
		case strings.Contains(name, " "+line):
			return 0.7
		}
		return 0
	})
	if len(found) == 0 {
		most, sound := min(len(line)/4, 2), phoneticKey(line)
		found = h.matches(&q, func(i int) float64 {
			switch d := text.Distance(line, h.names[i], most); {
			case d <= most:
				return [...]float64{0.8, 0.7, 0.6}[d]
			case sound != "" && sound == h.sounds[i]:
				return 0.65
			}
			return 0
		})
	}
	return found[:min(len(found), q.Limit)]
}

// matches is what the filters let through and has a score, in the order of answers, each commune once.
func (h *byHand) matches(q *Query, score func(i int) float64) (found []Match) {
	best := map[*Commune]float64{}
	for i := range h.communes {
		of := &h.communes[i]
		if parent, ok := h.Parent(of); ok && of.Kind != Arrondissement {
			of = parent
		}
		if isAdmitted(of, q) {
			best[of] = max(best[of], score(i))
		}
	}
	for c, s := range best {
		if s > 0 {
			found = append(found, Match{c, s})
		}
	}
	slices.SortFunc(found, func(x, y Match) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Population, x.Population), cmp.Compare(x.Code, y.Code))
	})
	return found
}

func isAdmitted(c *Commune, q *Query) bool {
	region, _ := RegionOf(c.Department())
	return c.Population >= q.MinPopulation && (q.MaxPopulation == 0 || c.Population <= q.MaxPopulation) &&
		(q.Postcodes == nil || slices.ContainsFunc(q.Postcodes, c.HasPostcode)) &&
		(q.Departments == nil || slices.Contains(q.Departments, c.Department())) &&
		(q.Regions == nil || slices.Contains(q.Regions, region.Code))
}

// searches are queries of every shape: names, beginnings, misspellings, filters alone and with a name.
func searches(t testing.TB) map[string][]Query {
	t.Helper()
	all := map[string][]Query{
		"letters":           {{Text: "s"}, {Text: "a"}, {Text: "d"}, {Text: "saint"}, {Text: "saint "}, {Text: "sainte m"}, {Text: "la"}, {Text: "le la"}},
		"unknown":           {{Text: "zxwvtq"}, {Text: "wwwwwwww"}, {Text: strings.Repeat("saint ", 30)}, {Text: strings.Repeat("e", 48)}, {Text: "東京"}, {Text: "12345"}},
		"population":        {{}, {MinPopulation: 100_000}, {MaxPopulation: 10}, {MinPopulation: 499, MaxPopulation: 500}, {MinPopulation: 10_000_000}},
		"postcode":          {{Postcodes: []string{"48000"}}, {Postcodes: []string{"75001", "69001", "13001"}}, {Postcodes: []string{"99999"}}},
		"department":        {{Departments: []string{"48"}}, {Departments: []string{"2A", "975", "984"}}, {Departments: []string{"99"}}},
		"region":            {{Regions: []string{"76"}}, {Regions: []string{"94", "01"}}, {Regions: []string{"00"}}},
		"name and filters":  {{Text: "saint", Departments: []string{"975"}}, {Text: "mende", Regions: []string{"94"}}, {Text: "s", Postcodes: []string{"48000"}}},
		"several filters":   {{Departments: []string{"48"}, Regions: []string{"76"}, MinPopulation: 100, MaxPopulation: 4000}, {Postcodes: []string{"48000"}, Departments: []string{"75"}}},
		"a city's own name": {{Text: "paris"}, {Text: "lyon 3"}, {Text: "marseille 1er"}, {Text: "St Chély"}, {Text: "Ancenis"}, {Text: "L'Haÿ"}},
	}
	i := 0
	for c := range table(t).All() {
		if i++; i%1511 == 0 {
			half := len(c.Name) / 2
			all["name"] = append(all["name"], Query{Text: c.Name})
			all["beginning"] = append(all["beginning"], Query{Text: c.Name[:min(len(c.Name), 4)]})
			all["letter too many"] = append(all["letter too many"], Query{Text: c.Name[:half] + "x" + c.Name[half:]})
			all["letter missing"] = append(all["letter missing"], Query{Text: c.Name[:half] + c.Name[half+1:]})
			all["misspelt, filters"] = append(all["misspelt, filters"], Query{Text: "x" + c.Name, MinPopulation: 400, Departments: []string{c.Department()}})
		}
	}
	for _, queries := range all {
		for i := range queries {
			queries[i].Limit = 100 - 33*(i%4)
		}
	}
	return all
}

func TestASearchFindsWhatLookingAtEveryCommuneFinds(t *testing.T) {
	t.Parallel()
	h := newByHand(table(t))
	for shape, queries := range searches(t) {
		for _, q := range queries {
			got, want := fmt.Sprint(described(table(t).Search(q))), fmt.Sprint(described(h.search(q)))
			if got != want {
				t.Errorf("%s, %+v:\ngot  %s\nwant %s", shape, q, got, want)
			}
		}
	}
}

func described(found []Match) (all []string) {
	for _, m := range found {
		all = append(all, fmt.Sprint(m.Code, " ", m.Name, " ", m.Score))
	}
	return all
}

func TestOnlyNamesAndTheirBeginningsAreNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]bool{"Mende": {true, true}, "mend": {false, true}, "apcher": {false, false}, "": {false, false},
		"!": {false, false}, "Le Monastier-Pin-Moriès": {true, true}} {
		if got := [2]bool{table(t).IsName(line, false), table(t).IsName(line, true)}; got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
