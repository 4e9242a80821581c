package server

import (
	"context"
	"testing"

	"lieudit/commands/locations"
	"lieudit/eventstore"
)

func TestFiguresAreCountedAgainWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	counts, changed := 0, map[string]eventstore.Position{}
	f := &figures{
		of: func(context.Context, string) (locations.Figures, error) {
			counts++
			return locations.Figures{Sites: counts}, nil
		},
		changed: func(account string) eventstore.Position { return changed[account] },
	}
	ask := func(account string, want int) {
		t.Helper()
		if got, err := f.count(t.Context(), account); err != nil || got.Sites != want {
			t.Errorf("%s has %d (%v), want %d", account, got.Sites, err, want)
		}
	}
	ask("a", 1)
	ask("a", 1)
	ask("b", 2)
	changed["a"] = 7
	ask("a", 3)
	ask("a", 3)
	ask("b", 2)
	f.changed = nil
	ask("b", 4)
	ask("b", 5)
}
