package trial

import (
	"fmt"
	"slices"
	"time"

	"lieudit/cmd/lieudit/caller"
)

// Report is what came of a trial.
type Report struct {
	Seed       uint64     `json:"seed"`
	Cap        int64      `json:"cap"`
	Answered   int64      `json:"answered"`    // whole answers that are no 5xx
	Served     int64      `json:"served"`      // of these, 200
	Spent      int64      `json:"refused_429"` // of these, 429
	Again      int64      `json:"tried_again"` // answers of 503 and connections that broke
	Counted    int64      `json:"counted"`     // by the log, in the end
	Events     int64      `json:"events"`      // of usage on the log
	Ticks      int64      `json:"ticks"`
	Void       int64      `json:"ticks_void"`
	Refunded   int64      `json:"refunded"` // requests that were refused after all
	Seconds    float64    `json:"seconds"`
	PerSecond  float64    `json:"served_per_second"` // until the first was refused
	Posts      []Post     `json:"instances"`
	Lives      []Life     `json:"lives"`
	Incidents  []Incident `json:"incidents"`
	Violations []string   `json:"violations"`
}

// Post is one instance, all its lives together.
type Post struct {
	Name   string  `json:"name"`
	Served int64   `json:"served"`
	P50    float64 `json:"p50_ms"` // of what was served
	P99    float64 `json:"p99_ms"`
}

// Life is one process of an instance.
type Life struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation,omitempty"` // empty: it counted nothing
	Killed      bool   `json:"killed"`
	Served      int64  `json:"served"`
	Counted     int64  `json:"counted"`
	Unanswered  int64  `json:"billed_unanswered"`
	InFlight    int64  `json:"in_flight"` // requests that its end left without an answer
	Open        int64  `json:"open"`      // requests told 503 whose tick it cannot have taken back before its end
}

// judge holds what clients were answered against what the log says.
func (r *run) judge(found *truth, took time.Duration) Report {
	rep := Report{
		Seed: r.Seed, Cap: r.Cap, Served: r.served.Load(), Events: found.events, Ticks: found.ticks, Void: found.void,
		Refunded: found.refunded, Seconds: took.Seconds(), Incidents: r.incidents, Violations: []string{},
	}
	for _, p := range r.posts {
		rep.Posts = append(rep.Posts, p.summary())
		for _, l := range p.lives {
			rep.add(l, found, int64(r.Connections))
		}
	}
	until := took
	if full := r.full.Load(); full > 0 {
		until = time.Duration(full)
	}
	rep.PerSecond = float64(min(rep.Served, r.Cap)) / until.Seconds()
	rep.Answered = rep.Served + rep.Spent
	rep.sums(found.most, r.Requests, r.Chaos)
	return rep
}

func (p *post) summary() Post {
	all := caller.Times(slices.Concat(p.times...))
	all.Sort()
	ms := func(share float64) float64 { return float64(all.Quantile(share).Microseconds()) / 1000 }
	return Post{p.name, int64(len(all)), ms(0.5), ms(0.99)}
}

// add judges one life: what it served is counted, and no more than what its end may have left unanswered besides.
func (rep *Report) add(l *life, found *truth, connections int64) {
	v := Life{
		Name: l.name, Incarnation: found.incarnations[l.key], Killed: l.killed, Served: l.served.Load(),
		Counted: found.counted[l.key], InFlight: l.broken.Load(),
	}
	if l.killed {
		v.Open = min(l.open.Load(), connections)
	}
	v.Unanswered = v.Counted - v.Served
	rep.Spent += l.spent.Load()
	rep.Again += l.unavailable.Load() + l.broken.Load()
	rep.Counted += v.Counted
	switch {
	case v.Unanswered < 0:
		rep.violate("%s: %d requests were served that the log does not count", l.name, -v.Unanswered)
	case v.Unanswered > v.InFlight+v.Open:
		rep.violate("%s: %d requests are billed without an answer, no more than %d can have been on their way", l.name, v.Unanswered, v.InFlight+v.Open)
	case !l.killed && v.Incarnation != "" && !found.ended[v.Incarnation]:
		rep.violate("%s: it ended in good order, but does not say so on the log", l.name)
	}
	if n := l.strange.Load(); n > 0 {
		rep.violate("%s: %d answers are neither 200 nor 429 nor 503", l.name, n)
	}
	if v.Incarnation != "" || v.Served > 0 || l.killed {
		rep.Lives = append(rep.Lives, v)
	}
}

// sums judges all lives together.
func (rep *Report) sums(most, requests int64, chaos bool) {
	switch {
	case rep.Served > rep.Cap:
		rep.violate("%d requests were served, the cap is %d", rep.Served, rep.Cap)
	case most > rep.Cap:
		rep.violate("the log counted %d at once, the cap is %d", most, rep.Cap)
	case !chaos && rep.Served != min(rep.Cap, requests):
		rep.violate("%d requests were served, not exactly %d", rep.Served, min(rep.Cap, requests))
	}
	if rep.Answered != requests {
		rep.violate("%d requests were answered, %d were sent", rep.Answered, requests)
	}
}

func (rep *Report) violate(format string, args ...any) {
	rep.Violations = append(rep.Violations, fmt.Sprintf(format, args...))
}
