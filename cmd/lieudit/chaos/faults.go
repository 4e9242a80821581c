package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"lieudit/cmd/lieudit/fleet"
)

// fault is a part of the system that fails while the rest works, and instances are killed.
type fault string

const (
	calm            fault = "nothing else"
	diskFull        fault = "disk full"
	fewDescriptors  fault = "few descriptors"
	postgresFrozen  fault = "postgres frozen"
	postgresStopped fault = "postgres stopped"
	nodeStalled     fault = "log stalled"
	nodeKilled      fault = "node killed"
)

// faults are those that can happen to a system.
func (s *system) faults() []fault {
	switch {
	case s.profile == Servers:
		return []fault{postgresStopped, nodeStalled, nodeKilled, postgresFrozen, fewDescriptors, calm}
	case s.mount != "":
		return []fault{diskFull, fewDescriptors, diskFull, calm}
	}
	return []fault{fewDescriptors, calm}
}

// mayPreventStart says whether an instance need not start, nor live on, while the fault lasts.
func (f fault) mayPreventStart() bool { return f == diskFull || f == fewDescriptors }

// deck deals faults in random order, each as often as the others, so that some rounds see them all. A seed has its faults;
// which request they meet is the machine's.
type deck struct {
	all, left []fault
	dice      *rand.Rand
}

func (d *deck) deal() fault {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.all)
		d.dice.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	f := d.left[0]
	d.left = d.left[1:]
	return f
}

// between draws a duration.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)+1))
}

// sleep waits, or says that there is no time left.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// outages are how long Postgres is away, in turn: seconds, and once as long as connections and patience last.
func (r *run) outage(dice *rand.Rand) time.Duration {
	r.outages++
	if r.LongOutage > 0 && r.outages%4 == 2 {
		return r.LongOutage
	}
	return between(dice, r.ShortOutage, 2*r.ShortOutage)
}

// inject makes a fault happen, again and again until the kills are done and during ends, and heals it. Postgres is away
// once, to the end of its time.
func (r *run) inject(ctx, during context.Context, f fault, dice *rand.Rand) error {
	switch f {
	case postgresFrozen:
		return r.away(ctx, f, r.outage(dice), r.cluster.Freeze, r.cluster.Thaw)
	case postgresStopped:
		stop := func() error { r.cluster.Stop(); return nil }
		return r.away(ctx, f, r.outage(dice), stop, func() error { return r.cluster.Start(context.WithoutCancel(ctx)) })
	case diskFull, fewDescriptors, nodeStalled, nodeKilled:
		return r.recur(during, f, dice)
	}
	return nil
}

// away takes Postgres away for a while.
func (r *run) away(ctx context.Context, f fault, lasts time.Duration, begin, end func() error) error {
	r.note("%s for %.1f s", f, lasts.Seconds())
	if err := begin(); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	sleep(ctx, lasts)
	r.note("postgres is back")
	if err := end(); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return nil
}

// recur makes short faults happen one after another.
func (r *run) recur(ctx context.Context, f fault, dice *rand.Rand) (err error) {
	for sleep(ctx, between(dice, 0, 1500*time.Millisecond)) && err == nil {
		switch f {
		case diskFull:
			err = r.fillDisk(ctx, between(dice, time.Second, 4*time.Second), dice.Int64N(2<<20))
		case fewDescriptors:
			r.limitDescriptors(ctx, 30+dice.Int64N(100), between(dice, time.Second, 5*time.Second))
		case nodeStalled:
			err = r.stallNode(between(dice, 500*time.Millisecond, 4*time.Second))
		case nodeKilled:
			err = r.killNode(context.WithoutCancel(ctx), between(dice, 0, 500*time.Millisecond))
		}
	}
	return err
}

