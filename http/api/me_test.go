package api

import (
	"context"
	"testing"

	"lieudit/commands/locations"
	"lieudit/eventstore"
)

func TestLocationsAreCountedAgainAfterAChange(t *testing.T) {
	t.Parallel()
	counts, changed := 0, map[string]eventstore.Position{}
	f := &countCache{
		load: func(context.Context, string) (locations.Counts, error) {
			counts++
			return locations.Counts{Sites: counts}, nil
		},
		lastChange: func(account string) eventstore.Position { return changed[account] },
	}
	expect := func(account string, want int) {
		t.Helper()
		if got, err := f.count(t.Context(), account); err != nil || got.Sites != want {
			t.Errorf("%s has %d (%v), want %d", account, got.Sites, err, want)
		}
	}
	expect("a", 1)
	expect("a", 1)
	expect("b", 2)
	changed["a"] = 7
	expect("a", 3)
	expect("a", 3)
	expect("b", 2)
}
