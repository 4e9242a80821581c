package journal_test

import (
	"testing"
	"time"

	"lieudit/cmd/bench/journal"
)

func TestEveryFigureIsMeasured(t *testing.T) {
	t.Parallel()
	rows, err := journal.Measure(t.Context(), t.TempDir(), journal.Options{RoundDuration: 20 * time.Millisecond, Rounds: 1, Events: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Fatalf("%d rows, want 6", len(rows))
	}
	for _, r := range rows {
		if r.Value <= 0 && r.Unit != "ms" || r.Name == "" || r.Unit == "" {
			t.Errorf("empty row %+v", r)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	for b.Loop() {
		rows, err := journal.Measure(b.Context(), b.TempDir(), journal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			b.Logf("%-45s %12.0f %-10s raw %12.0f  ratio %.2f", r.Name, r.Value, r.Unit, r.Raw, r.Ratio)
		}
	}
}
