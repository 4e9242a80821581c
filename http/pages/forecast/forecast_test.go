package forecast_test

import (
	"testing"
	"time"

	"lieudit/http/pages/forecast"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

func TestThePaceTellsWhenTheQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, plan.Paris)
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, plan.Paris)
	for name, c := range map[string]struct {
		total, limit int64
		now          time.Time
		metOn        string // "" if it lasts
		paceToEnd    int64
		tone         string
	}{
		"nothing used":          {0, 3000, start.Add(240 * time.Hour), "", 150, ""},
		"lasts":                 {900, 3000, start.Add(240 * time.Hour), "", 105, ""},
		"exactly":               {1000, 3000, start.Add(240 * time.Hour), "", 100, ""},
		"too fast":              {2000, 3000, start.Add(240 * time.Hour), "2026-11-16", 50, "warn"},
		"used up":               {3000, 3000, start.Add(240 * time.Hour), "", 0, "bad"},
		"no pace on day one":    {500, 3000, start.Add(5 * time.Hour), "", 83, ""},
		"nearly used up":        {2500, 3000, start.Add(700 * time.Hour), "", 600, "warn"},
		"after the period":      {2500, 3000, end.Add(time.Hour), "", 0, "warn"},
		"a quota of zero":       {0, 0, start.Add(240 * time.Hour), "", 0, "bad"},
		"the hour that is gone": {1500, 3000, start.Add(15 * 24 * time.Hour), "", 100, ""},
	} {
		u := body.Usage{Interval: body.Interval{Start: start, End: end}, Limit: c.limit, Total: c.total, Remaining: c.limit - c.total}
		q := forecast.New(u, c.now)
		met := ""
		if !q.MetAt.IsZero() {
			met = plan.DateOf(q.MetAt).String()
		}
		if met != c.metOn || q.PaceToEnd != c.paceToEnd || q.Tone() != c.tone {
			t.Errorf("%s: met %q, %d a day to the end, tone %q; want %q, %d, %q", name, met, q.PaceToEnd, q.Tone(), c.metOn, c.paceToEnd, c.tone)
		}
	}
}
