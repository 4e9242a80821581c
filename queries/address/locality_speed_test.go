package address

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/commune"
)

// localityQueries are queries of every shape: names, beginnings, misspellings, filters alone and with a name.
func localityQueries(t testing.TB) map[string][]LocalityQuery {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]LocalityQuery{
		"letters":          {{Text: "s"}, {Text: "a"}, {Text: "d"}, {Text: "saint"}, {Text: "saint "}, {Text: "sainte m"}},
		"unknown":          {{Text: "zxwvtq"}, {Text: "wwwwwwww"}, {Text: strings.Repeat("saint ", 30)}, {Text: strings.Repeat("e", 48)}},
		"population":       {{}, {MinPopulation: 1}, {MinPopulation: 100_000}, {MaxPopulation: 10}, {MinPopulation: 499, MaxPopulation: 500}},
		"postcode":         {{Postcodes: []string{"48000"}}, {Postcodes: []string{"75001", "69001", "13001"}}, {Postcodes: []string{"99999"}}},
		"department":       {{Departments: []string{"48"}}, {Departments: []string{"2A", "975", "984"}}, {Departments: []string{"99"}}},
		"region":           {{Regions: []string{"76"}}, {Regions: []string{"94", "01"}}, {Regions: []string{"00"}}},
		"name and filters": {{Text: "saint", Departments: []string{"975"}}, {Text: "mende", Regions: []string{"94"}}, {Text: "s", Postcodes: []string{"48000"}}},
	}
	i := 0
	for c := range table.All() {
		if i++; i%311 == 0 {
			half := len(c.Name) / 2
			all["name"] = append(all["name"], LocalityQuery{Text: c.Name})
			all["beginning"] = append(all["beginning"], LocalityQuery{Text: c.Name[:min(len(c.Name), 4)]})
			all["misspelt"] = append(all["misspelt"], LocalityQuery{Text: c.Name[:half] + "x" + c.Name[half:]})
			all["misspelt and filters"] = append(all["misspelt and filters"],
				LocalityQuery{Text: "x" + c.Name, MinPopulation: 400, Departments: []string{c.Department()}})
		}
	}
	return all
}

// BenchmarkLocalities reports how much of a processor queries of each shape take, at the median and at the 99th percentile.
func BenchmarkLocalities(b *testing.B) {
	e := engineOf(b, hamlet())
	for shape, queries := range localityQueries(b) {
		b.Run(shape, func(b *testing.B) {
			runtime.LockOSThread() // the clock is the thread's
			defer runtime.UnlockOSThread()
			var took []time.Duration
			for b.Loop() {
				for _, q := range queries {
					q.Limit = 100
					start := addresstest.CPUTime(b)
					e.Localities(q)
					took = append(took, addresstest.CPUTime(b)-start)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}
