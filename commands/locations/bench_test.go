package locations

import (
	"testing"
)

func BenchmarkSync(b *testing.B) {
	rows := many(10_000)
	b.Run("first", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			l := newStage(b)
			d := l.desk(l.store)
			opened(b, d, "magasins")
			b.StartTimer()
			written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		}
	})
	b.Run("unchanged after a restart", func(b *testing.B) {
		s := newStage(b)
		d := s.desk(s.store)
		opened(b, d, "magasins")
		written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		b.ResetTimer()
		for range b.N {
			written(b, s.desk(s.store), "magasins", Batch{Rows: rows, Whole: true})
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		s := newStage(b)
		d := s.desk(s.store)
		opened(b, d, "magasins")
		written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		b.ResetTimer()
		for range b.N {
			written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		}
	})
	b.Run("1 percent changed", func(b *testing.B) {
		s := newStage(b)
		d := s.desk(s.store)
		opened(b, d, "magasins")
		written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		rows := many(10_000)
		b.ResetTimer()
		for n := range b.N {
			for i := 0; i < len(rows); i += 100 {
				rows[i].Content.Phone = string(rune('a' + n%26))
			}
			written(b, d, "magasins", Batch{Rows: rows, Whole: true})
		}
	})
}
