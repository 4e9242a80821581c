package locations

import (
	"fmt"
	"runtime"
	"testing"

	"lieudit/commands"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
)

func BenchmarkSync(b *testing.B) {
	rows := manyRows(10_000)
	b.Run("first", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			l := newFixture(b)
			d := l.newInstance(l.store)
			mustOpen(b, d, "magasins")
			b.StartTimer()
			mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		}
	})
	b.Run("unchanged after a restart", func(b *testing.B) {
		s := newFixture(b)
		d := s.newInstance(s.store)
		mustOpen(b, d, "magasins")
		mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		b.ResetTimer()
		for range b.N {
			mustWrite(b, s.newInstance(s.store), "magasins", Batch{Rows: rows, IsSync: true})
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		s := newFixture(b)
		d := s.newInstance(s.store)
		mustOpen(b, d, "magasins")
		mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		b.ResetTimer()
		for range b.N {
			mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		}
	})
	b.Run("unchanged at the centre of a commune", func(b *testing.B) {
		s := newFixture(b)
		d := s.newInstance(s.store)
		d.geocoder = fakeGeocoder{"Mende": {Lat: 44.5, Lon: 3.5, IDBan: "ban-c", Score: 0.9, Precision: locations.PrecisionMunicipality}}
		mustOpen(b, d, "magasins")
		rows := manyRows(10_000)
		for i := range rows {
			rows[i].Content.Lat, rows[i].Content.Lon, rows[i].Content.Address = nil, nil, &locations.SiteAddress{Line1: "Mende"}
		}
		mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		b.ResetTimer()
		for range b.N {
			mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		}
	})
	b.Run("1 percent changed", func(b *testing.B) {
		s := newFixture(b)
		d := s.newInstance(s.store)
		mustOpen(b, d, "magasins")
		mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		rows := manyRows(10_000)
		b.ResetTimer()
		for n := range b.N {
			for i := 0; i < len(rows); i += 100 {
				rows[i].Content.Phone = fmt.Sprintf("04660000%02d", n%26)
			}
			mustWrite(b, d, "magasins", Batch{Rows: rows, IsSync: true})
		}
	})
}

// BenchmarkRestart measures the first command of a new instance on an account of 11,000 sites that was synced 40 times.
func BenchmarkRestart(b *testing.B) {
	s, folder := newFixture(b), b.TempDir()
	l := keepSnapshots(s.newInstance(s.store), folder)
	mustOpen(b, l, "magasins")
	for n := range 40 {
		rows := manyRows(11_000)
		for i := n % 4; i < len(rows); i += 4 {
			rows[i].Content.Phone = fmt.Sprintf("04660000%02d", n)
		}
		mustWrite(b, l, "magasins", Batch{Rows: rows, IsSync: true})
	}
	for name, start := range map[string]func() *Locations{
		"without a file": func() *Locations { return s.newInstance(s.store) },
		"with a file":    func() *Locations { return keepSnapshots(s.newInstance(s.store), folder) },
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if f, err := start().CountLocations(b.Context(), "a"); err != nil || f.Sites != 11_000 {
					b.Fatal(f, err)
				}
			}
		})
	}
}

// BenchmarkState measures the bytes in memory that a site takes.
func BenchmarkState(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	states := make([]State, 10)
	for i := range states {
		rows := make([]event.SiteRow, 11_000)
		for n := range rows {
			rows[n] = event.SiteRow{ExternalID: fmt.Sprintf("magasin-%06d", n), Operation: event.SiteCreated, Version: 1, Digest: make([]byte, 32)}
		}
		Evolve(&states[i], commands.Record{Event: event.ReferentialOpened{Code: "r"}})
		Evolve(&states[i], commands.Record{Event: sitesChanged(rows...)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/110_000, "bytes/site")
	runtime.KeepAlive(states)
	for range b.N {
		if _, err := unmarshalSnapshot(marshalSnapshot(&states[0])); err != nil {
			b.Fatal(err)
		}
	}
}
