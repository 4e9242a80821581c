// Package stranger attacks a service as a hostile stranger who has a valid key of each plan, and measures what that costs the other
// customers. The service is a separate process. Honest customers send small requests at a fixed rate: first alone, then along with more
// honest customers, then along with the stranger, who tries the attacks of a table one by one and finally all at once.
//
//	Run ──> openWorld: accounts, keys, sites ──> runPhases
//	runPhases ──> measureAlone, measureCrowd for each number of connections ──> playTurn for each attack, and for all of them
//	playTurn ──> attack.run: turn.repeat, turn.hold, turn.trickle ──> outcomes     the stranger, from 127.0.0.2
//	        └──> measureHonest: customers ──> measurement                          honest customers, from 127.0.0.1
//	watcher: anonymous memory of the process every 100 ms; kills it at MemoryGuard, so that the machine survives
//
// The stranger and the customers run in this process and share the processors of the service. Therefore an attack is compared with the
// load of honest customers over as many connections, and not with an idle service.
package stranger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lieudit/cmd/bench/harness"
)

// Options are the parameters of a run. All are required except Program, Only and Log.
type Options struct {
	Dir       string        // on the disk to use
	Program   string        // path of a build of cmd/bench whose service is attacked; "": this program
	For       time.Duration // how long the stranger plays; the other phases take about half of that in addition
	Only      []string      // names of attacks; empty: all of them
	Seed      uint64        // of the order of the attacks and of their random numbers
	Customers int           // honest ones, who are measured
	Rate      int           // requests a second of each
	Sites     int           // of the stranger's largest account; the others have as many as their plan allows, if that is fewer
	Log       func(line string)
}

// The limits for every turn.
const (
	memoryBound  = 1 << 30 // bytes of anonymous memory at any time
	latencyBound = 3       // times the p99 along with as many honest connections
	// noise is a p99 that is never a violation: the scheduler of a busy machine alone can cause it.
	noise = 5 * time.Millisecond
)

// MemoryGuard is the anonymous memory, in bytes, at which the process is killed.
const MemoryGuard = 6 << 30

// run is the state of one run. One goroutine uses it, except for the watcher, the customers and the attacks.
type run struct {
	Options
	attacks []attack
	world   *world
	start   func(context.Context) (target, error) // starts the service, again after its end, on the same data
	target  target
	watcher *watcher
	report  Report
}

// Run performs one run and reports on it. The error says why the run was not completed; the report then has what was measured before.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	r := &run{Options: o, report: newReport(o)}
	if r.attacks, err = selectAttacks(o.Only); err != nil {
		return r.report, err
	}
	s, err := newService(o)
	if err != nil {
		return r.report, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	r.start = s.start
	if err := r.startTarget(ctx); err != nil {
		return r.report, err
	}
	defer func() { r.watcher.stop() }()
	r.logf("opening accounts and writing the stranger's sites")
	if r.world, err = s.openWorld(ctx, o); err != nil {
		return r.report, err
	}
	return r.report, r.runPhases(ctx)
}

