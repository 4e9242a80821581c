package simulation

import (
	"time"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore/clock"
)

// farAhead is how far a clock is ahead for a moment: a whole period of usage lies between.
const farAhead = 40 * 24 * time.Hour

// newClock makes the clock that a process uses on a machine. The days that the world passes over are elapsed time, as if all machines
// slept then. No machine is booted again.
func (w *World) newClock(machine *wallClock, isCompared bool, file string) *clock.Clock {
	elapsed := func() time.Duration { return w.wall.now().Sub(w.wall.begin) }
	sources := clock.Sources{Wall: machine.now, Elapsed: elapsed, Boot: func() (string, time.Duration) { return "the only one", elapsed() }}
	return clock.New(clock.Options{Sources: sources, IsCompared: isCompared, File: file, Log: w.log})
}

// now is the time that the instance on a node goes by: the node's wall clock, unless the instance does not believe that.
func (n *node) now() time.Time {
	if r := n.current(); r != nil {
		return r.instance.Now()
	}
	return n.wall.now()
}

// strikeFarAhead sets wall clocks 40 days ahead for a while: of an instance, of the logs' machine, or of all machines. The model is not
// told, since nobody may follow them.
func (w *World) strikeFarAhead(f faults.Fault) error {
	var ahead []*wallClock
	if f.Choice%3 != 0 {
		ahead = append(ahead, w.logClock)
	}
	for _, n := range w.nodes {
		isStruck := f.Instance < 0 || f.Instance == n.number
		if f.Choice%3 == 2 || f.Choice%3 == 0 && isStruck {
			ahead = append(ahead, n.wall)
		}
	}
	for _, c := range ahead {
		c.jump(farAhead)
		defer c.jump(-farAhead)
	}
	time.Sleep(f.For)
	return nil
}
