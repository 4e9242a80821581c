package overview

import (
	"testing"
	"time"

	"lieudit/schemas/body"
)

func TestKeysThatNobodyUsesNeedCare(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	keys := []body.Key{
		{ID: "new", Created: now.Add(-29 * day)},
		{ID: "never", Created: now.Add(-31 * day)},
		{ID: "used", Created: now.Add(-90 * day), LastUsed: now.Add(-29 * day)},
		{ID: "idle", Created: now.Add(-90 * day), LastUsed: now.Add(-31 * day)},
		{ID: "revoked", Created: now.Add(-90 * day), Revoked: now.Add(-day)},
		{ID: "warned", Created: now, Warnings: []string{"x"}},
	}
	care, hasValid := keysInCare(keys, now)
	var got []string
	for _, k := range care {
		got = append(got, k.ID)
	}
	if want := []string{"never", "idle", "warned"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || !hasValid {
		t.Errorf("%v, valid %v; want %v", got, hasValid, want)
	}
	if _, hasValid := keysInCare(keys[4:5], now); hasValid {
		t.Error("a revoked key is called valid")
	}
}
