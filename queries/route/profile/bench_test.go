package profile

import "testing"

// tagPairs are tags as a map has them: a list that is walked.
type tagPairs [][2]string

func (t tagPairs) Get(key string) string {
	for i := range t {
		if t[i][0] == key {
			return t[i][1]
		}
	}
	return ""
}

func BenchmarkReadWay(b *testing.B) {
	for name, tags := range map[string]tagPairs{
		"street": {
			{"highway", "residential"}, {"name", "Rue Pasteur"}, {"maxspeed", "30"}, {"surface", "asphalt"}, {"oneway", "yes"}, {"lit", "yes"},
		},
		"house": {{"building", "yes"}, {"source", "cadastre"}, {"wall", "no"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ReadWay(tags)
			}
		})
	}
}
