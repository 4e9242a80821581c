package model

import (
	"slices"
	"time"
)

// plan is a row of DECISIONS 2.
type plan struct {
	name     string
	requests int64 // a month, if the account has no number of its own
	limits
}

// plans are ordered from the lowest to the highest.
var plans = []plan{
	{"DISCOVERY", 20_000, limits{0, 0, 0}},
	{"STARTER", 100_000, limits{200, 5, 1}},
	{"GROWTH", 500_000, limits{2_000, 25, 5}},
	{"BUSINESS", 2_000_000, limits{10_000, 100, 20}},
}

func rank(name string) int {
	return slices.IndexFunc(plans, func(p plan) bool { return p.name == name })
}

// services maps each service to the lowest plan that includes it.
var services = map[Service]string{Addresses: "DISCOVERY", Locations: "STARTER", Matrix: "GROWTH", Route: "BUSINESS"}

// Service is a part of the service that a plan includes or not.
type Service string

// The services of DECISIONS 2.
const (
	Addresses Service = "addresses" // and /me
	Locations Service = "locations"
	Matrix    Service = "matrix" // and the other operations of /route except compute
	Route     Service = "route"
)

// Terms are the plan and the quota that an account pays for.
type Terms struct {
	Plan  string
	Quota int64
}

// isBelow reports whether a change to other terms waits for the next period. If one part goes up and the other down, the specification leaves
// it open.
func (t Terms) isBelow(other Terms) (is, isSaid bool) {
	plan, quota := rank(t.Plan)-rank(other.Plan), t.Quota-other.Quota
	return plan < 0 || quota < 0, !(plan < 0 && quota > 0 || plan > 0 && quota < 0)
}

// paris is the time zone of days.
var paris = mustLoad("Europe/Paris")

func mustLoad(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return l
}

// Day returns the day in Europe/Paris, such as 2026-11-21.
func Day(t time.Time) string { return t.In(paris).Format(time.DateOnly) }

// periodAt returns the period of a contract that contains an instant: month k after the anchor, from the anchor's day of the month or, if the
// month is shorter, its last day. The anchor is a day.
func periodAt(anchor string, at time.Time) (begin, end time.Time) {
	first, err := time.ParseInLocation(time.DateOnly, anchor, paris)
	if err != nil {
		return at, at
	}
	nth := func(k int) time.Time {
		lastDay := time.Date(first.Year(), first.Month()+time.Month(k)+1, 0, 0, 0, 0, 0, paris).Day()
		return time.Date(first.Year(), first.Month()+time.Month(k), min(first.Day(), lastDay), 0, 0, 0, 0, paris)
	}
	local := at.In(paris)
	k := 12*(local.Year()-first.Year()) + int(local.Month()-first.Month())
	if nth(k).After(at) {
		k--
	}
	return nth(k), nth(k + 1)
}
