// Package forecast reckons how long the rest of a quota lasts, for every page that shows it.
package forecast

import (
	"strconv"
	"time"

	"lieudit/schemas/body"
)

// Quota is how much of its quota an account has used, and how long the rest lasts.
type Quota struct {
	body.Usage
	Share     float64   // used, from 0
	MetAt     time.Time // when the quota is used up at the pace of this period; zero: it lasts
	DaysLeft  int       // of the period, today included
	PaceToEnd int64     // requests a day that last to the end of the period
	Pace      float64   // requests a day in this period
}

// Tone is how the meter looks.
func (u *Quota) Tone() string {
	switch {
	case u.Remaining == 0:
		return "bad"
	case !u.MetAt.IsZero() || u.Share >= 0.8:
		return "warn"
	}
	return ""
}

// Percent is the share as a whole number from 0 to 100.
func (u *Quota) Percent() string { return strconv.Itoa(int(min(u.Share, 1) * 100)) }

// New reckons the pace of a period from its complete days and the part of today that has passed. In the first day there is no pace.
func New(u body.Usage, now time.Time) *Quota {
	q := &Quota{Usage: u}
	if u.Limit > 0 {
		q.Share = float64(u.Total) / float64(u.Limit)
	}
	elapsed, left := now.Sub(u.Start).Hours()/24, u.End.Sub(now).Hours()/24
	if left > 0 {
		q.DaysLeft = int(left) + 1
		q.PaceToEnd = int64(float64(u.Remaining) / left)
	}
	if elapsed < 1 || u.Total == 0 {
		return q
	}
	q.Pace = float64(u.Total) / elapsed
	if days := float64(u.Remaining) / q.Pace; u.Remaining > 0 && days < left {
		q.MetAt = now.Add(time.Duration(days * 24 * float64(time.Hour)))
	}
	return q
}
