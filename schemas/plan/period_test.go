package plan_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"lieudit/schemas/plan"
)

func date(t *testing.T, text string) plan.Date {
	t.Helper()
	d, err := plan.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPeriodsAreMonthsFromTheAnchor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ anchor, at, first, next string }{
		{"2026-11-21", "2026-11-21T00:00:00+01:00", "2026-11-21", "2026-12-21"},
		{"2026-11-21", "2026-12-20T23:59:59.999+01:00", "2026-11-21", "2026-12-21"},
		{"2026-11-21", "2026-12-21T00:00:00+01:00", "2026-12-21", "2027-01-21"},
		{"2026-11-21", "2026-11-20T23:59:59.999+01:00", "2026-10-21", "2026-11-21"}, // before the anchor
		{"2026-11-21", "2026-12-20T23:00:00Z", "2026-12-21", "2027-01-21"},          // Paris is an hour ahead
		{"2026-11-21", "2026-12-20T22:59:59Z", "2026-11-21", "2026-12-21"},
		{"2026-07-01", "2026-07-31T22:00:00Z", "2026-08-01", "2026-09-01"}, // two hours in summer
		// the month's last day where it is shorter, and back again
		{"2026-01-28", "2026-02-28T12:00:00Z", "2026-02-28", "2026-03-28"},
		{"2026-01-29", "2026-02-28T12:00:00Z", "2026-02-28", "2026-03-29"},
		{"2026-01-29", "2026-02-27T12:00:00Z", "2026-01-29", "2026-02-28"},
		{"2026-01-30", "2026-02-28T12:00:00Z", "2026-02-28", "2026-03-30"},
		{"2026-01-31", "2026-02-28T12:00:00Z", "2026-02-28", "2026-03-31"},
		{"2026-01-31", "2026-03-30T12:00:00Z", "2026-02-28", "2026-03-31"},
		{"2026-01-31", "2026-04-30T12:00:00Z", "2026-04-30", "2026-05-31"},
		{"2026-01-31", "2026-12-31T12:00:00Z", "2026-12-31", "2027-01-31"},
		// leap 2028
		{"2026-01-31", "2028-02-28T12:00:00Z", "2028-01-31", "2028-02-29"},
		{"2026-01-31", "2028-02-29T12:00:00Z", "2028-02-29", "2028-03-31"},
		{"2026-01-29", "2028-02-29T12:00:00Z", "2028-02-29", "2028-03-29"},
		{"2026-01-28", "2028-02-29T12:00:00Z", "2028-02-28", "2028-03-28"},
		{"2028-02-29", "2029-02-28T12:00:00Z", "2029-02-28", "2029-03-29"},
		{"2028-02-29", "2032-02-29T12:00:00Z", "2032-02-29", "2032-03-29"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := plan.PeriodAt(date(t, c.anchor), at)
		if got.First.String() != c.first || got.Next.String() != c.next || got.Name() != c.first {
			t.Errorf("anchor %s at %s: %s to %s, want %s to %s", c.anchor, c.at, got.First, got.Next, c.first, c.next)
		}
		if in, err := plan.PeriodIn(date(t, c.anchor), c.first[:len("2026-11")]); err != nil || in != got {
			t.Errorf("anchor %s, the period that begins in %s: %v to %v, %v; want %s", c.anchor, c.first, in.First, in.Next, err, c.first)
		}
	}
}

func TestAMonthThatIsNoneHasNoPeriod(t *testing.T) {
	t.Parallel()
	for _, month := range []string{"", "2026-13", "2026-1", "2026-11-21", "november"} {
		if p, err := plan.PeriodIn(date(t, "2026-11-21"), month); err == nil {
			t.Errorf("%q: %v", month, p)
		}
	}
}

func TestTheMonthOfTheClockChangeIsAnHourShorterOrLonger(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]time.Duration{"2026-03-01": 743 * time.Hour, "2026-10-01": 745 * time.Hour, "2026-05-01": 744 * time.Hour} {
		p := plan.PeriodAt(date(t, first), date(t, first).Start())
		if got := p.End().Sub(p.Start()); got != want {
			t.Errorf("the month from %s lasts %v, want %v", first, got, want)
		}
	}
}

// TestPeriodsFollowEachOtherWithoutGap: whatever the anchor and the instant, the instant is in its period, the periods before and
// after touch it, and every instant of the period has the same one.
func TestPeriodsFollowEachOtherWithoutGap(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	from := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	anyTime := func() time.Time { return from.Add(time.Duration(random.Int64N(100 * 365 * 24 * int64(time.Hour)))) }
	for range 20_000 {
		anchor, at := plan.DateOf(anyTime()), anyTime()
		p := plan.PeriodAt(anchor, at)
		inside := p.Start().Add(time.Duration(random.Int64N(int64(p.End().Sub(p.Start())))))
		ok := !at.Before(p.Start()) && at.Before(p.End()) &&
			plan.PeriodAt(anchor, p.Start()) == p && plan.PeriodAt(anchor, inside) == p &&
			plan.PeriodAt(anchor, p.End().Add(-time.Nanosecond)) == p &&
			plan.PeriodAt(anchor, p.End()).First == p.Next &&
			plan.PeriodAt(anchor, p.Start().Add(-time.Nanosecond)).Next == p.First &&
			(p.First.Day == anchor.Day || p.First.Day < anchor.Day && p.First.Day >= 28)
		if !ok {
			t.Fatalf("seed %d: anchor %s at %s: %s to %s does not tile", seed, anchor, at, p.First, p.Next)
		}
	}
}

func TestDatesAreWrittenAsDays(t *testing.T) {
	t.Parallel()
	d := plan.DateOf(time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC))
	text, err := json.Marshal(map[string]plan.Date{"d": d})
	if want := `{"d":"2026-11-21"}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	var back map[string]plan.Date
	if err := json.Unmarshal(text, &back); err != nil || back["d"] != d {
		t.Errorf("read as %v, %v", back, err)
	}
	for _, bad := range []string{"", "2026-11-31", "2026-02-29", "2026-1-2", "21/11/2026", "2026-11-21T00:00:00Z", "2026-13-01", " 2026-11-21"} {
		if d, err := plan.ParseDate(bad); err == nil {
			t.Errorf("ParseDate(%q) = %s", bad, d)
		}
	}
}
