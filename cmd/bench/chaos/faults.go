package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/eventstore/clock"
)

// fault is a failure of one part of the system, injected while instances are killed:
//
//	disk full          the data folder's file system is shrunk to what it holds, for 1 to 4 s, again and again
//	few descriptors    instances that start meanwhile may open 30 to 129 files and connections
//	postgres frozen    every process of the server is suspended (SIGSTOP): connections stay open and silent
//	postgres stopped   the server ends and its connections with it
//	log stalled        the node is suspended for 0.5 to 4 s, again and again
//	node killed        the node is killed and started again, again and again
type fault string

const (
	noFault         fault = "nothing else"
	diskFull        fault = "disk full"
	fewDescriptors  fault = "few descriptors"
	postgresFrozen  fault = "postgres frozen"
	postgresStopped fault = "postgres stopped"
	nodeStalled     fault = "log stalled"
	nodeKilled      fault = "node killed"
)

// possibleFaults returns the faults that can be injected into this system. A fault listed twice is injected twice as often. The disk can be
// filled only if mountDisk has mounted one.
func (s *system) possibleFaults() []fault {
	switch {
	case s.profile == Servers:
		return []fault{postgresStopped, nodeStalled, nodeKilled, postgresFrozen, fewDescriptors, noFault}
	case s.mount != "":
		return []fault{diskFull, fewDescriptors, diskFull, noFault}
	}
	return []fault{fewDescriptors, noFault}
}

// mayPreventStart reports whether an instance is allowed to end by itself, or not to start, during the fault. During all
// other faults it must start and continue.
func (f fault) mayPreventStart() bool { return f == diskFull || f == fewDescriptors }

// faultSequence draws faults in random order without replacement, and starts over once all were drawn. The same seed gives
// the same faults; which requests they hit depends on the machine.
type faultSequence struct {
	all, remaining []fault
	rng            *rand.Rand
}

// nextFault returns the fault of the next round.
func (s *faultSequence) nextFault() fault {
	if len(s.remaining) == 0 {
		s.remaining = slices.Clone(s.all)
		s.rng.Shuffle(len(s.remaining), func(i, j int) { s.remaining[i], s.remaining[j] = s.remaining[j], s.remaining[i] })
	}
	f := s.remaining[0]
	s.remaining = s.remaining[1:]
	return f
}

// randomDuration returns a random duration from least to most, both included.
func randomDuration(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}

// outageDuration returns the length of the next outage of Postgres: the second of every four has LongOutage, which outlasts the timeouts of
// connections and requests. So even a run of two outages has a long one.
func (r *run) outageDuration(rng *rand.Rand) time.Duration {
	r.outages++
	if r.LongOutage > 0 && r.outages%4 == 2 {
		return r.LongOutage
	}
	return randomDuration(rng, r.MinOutage, 2*r.MinOutage)
}

// injectFault injects a fault and returns after its end. Short faults are repeated until during ends, which is when the kills are done. An
// outage of Postgres happens once and runs to its full length, unless the run is given up.
func (r *run) injectFault(ctx, during context.Context, f fault, rng *rand.Rand) error {
	switch f {
	case postgresFrozen:
		return r.interruptPostgres(ctx, f, r.outageDuration(rng), r.postgres.Suspend, r.postgres.Resume)
	case postgresStopped:
		stop := func() error { r.postgres.Stop(); return nil }
		return r.interruptPostgres(ctx, f, r.outageDuration(rng), stop, func() error { return r.postgres.Start(context.WithoutCancel(ctx)) })
	case diskFull, fewDescriptors, nodeStalled, nodeKilled:
		return r.repeatFault(during, f, rng)
	}
	return nil
}

// interruptPostgres makes Postgres unavailable with begin, and available again with end once lasts has passed. It calls end even if ctx ends
// first, so that Postgres can be removed.
func (r *run) interruptPostgres(ctx context.Context, f fault, lasts time.Duration, begin, end func() error) error {
	r.logf("%s for %.1f s", f, lasts.Seconds())
	if err := begin(); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	clock.Sleep(ctx, lasts)
	r.logf("postgres is back")
	if err := end(); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return nil
}

// repeatFault injects a short fault again and again until ctx ends, with random pauses and lengths. Each fault is undone
// before it returns.
func (r *run) repeatFault(ctx context.Context, f fault, rng *rand.Rand) (err error) {
	for clock.Sleep(ctx, randomDuration(rng, 0, 1500*time.Millisecond)) && err == nil {
		switch f {
		case diskFull:
			err = r.fillDisk(ctx, randomDuration(rng, time.Second, 4*time.Second), rng.Int64N(2<<20))
		case fewDescriptors:
			r.limitDescriptors(ctx, 30+rng.Int64N(100), randomDuration(rng, time.Second, 5*time.Second))
		case nodeStalled:
			err = r.stallNode(randomDuration(rng, 500*time.Millisecond, 4*time.Second))
		case nodeKilled:
			err = r.killNode(context.WithoutCancel(ctx), randomDuration(rng, 0, 500*time.Millisecond))
		}
	}
	return err
}

