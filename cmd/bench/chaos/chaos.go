// Package chaos is the chaos test of the whole service. It runs real processes of this program under load, kills them (kill -9), and makes the
// parts that they depend on fail: the disk is full, Postgres is unavailable, the log does not answer, file descriptors run out. Package model
// knows which answers are allowed. After each round, with everything healthy again, the checks compare the content of the service with the
// model: everything acknowledged must be there, and nothing that no client requested: sites, keys, revocations, quotas, bills, projections.
// Only a broken promise of the service is a violation, so a request without an answer may have happened or not.
//
//	Run ──> runProfile ──> startAll                        system: instances, log node, Postgres, disk
//	            ├──> startClients: client ──> sendAPI, sendArea ──> model.Begin, model.End
//	            ├──> runRound ──> killInstances, injectFault ──> restartMissing
//	            │        └──> checkSystem ──> model.SettleAccount, SettlePlaces, SettleUsage ──> violations
//	            └──> checkAtEnd: checkSystem, checkHistory, checkRebuild                         ──> Report
//
// A referential is written by one client, one request at a time. So the model knows the states that it may hold: one, or
// several while the fate of a write is unknown. Two things are violations: an answer that no possible state gives, and a list
// that equals none of the possible states, for instance because a row was lost, or half of a sync was applied, or an old write
// was applied again. The name of every row carries an edition, the number of the write that it comes from.
//
// The service must bill all requests that it answered, and beyond them at most those that a kill left without an answer.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
)

// Options are the parameters of a run. All but KeepGoing, KeepData, LongOutage and Log are required.
type Options struct {
	Dir              string // on the disk to use
	Profiles         []Profile
	Kills            int // of instances, over all profiles
	MaxKillsPerRound int // between two checks
	Instances        int // of the servers profile
	Rows             int // of the largest sync
	Seed             uint64
	TimeLimit        time.Duration // for all profiles together

	MaxPause   time.Duration // longest time between two kills
	MinOutage  time.Duration // shortest outage of Postgres; the usual ones last up to twice as long
	LongOutage time.Duration // length of every fourth outage of Postgres; 0: no long outage

	KeepGoing bool              // continue after a round with violations
	KeepData  bool              // keep the data folders for inspection
	Log       func(what string) // receives the lines of the run's log; nil: none
}

// ErrTimeUp means that the limit passed before all kills were done.
var ErrTimeUp = errors.New("the time was up before all kills were done")

// Run runs every profile, one after another, and reports on it. The kills are distributed evenly. A profile that this machine cannot run is
// left out and named in the report. The error is the reason why a run could not be completed; the report then has the results until then.
// Violations are not an error but part of the report.
func Run(ctx context.Context, o Options) (Report, error) {
	rep := Report{Seed: o.Seed, Violations: []string{}}
	profiles := []Profile{}
	for _, p := range o.Profiles {
		if p == Servers && harness.FindPostgres() == "" {
			rep.LeftOut = append(rep.LeftOut, "servers: there is no Postgres on this machine")
			continue
		}
		profiles = append(profiles, p)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.TimeLimit, ErrTimeUp)
	defer cancel()
	for n, p := range profiles {
		r := newRun(o, p, uint64(n))
		r.Kills = o.Kills*(n+1)/len(profiles) - o.Kills*n/len(profiles)
		err := r.runProfile(ctx)
		rep.addRun(r)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", p, err)
		}
	}
	return rep, nil
}

// run is the run of one profile. Clients, the goroutine that kills, and the goroutine of the fault share it. Only the
// goroutine of runProfile uses rng; the others draw from generators that it has seeded.
type run struct {
	Options
	*system
	httpClient *http.Client
	rng        *rand.Rand
	model      *model.Model
	began      time.Time
	givenUp    <-chan struct{} // closed when the run is given up
	round      atomic.Int64
	outages    int                // of Postgres so far; only the goroutine of the fault uses it
	unanswered map[billLine]int64 // requests billed but not answered, up to the last check; only checks use it

	healthTimeout time.Duration // for everything to become healthy, once faults have ended
	searchTimeout time.Duration // for the search to find a write, and for a failed request to succeed

	checkLock sync.RWMutex // clients hold it for reading during a request, a check for writing

	recordLock sync.Mutex // guards the fields below
	accounts   []*account
	totals     Totals
	violations []string
}

// newRun prepares the run of the n-th profile, and starts nothing. Profiles of one seed draw different random numbers.
func newRun(o Options, p Profile, n uint64) *run {
	r := &run{
		Options: o, system: &system{profile: p}, httpClient: newHTTPClient(), rng: rand.New(rand.NewPCG(o.Seed, n)), began: time.Now(), unanswered: map[billLine]int64{},
		healthTimeout: time.Minute, searchTimeout: 15 * time.Second,
	}
	r.model = model.New(func(rule model.Rule, format string, args ...any) {
		r.reportViolation("%s: %s", rule, fmt.Sprintf(format, args...))
	})
	r.model.SoleWriters, r.model.RefundsInOrder = true, true
	return r
}

// runProfile starts the system, runs the load and all rounds, and checks the end only if no round found a violation: later violations would
// only follow from it.
func (r *run) runProfile(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.tearDown(r.KeepData)) }()
	r.givenUp = ctx.Done()
	if err := r.startAll(ctx, r.Options); err != nil {
		return err
	}
	if err := r.openAccounts(ctx); err != nil {
		return err
	}
	// load ends only the clients. Their requests use ctx, so that the last ones are not aborted.
	load, stop := context.WithCancel(ctx)
	clients := r.startClients(ctx, load.Done())
	err = r.runRounds(ctx)
	stop()
	clients.Wait()
	if err == nil && r.hasNoViolations() {
		r.checkAtEnd(ctx)
	}
	return err
}

