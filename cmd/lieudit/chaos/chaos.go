// Package chaos is the chaos test of the whole service: real processes of this program under load, killed (kill -9)
// while parts of what they stand on fail: the disk is full, Postgres is away, the log is silent, descriptors run out.
// Clients note every answer. After each round, with everything healthy again, what was acknowledged must be there, and
// what is there must have been asked for: sites, keys, revocations, quotas, bills, projections.
//
//	run ──> round ──> strike (kills), inject (a fault)       on a system: instances, node, Postgres, disk
//	          │           clients ──> send ──> bill, referential   what was answered
//	          └──> check ──> violations                       what is there, held against it
//
// A referential is written by one client, one request at a time. So all it may hold is known: one state, or several
// while a write is in doubt, because its answer did not come. An answer that no possible state gives is a violation, and
// so is a list that shows none of them: a lost row, half a sync, a write that came back. Every row says which write it is
// of (its edition), and its version counts the writes.
//
// Requests are counted as they are answered, by account and endpoint. The bill must hold them all, and beyond them no
// more than what a kill left without an answer.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/fleet"
)

// Options say what a run is made of. All fields but Keep, LongOutage and Tell are required.
type Options struct {
	Dir       string // on the disk to use
	Profiles  []Profile
	Kills     int // of instances, over all profiles
	PerRound  int // kills between two checks, at most
	Instances int // of the servers profile
	Rows      int // of the largest sync
	Seed      uint64
	Limit     time.Duration // of all profiles together

	Pause       time.Duration // between two kills, at most
	ShortOutage time.Duration // of Postgres, at least; twice as long at most
	LongOutage  time.Duration // of Postgres, now and then; 0 for never

	KeepGoing bool // after a round with violations
	Keep      bool // the data, for who looks into it
	Tell      func(what string)
}

// ErrTimeUp: the kills could not all be done within the limit.
var ErrTimeUp = errors.New("the time was up before all kills were done")

// Run runs every profile and reports on it. The error says why it could not be done; violations are in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	rep := Report{Seed: o.Seed, Violations: []string{}}
	profiles := []Profile{}
	for _, p := range o.Profiles {
		if p == Servers && fleet.PostgresBin() == "" {
			rep.LeftOut = append(rep.LeftOut, "servers: there is no Postgres on this machine")
			continue
		}
		profiles = append(profiles, p)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, ErrTimeUp)
	defer cancel()
	for n, p := range profiles {
		r := newRun(o, p, uint64(n))
		r.Kills = o.Kills*(n+1)/len(profiles) - o.Kills*n/len(profiles)
		err := r.do(ctx)
		rep.add(r)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", p, err)
		}
	}
	return rep, nil
}

// run is one profile on its way.
type run struct {
	Options
	*system
	dice    *rand.Rand
	bill    *bill
	began   time.Time
	stopped <-chan struct{} // closed when the run is given up
	round   atomic.Int64
	outages int

	healthTime time.Duration // until everything is well again, once nothing fails any more
	foundTime  time.Duration // until a write is found

	quiet sync.RWMutex // held for reading by a client's request, for writing by a check

	noted      sync.Mutex // guards what follows
	accounts   []*account
	totals     Totals
	violations []string
}

func newRun(o Options, p Profile, n uint64) *run {
	return &run{
		Options: o, system: &system{profile: p}, dice: rand.New(rand.NewPCG(o.Seed, n)), bill: newBill(), began: time.Now(),
		healthTime: time.Minute, foundTime: 15 * time.Second,
	}
}

func (r *run) do(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.clear(r.Keep)) }()
	r.stopped = ctx.Done()
	if err := r.raise(ctx, r.Options); err != nil {
		return err
	}
	if err := r.openAccounts(ctx); err != nil {
		return err
	}
	load, stop := context.WithCancel(ctx)
	clients := r.load(ctx, load.Done())
	err = r.rounds(ctx)
	stop()
	clients.Wait()
	if err == nil && r.clean() {
		r.last(ctx)
	}
	return err
}

// rounds does the kills, a check after so many.
func (r *run) rounds(ctx context.Context) error {
	faults := deck{all: r.faults(), dice: r.dice}
	for done := 0; done < r.Kills && (r.clean() || r.KeepGoing); {
		r.round.Add(1)
		kills := min(r.PerRound, r.Kills-done)
		if err := r.one(ctx, kills, faults.deal()); err != nil {
			return err
		}
		done += kills
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// one is a round: kills and a fault under load, then a check.
func (r *run) one(ctx context.Context, kills int, f fault) error {
	r.note("round %d: %d kills, and %s", r.round.Load(), kills, f)
	during, over := context.WithCancel(ctx)
	defer over()
	var work errgroup.Group
	ofKills, ofFaults := rand.New(rand.NewPCG(r.dice.Uint64(), 1)), rand.New(rand.NewPCG(r.dice.Uint64(), 2))
	work.Go(func() error {
		defer over()
		return r.strike(ctx, kills, f, ofKills)
	})
	work.Go(func() error { return r.inject(ctx, during, f, ofFaults) })
	if err := work.Wait(); err != nil {
		return err
	}
	if err := r.heal(ctx); err != nil {
		return err
	}
	r.quiet.Lock()
	defer r.quiet.Unlock()
	r.check(ctx)
	return nil
}

// heal starts what does not run.
func (r *run) heal(ctx context.Context) error {
	for _, i := range r.instances {
		l := i.current.Load()
		if l != nil && !l.gone() && !l.limited {
			continue
		}
		if l != nil {
			i.kill()
			r.bill.killed(l)
		}
		if err := r.start(ctx, i); err != nil {
			return fmt.Errorf("with everything healthy again: %w", err)
		}
	}
	return nil
}

func (r *run) note(format string, args ...any) {
	if r.Tell != nil {
		r.Tell(fmt.Sprintf("%-8s %7.1f s  %s", r.profile, time.Since(r.began).Seconds(), fmt.Sprintf(format, args...)))
	}
}

func (r *run) count(f func(*Totals)) {
	r.noted.Lock()
	defer r.noted.Unlock()
	f(&r.totals)
}

// violate tells what does not hold. Of a run that is given up nothing is known any more.
func (r *run) violate(format string, args ...any) {
	select {
	case <-r.stopped:
		return
	default:
	}
	what := fmt.Sprintf("%s, round %d: %s", r.profile, r.round.Load(), oneLine(fmt.Sprintf(format, args...)))
	r.note("VIOLATED: %s", what)
	r.noted.Lock()
	defer r.noted.Unlock()
	r.violations = append(r.violations, what)
}

// oneLine is a text as a line of the report.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (r *run) clean() bool { return r.found() == 0 }

// found is how many violations there are.
func (r *run) found() int {
	r.noted.Lock()
	defer r.noted.Unlock()
	return len(r.violations)
}