// selectAttacks returns the attacks with these names, or all if there are no names.
func selectAttacks(names []string) ([]attack, error) {
	all := allAttacks()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []attack
	for _, name := range names {
		i := slices.IndexFunc(all, func(a attack) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no attack has the name %q; there are %v", name, Names())
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Names returns the names of all attacks.
func Names() (names []string) {
	for _, a := range allAttacks() {
		names = append(names, a.name)
	}
	return names
}

// turnShare is the part of the stranger's time in which the attacks run one by one. In the rest they run all together.
const turnShare = 0.75

// durations divides the stranger's time into a turn for each attack and one for all together. A single attack gets all of it.
func (r *run) durations() (turn, together time.Duration) {
	if len(r.attacks) == 1 {
		return r.For, 0
	}
	turn = time.Duration(turnShare*float64(r.For)) / time.Duration(len(r.attacks))
	return turn, r.For - turn*time.Duration(len(r.attacks))
}

// runPhases runs the three phases and judges them. The seed decides the order of the attacks.
func (r *run) runPhases(ctx context.Context) error {
	defer func() { // a run that is interrupted may have violations too
		r.report.FinalMiB = inMiB(r.watcher.current())
		r.report.judge()
	}()
	turn, together := r.durations()
	if err := r.waitServing(ctx); err != nil {
		return err
	}
	if err := r.measureAlone(ctx, turn); err != nil {
		return err
	}
	for _, n := range r.crowdSizes() {
		// Where more is asked than the service can do, waiting grows with time: what is compared takes equally long.
		duration := turn
		if len(r.attacks) > 1 && n == connectionsOf(r.attacks) {
			duration = together
		}
		if err := r.measureCrowd(ctx, n, duration); err != nil {
			return err
		}
	}
	order := slices.Clone(r.attacks)
	rand.New(rand.NewPCG(r.Seed, 1)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, a := range order {
		if err := r.playTurn(ctx, a.name, []attack{a}, turn); err != nil {
			return err
		}
	}
	if together > 0 {
		return r.playTurn(ctx, Together, order, together)
	}
	return nil
}

// crowdSizes returns the numbers of connections of the attacks, and that of all together, without duplicates.
func (r *run) crowdSizes() (sizes []int) {
	for _, a := range r.attacks {
		sizes = append(sizes, a.connections)
	}
	if len(r.attacks) > 1 {
		sizes = append(sizes, connectionsOf(r.attacks))
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// connectionsOf returns how many connections the service works for at once during attacks.
func connectionsOf(attacks []attack) (n int) {
	for _, a := range attacks {
		n += a.connections
	}
	return n
}

// measureAlone measures the customers without other load.
func (r *run) measureAlone(ctx context.Context, duration time.Duration) error {
	r.logf("the customers alone, %v", duration.Round(time.Second))
	m := r.measureHonest(ctx, duration)
	r.report.Alone = m.figures()
	if len(m.refused) > 0 { // there is nothing to compare the other phases with
		return fmt.Errorf("customers alone were refused: %s", FormatCounts(m.refused))
	}
	return context.Cause(ctx)
}

// measureCrowd measures the customers while others like them load the service over n connections.
func (r *run) measureCrowd(ctx context.Context, n int, duration time.Duration) error {
	r.logf("the customers and %d honest connections, %v", n, duration.Round(time.Second))
	crowdCtx, stop := context.WithCancel(ctx)
	ended := r.startCrowd(crowdCtx, n)
	m := r.measureHonest(ctx, duration)
	stop()
	ended()
	r.report.Crowds = append(r.report.Crowds, Crowd{Connections: n, Figures: m.figures(), Refused: m.refused})
	return context.Cause(ctx)
}

// playTurn lets attacks run at the same time for a duration, and measures customers and memory meanwhile.
func (r *run) playTurn(ctx context.Context, name string, attacks []attack, duration time.Duration) error {
	if err := r.prepareTarget(ctx); err != nil {
		return err
	}
	if err := r.world.renewDiscovery(ctx); err != nil {
		return fmt.Errorf("before %s: %w", name, err)
	}
	r.logf("%s, %v", name, duration.Round(time.Second))
	result := Turn{Attack: name, Connections: connectionsOf(attacks), BaseMiB: inMiB(r.watcher.current())}
	r.watcher.resetPeak()
	began := time.Now()
	attackCtx, stop := context.WithCancel(ctx)
	ended := r.startAttacks(attackCtx, attacks, duration)
	m := r.measureHonest(ctx, duration)
	stop()
	result.Outcomes = ended()
	result.Seconds, result.PeakMiB = time.Since(began).Seconds(), inMiB(r.watcher.peak())
	result.addMeasurement(m)
	if r.target.hasEnded() {
		result.Died, result.Guarded = true, r.watcher.killed()
	} else {
		result.BusySeconds = r.waitIdle(ctx).Seconds()
	}
	r.report.Turns = append(r.report.Turns, result)
	return context.Cause(ctx)
}

// startAttacks starts attacks. The function that it returns waits for their end and returns the outcomes of each.
func (r *run) startAttacks(ctx context.Context, attacks []attack, duration time.Duration) (ended func() map[string]map[string]int) {
	done := make(chan struct{})
	turns := make([]*turn, len(attacks))
	for i, a := range attacks {
		turns[i] = newTurn(r.target.address, r.world, a, duration, r.Seed)
	}
	go func() {
		defer close(done)
		runAll(len(attacks), func(i int) { attacks[i].run(ctx, turns[i]) })
	}()
	return func() map[string]map[string]int {
		<-done
		all := map[string]map[string]int{}
		for i, a := range attacks {
			all[a.name] = turns[i].outcomes.counts()
		}
		return all
	}
}

// idleTimeout is how long the next turn is delayed if the service continues to work after the stranger has left.
const idleTimeout = 20 * time.Second

// waitIdle waits until the service uses less than a fifth of a processor, and returns how long that took. In that time the service works
// on requests whose clients have left; the next turn must not be measured along with that work.
func (r *run) waitIdle(ctx context.Context) time.Duration {
	const interval = 200 * time.Millisecond
	began := time.Now()
	for time.Since(began) < idleTimeout && !r.target.hasEnded() {
		before, err := r.target.processorTime()
		if err != nil || !pauseFor(ctx, interval) {
			break
		}
		if after, err := r.target.processorTime(); err != nil || after-before < interval/5 {
			return time.Since(began) - interval
		}
	}
	return time.Since(began)
}

// prepareTarget restarts the service if it has ended, or if it has kept memoryBound from an earlier turn. That is a violation of the
// earlier turn, and the next one would be blamed for it.
func (r *run) prepareTarget(ctx context.Context) error {
	if !r.target.hasEnded() {
		if r.watcher.current() < memoryBound {
			return nil
		}
		r.target.kill()
	}
	r.logf("starting the service again")
	r.watcher.stop()
	if err := r.startTarget(ctx); err != nil {
		return err
	}
	return r.waitServing(ctx)
}

// servingTimeout is how long the service may take to answer customers once it is ready.
const servingTimeout = time.Minute

// waitServing waits until a request of each kind succeeds.
func (r *run) waitServing(ctx context.Context) error {
	return harness.Retry(ctx, servingTimeout, retryPause, func() error {
		s := &session{customer: r.world.customers[0], host: r.target.address}
		defer s.disconnect()
		for _, k := range kinds() {
			status, _, err := s.send(ctx, k.request(s.customer, r.world, 0))
			if err == nil && status >= 400 {
				err = fmt.Errorf("%s is answered %d", k.name, status)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// startTarget starts the service and a watcher of its memory.
func (r *run) startTarget(ctx context.Context) (err error) {
	if r.target, err = r.start(ctx); err == nil {
		r.watcher = watch(r.target)
	}
	return err
}

func (r *run) logf(format string, args ...any) {
	if r.Log != nil {
		r.Log(fmt.Sprintf(format, args...))
	}
}

// pauseFor waits for d, and reports whether ctx has not ended meanwhile.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