// runRounds runs rounds of at most MaxKillsPerRound kills until all kills are done.
func (r *run) runRounds(ctx context.Context) error {
	faults := faultSequence{all: r.possibleFaults(), rng: r.rng}
	for done := 0; done < r.Kills && (r.hasNoViolations() || r.KeepGoing); {
		r.round.Add(1)
		kills := min(r.MaxKillsPerRound, r.Kills-done)
		if err := r.runRound(ctx, kills, faults.nextFault()); err != nil {
			return err
		}
		done += kills
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// runRound runs one round: kills and a fault under load, then a check. An error says that the round could not be completed.
func (r *run) runRound(ctx context.Context, kills int, f fault) error {
	r.logf("round %d: %d kills, and %s", r.round.Load(), kills, f)
	// during ends with the last kill, and short faults end with it. Each goroutine draws from its own random numbers, because r.rng is for one
	// goroutine.
	during, over := context.WithCancel(ctx)
	defer over()
	var work errgroup.Group
	killRNG, faultRNG := rand.New(rand.NewPCG(r.rng.Uint64(), 1)), rand.New(rand.NewPCG(r.rng.Uint64(), 2))
	work.Go(func() error {
		defer over()
		return r.killInstances(ctx, kills, f, killRNG)
	})
	work.Go(func() error { return r.injectFault(ctx, during, f, faultRNG) })
	if err := work.Wait(); err != nil {
		return err
	}
	if err := r.restartMissing(ctx); err != nil {
		return err
	}
	// The lock waits for the running requests and keeps the clients from new ones.
	r.checkLock.Lock()
	defer r.checkLock.Unlock()
	r.checkSystem(ctx)
	return nil
}

// restartMissing starts every instance that does not run, and restarts one that runs with few descriptors. The faults have
// ended, so an instance that does not start now is an error.
func (r *run) restartMissing(ctx context.Context) error {
	for _, i := range r.instances {
		p := i.current.Load()
		if p != nil && !p.endedByItself() && !p.limited {
			continue
		}
		if p != nil {
			i.kill()
		}
		if err := r.startInstance(ctx, i); err != nil {
			return fmt.Errorf("with everything healthy again: %w", err)
		}
	}
	return nil
}

// logf passes a line to Options.Log, with the profile and the seconds since its start.
func (r *run) logf(format string, args ...any) {
	if r.Log != nil {
		r.Log(fmt.Sprintf("%-8s %7.1f s  %s", r.profile, time.Since(r.began).Seconds(), fmt.Sprintf(format, args...)))
	}
}

// updateTotals calls f with the totals while it holds recordLock.
func (r *run) updateTotals(f func(*Totals)) {
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	f(&r.totals)
}

// reportViolation records and logs a violation. Once the run is given up, by a signal or its time limit, it does nothing:
// requests then fail for that reason.
func (r *run) reportViolation(format string, args ...any) {
	select {
	case <-r.givenUp:
		return
	default:
	}
	what := fmt.Sprintf("%s, round %d: %s", r.profile, r.round.Load(), oneLine(fmt.Sprintf(format, args...)))
	r.logf("VIOLATED: %s", what)
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	r.violations = append(r.violations, what)
}

// oneLine returns a text with line breaks and longer gaps replaced by single blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// hasNoViolations reports whether no violation was recorded so far.
func (r *run) hasNoViolations() bool { return r.violationCount() == 0 }

// violationCount returns how many violations were recorded.
func (r *run) violationCount() int {
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	return len(r.violations)
}

// Totals are the figures of the run of one profile. A write is in doubt when it was sent without an answer or answered 5xx.
type Totals struct {
	Kills        int `json:"kills"`
	NodeKills    int `json:"node_kills"`
	Rounds       int `json:"rounds"`
	Accounts     int `json:"accounts"`
	Sites        int `json:"sites"` // active at the end
	Requests     int `json:"requests"`
	Failed       int `json:"answered_5xx"`
	Unanswered   int `json:"unanswered"`
	Acknowledged int `json:"writes_acknowledged"`
	InDoubt      int `json:"writes_in_doubt"`
	Cut          int `json:"large_syncs_cut"` // large syncs whose connection broke before the answer
	Revocations  int `json:"revocations"`

	Billed           int64 `json:"billed"`
	BilledUnanswered int64 `json:"billed_unanswered"` // beyond what was answered
	Unlisted         int64 `json:"unlisted"`          // of these, not listed by reconcile for account and endpoint

	Seconds float64 `json:"seconds"`
}

// addAnswer counts an answer. A request whose connection could not be made was never sent and counts as a request only.
func (t *Totals) addAnswer(a answer) {
	t.Requests++
	switch {
	case a.status == 0 && a.sent:
		t.Unanswered++
	case a.status >= 500:
		t.Failed++
	}
}

// Report is the result of all profiles.
type Report struct {
	Seed       uint64             `json:"seed"`
	Totals     map[Profile]Totals `json:"profiles"`
	LeftOut    []string           `json:"left_out,omitempty"` // profiles and faults that this machine does not allow
	Violations []string           `json:"violations"`
}

// addRun adds the result of a profile.
func (rep *Report) addRun(r *run) {
	if rep.Totals == nil {
		rep.Totals = map[Profile]Totals{}
	}
	r.totals.Seconds = time.Since(r.began).Seconds()
	rep.Totals[r.profile] = r.totals
	rep.LeftOut = append(rep.LeftOut, r.leftOut...)
	rep.Violations = append(rep.Violations, r.violations...)
}
