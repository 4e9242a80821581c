package grant_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"lieudit/schemas/grant"
)

func day(n int) time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

func TestZeroScheduledHasTheZeroValueForEver(t *testing.T) {
	t.Parallel()
	var s grant.Scheduled[string]
	if _, _, ok := s.Next(day(0)); s.At(day(0)) != "" || ok {
		t.Errorf("holds %q and then something: %v", s.At(day(0)), ok)
	}
}

func TestScheduledValueBeginsAtItsInstant(t *testing.T) {
	t.Parallel()
	var s grant.Scheduled[string]
	s.Set("a", day(0), day(0))
	s.Set("b", day(10), day(1))
	for at, want := range map[time.Time]string{
		day(1): "a", day(10).Add(-1): "a", day(10): "b", day(11): "b",
	} {
		if got := s.At(at); got != want {
			t.Errorf("at %s: %q, want %q", at, got, want)
		}
	}
	if next, from, ok := s.Next(day(5)); next != "b" || !from.Equal(day(10)) || !ok {
		t.Errorf("next is %q from %s, %v", next, from, ok)
	}
	if next, _, ok := s.Next(day(10)); ok {
		t.Errorf("%q is still to begin when it has begun", next)
	}
}

func TestLaterTermsReplaceThoseThatHaveNotBegun(t *testing.T) {
	t.Parallel()
	var s grant.Scheduled[string]
	s.Set("a", day(0), day(0))
	s.Set("b", day(10), day(1))
	s.Set("c", day(10), day(2))
	if got := s.At(day(10)); got != "c" {
		t.Errorf("two schedules for one instant: %q, want the later", got)
	}
	s.Set("d", day(12), day(11)) // c has begun: it holds till then
	if got, then := s.At(day(11)), s.At(day(12)); got != "c" || then != "d" {
		t.Errorf("got %q then %q, want c then d", got, then)
	}
	s.Set("e", day(11), day(11)) // at once: what was scheduled is gone
	if _, _, ok := s.Next(day(11)); s.At(day(20)) != "e" || ok {
		t.Errorf("got %q, want e for ever", s.At(day(20)))
	}
}

// The value is that of the last decision that had begun, among those that no later decision replaced before they began.
func TestScheduledAgreesWithAListOfAllDecisions(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	type decision struct {
		value          int
		from, recorded time.Time
	}
	for range 2000 {
		var s grant.Scheduled[int]
		var all []decision
		now := day(0)
		for i := range 8 {
			now = now.Add(time.Duration(random.IntN(100)) * time.Hour)
			d := decision{i + 1, now.Add(time.Duration(random.IntN(300)-50) * time.Hour), now}
			all = append(all, d)
			s.Set(d.value, d.from, d.recorded)
			at := now.Add(time.Duration(random.IntN(300)) * time.Hour)
			want := 0
			for j, d := range all {
				replaced := j+1 < len(all) && d.from.After(all[j+1].recorded)
				if !replaced && !d.from.After(at) {
					want = d.value
				}
			}
			if got := s.At(at); got != want {
				t.Fatalf("seed %d: after %+v at %s: %d, want %d", seed, all, at, got, want)
			}
		}
	}
}