// fillDisk leaves so many bytes of the disk for a while.
func (r *run) fillDisk(ctx context.Context, lasts time.Duration, left int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(r.mount, &disk); err != nil {
		return err
	}
	used := int64(disk.Blocks-disk.Bfree) * int64(disk.Bsize)
	r.note("disk full but for %d KiB for %.1f s", left>>10, lasts.Seconds())
	err := resize(r.mount, fmt.Sprint(used+left))
	if err == nil {
		sleep(ctx, lasts)
	}
	if err := resize(r.mount, diskSize); err != nil {
		return err
	}
	if err != nil { // more was written meanwhile than it was to hold
		r.note("the disk could not be filled: %v", err)
	}
	return nil
}

// resize makes a mounted disk larger or smaller, with what it holds. It takes no memory, as a file that fills it would.
func resize(mount, size string) error {
	if said, err := exec.Command("mount", "-o", "remount,size="+size, mount).CombinedOutput(); err != nil {
		return fmt.Errorf("resize the disk: %w: %s", err, said)
	}
	return nil
}

// limitDescriptors holds instances that start to so many descriptors for a while.
func (r *run) limitDescriptors(ctx context.Context, n int64, lasts time.Duration) {
	r.note("instances that start have %d descriptors", n)
	r.descriptors.Store(n)
	sleep(ctx, lasts)
	r.descriptors.Store(0)
}

// stallNode lets the node fall silent for a while.
func (r *run) stallNode(lasts time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note("log stalled for %.1f s", lasts.Seconds())
	if err := r.node.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(lasts)
	return r.node.Signal(syscall.SIGCONT)
}

// killNode kills the node and starts it again after a pause.
func (r *run) killNode(ctx context.Context, pause time.Duration) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.Kill()
	r.count(func(t *Totals) { t.NodeKills++ })
	r.note("node killed")
	time.Sleep(pause)
	r.node, err = fleet.Node(ctx, r.ground, nodeName)
	return err
}

// strike kills instances under load, so many times, and starts them again.
func (r *run) strike(ctx context.Context, kills int, f fault, dice *rand.Rand) error {
	for n := 0; n < kills; {
		if !sleep(ctx, between(dice, 100*time.Millisecond, r.Pause)) {
			return nil
		}
		victims := []*instance{r.instances[dice.IntN(len(r.instances))]}
		if len(r.instances) > 1 && kills-n > 1 && dice.IntN(5) == 0 {
			victims = r.instances[:2]
		}
		for _, i := range victims {
			n += r.killInstance(i, f)
		}
		if n < kills && dice.IntN(6) == 0 {
			if err := r.killAtStart(victims[0], between(dice, 50*time.Millisecond, 400*time.Millisecond)); err != nil {
				return err
			}
			n++
		}
		time.Sleep(between(dice, 0, 200*time.Millisecond))
		for _, i := range victims {
			if err := r.revive(ctx, i, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// killInstance kills what runs, and says how many that are.
func (r *run) killInstance(i *instance, f fault) int {
	l := i.current.Load()
	if l == nil {
		return 0
	}
	alone := l.gone()
	i.kill()
	r.bill.killed(l)
	if alone {
		r.note("%s ended by itself", l.name)
		if !f.mayPreventStart() {
			r.violate("%s ended by itself: %s", l.name, l.process.Complaint())
		}
		return 0
	}
	r.count(func(t *Totals) { t.Kills++ })
	r.note("%s killed", l.name)
	return 1
}

// killAtStart kills a process that has only begun to start.
func (r *run) killAtStart(i *instance, after time.Duration) error {
	words := append([]string{"serve", "--data", r.ground.Folder(i.name), "--listen", "127.0.0.1:0", "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, r.words()...)
	p, err := fleet.Start(r.ground, i.name, words...)
	if err != nil {
		return err
	}
	time.Sleep(after)
	p.Kill()
	r.count(func(t *Totals) { t.Kills++ })
	r.note("%s killed %d ms after its start", i.name, after.Milliseconds())
	return nil
}

// revive starts an instance. While a fault lasts that may prevent it, it is tried again after that.
func (r *run) revive(ctx context.Context, i *instance, f fault) error {
	err := r.start(ctx, i)
	if err != nil && f.mayPreventStart() {
		r.note("%s does not start while there is %s", i.name, f)
		return nil
	}
	return err
}