// fillDisk shrinks the disk for a while so that left bytes are free. The service may write between the measurement and the change of size; then
// the change fails and the disk does not fill up this time, which is not an error.
func (r *run) fillDisk(ctx context.Context, lasts time.Duration, left int64) error {
	used, err := usedSpace(r.mount)
	if err != nil {
		return err
	}
	r.logf("disk full but for %d KiB for %.1f s", left>>10, lasts.Seconds())
	err = resize(r.mount, fmt.Sprint(used+left))
	if err == nil {
		clock.Sleep(ctx, lasts)
	}
	if err := resize(r.mount, diskSize); err != nil {
		return err
	}
	if err != nil { // more was written meanwhile than fits
		r.logf("the disk could not be filled: %v", err)
	}
	return nil
}

// resize changes the size of a mounted tmpfs and keeps its files. A file that fills the disk would take memory; this does
// not.
func resize(mount, size string) error {
	if output, err := exec.Command("mount", "-o", "remount,size="+size, mount).CombinedOutput(); err != nil {
		return fmt.Errorf("resize the disk: %w: %s", err, output)
	}
	return nil
}

// limitDescriptors gives processes that start during lasts only n file descriptors. They keep that limit until they end.
func (r *run) limitDescriptors(ctx context.Context, n int64, lasts time.Duration) {
	r.logf("instances that start have %d descriptors", n)
	r.maxDescriptors.Store(n)
	clock.Sleep(ctx, lasts)
	r.maxDescriptors.Store(0)
}

// killNode kills the log node and starts it again after a pause, on the same folder and socket.
func (r *run) killNode(ctx context.Context, pause time.Duration) (err error) {
	r.nodeLock.Lock()
	defer r.nodeLock.Unlock()
	r.node.Kill()
	r.updateTotals(func(t *Totals) { t.NodeKills++ })
	r.logf("node killed")
	time.Sleep(pause)
	r.node, err = harness.StartNode(ctx, r.workDir, nodeName)
	return err
}

// killInstances kills instances under load until it has done this many kills, and starts them again. Usually it kills one; in one of five cases
// two at once, if there are two; in one of six cases it kills the next process while that is starting. An instance that ended by itself is
// started again and not counted.
func (r *run) killInstances(ctx context.Context, kills int, f fault, rng *rand.Rand) error {
	for n := 0; n < kills; {
		if !clock.Sleep(ctx, randomDuration(rng, 100*time.Millisecond, r.MaxPause)) {
			return nil
		}
		victims := []*instance{r.instances[rng.IntN(len(r.instances))]}
		if len(r.instances) > 1 && kills-n > 1 && rng.IntN(5) == 0 {
			victims = r.instances[:2]
		}
		for _, i := range victims {
			n += r.killInstance(i, f)
		}
		if n < kills && rng.IntN(6) == 0 {
			if err := r.killAtStart(victims[0], randomDuration(rng, 50*time.Millisecond, 400*time.Millisecond)); err != nil {
				return err
			}
			n++
		}
		time.Sleep(randomDuration(rng, 0, 200*time.Millisecond))
		for _, i := range victims {
			if err := r.restartInstance(ctx, i, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// killInstance kills the process of an instance and returns how many kills that were: 0 if none was running, or if it had ended by itself.
func (r *run) killInstance(i *instance, f fault) int {
	p := i.current.Load()
	if p == nil {
		return 0
	}
	hadEnded := p.endedByItself()
	i.kill()
	if hadEnded {
		r.logf("%s ended by itself", p.name)
		if !f.mayPreventStart() {
			r.reportViolation("%s ended by itself: %s", p.name, p.process.LastStderr())
		}
		return 0
	}
	r.updateTotals(func(t *Totals) { t.Kills++ })
	r.logf("%s killed", p.name)
	return 1
}

// killAtStart starts a process on the instance's data folder and kills it while it is still starting. The instance must
// have no other process. Clients never see this one.
func (r *run) killAtStart(i *instance, after time.Duration) error {
	p, err := harness.LaunchInstance(r.workDir, i.name, harness.AnyPort, r.serveFlags()...)
	if err != nil {
		return err
	}
	time.Sleep(after)
	p.Kill()
	r.updateTotals(func(t *Totals) { t.Kills++ })
	r.logf("%s killed %d ms after its start", i.name, after.Milliseconds())
	return nil
}

// restartInstance starts an instance. If the fault may have prevented that, it returns nil: restartMissing starts it later.
func (r *run) restartInstance(ctx context.Context, i *instance, f fault) error {
	err := r.startInstance(ctx, i)
	if err != nil && f.mayPreventStart() {
		r.logf("%s does not start while there is %s", i.name, f)
		return nil
	}
	return err
}
