package journal_test

import (
	"testing"
	"time"

	"lieudit/cmd/bench/journal"
	"lieudit/cmd/bench/measure"
)

func TestEveryFigureIsMeasured(t *testing.T) {
	t.Parallel()
	var figures []measure.Figure
	out := measure.Output{
		Report:   func(f measure.Figure) error { figures = append(figures, f); return nil },
		Progress: func(string, int, int) {},
	}
	err := journal.Run(t.Context(), t.TempDir(), journal.Options{RoundDuration: 20 * time.Millisecond, Rounds: 1, Events: 1000}, out)
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) != 6 {
		t.Fatalf("%d figures, want 6", len(figures))
	}
	for i, f := range figures {
		if f.Value <= 0 || f.Label("figure") == "" || f.Unit == "" || i < 5 && f.Raw <= 0 {
			t.Errorf("empty figure %+v", f)
		}
	}
}
