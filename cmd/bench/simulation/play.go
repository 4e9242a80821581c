package simulation

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore/clock"
	"lieudit/schemas/event"
)

// Play plays a script, including the end of the instances, and returns the rules that were broken. It stops after the first day with a
// violation. It must run in a bubble.
func Play(ctx context.Context, s Script, folder string, log *slog.Logger) ([]Violation, error) {
	w, err := NewWorld(folder, s.Begin.Add(-startTime), log)
	if err != nil {
		return nil, err
	}
	var known []customers.Address
	if s.HasRegion {
		if w.region, err = newRegion(ctx, filepath.Join(folder, "region"), w.communes, s.Seed, s.Begin); err != nil {
			return nil, err
		}
		known = w.region.addresses
	}
	w.seed, w.closing, w.shards = s.Seed, lateClosing, s.Shards
	if s.UpgradeDay != 0 {
		w.newLogFormat = event.HighestFormat - 1
	}
	if s.ClosesPromptly {
		w.closing = promptClosing
	}
	if s.HasServers {
		w.startServers()
	}
	people := customers.New(w, s.Accounts, known)
	w.people, people.Model.PeriodGrace = people, w.closing.grace
	w.Start()
	err = w.playDays(ctx, s, people)
	w.Stop()
	return w.Violations(), err
}

// startTime is longer than the instances need to start, in elapsed time, so that the first day begins when the script wants it to.
const startTime = time.Minute

// playDays plays one day after another, up to the first on which a rule was broken.
func (w *World) playDays(ctx context.Context, s Script, people *customers.Customers) error {
	w.awaitQuiet(ctx)
	w.OperatorToken() // keeps the token before a fault can remove its file
	if err := w.keepFirstVault(); err != nil {
		return err
	}
	var earlier, before *quietMoment // of the last two days: a restored log has lost a day
	w.wall.jump(s.Begin.Sub(w.wall.now()))
	for number, d := range s.Days {
		begun := w.wall.now()
		w.log.Info("day", "number", number, "wall", begun)
		if _, restores := restoreOf(d); restores && earlier != nil {
			before = nil // the log no longer contains it
		}
		earlier, before = before, w.playDay(ctx, d, people, earlier)
		if number%rebuildInterval == rebuildInterval-1 {
			w.checkRebuilds(ctx, people)
		}
		if len(w.Violations()) > 0 {
			return nil
		}
		clock.Sleep(ctx, d.Idle)
		w.wall.jump(max(d.Until-w.wall.now().Sub(begun), 0))
	}
	return nil
}

// quietMoment is the state that a restored log makes the truth again.
type quietMoment struct {
	moment
	known customers.Snapshot
}

// playDay plays one day up to its quiet moment, which it returns.
func (w *World) playDay(ctx context.Context, d Day, people *customers.Customers, earlier *quietMoment) *quietMoment {
	if f, restores := restoreOf(d); restores && earlier != nil && !people.HasErasedSince(earlier.known) { // erased data stays unreadable, on a log without the reason
		end := w.beginDisturbance()
		if err := w.restoreLogs(earlier.moment, f.Choice%2 == 0); err != nil {
			w.Report(customers.EndsInTime, "restoring: %v", err)
		}
		people.Restore(earlier.known)
		w.awaitQuiet(ctx)
		people.RebuildAll(ctx) // as the guide tells the operator
		w.awaitQuiet(ctx)
		if _, err := w.keepMoment(); err != nil { // yesterday's read models belong to the log before
			w.Report(customers.EndsInTime, "keeping a moment: %v", err)
		}
		end()
	}
	var happening, watching sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	watching.Go(func() { w.watchCheckpoints(watched) })
	w.strikeAll(d.Faults, &happening)
	people.Play(ctx, d.Acts)
	happening.Wait()
	w.awaitQuiet(ctx)
	stop()
	watching.Wait()
	lookedAt := w.usage.LastPosition()
	people.CheckQuiet(ctx, w.wall.now())
	w.checkClosings(ctx, people.Model, lookedAt)
	w.checkInstances(ctx)
	m, err := w.keepMoment()
	if err != nil {
		w.Report(customers.EndsInTime, "keeping a moment: %v", err)
	}
	return &quietMoment{m, people.Snapshot()}
}

// restoreOf returns the fault that restores the logs on a day. It comes before the day's acts, since the restored log loses what happened in
// between.
func restoreOf(d Day) (f faults.Fault, ok bool) {
	for _, f := range d.Faults {
		if f.Kind == faults.LogRestored {
			return f, true
		}
	}
	return f, false
}

// strikeAll makes the faults of a day happen at their times. Of the faults that end all instances, one that would begin during another is left
// out.
func (w *World) strikeAll(all []faults.Fault, happening *sync.WaitGroup) {
	var one sync.Mutex
	for _, f := range all {
		if f.Kind == faults.LogRestored {
			continue
		}
		happening.Go(func() {
			time.Sleep(f.At)
			if rare[f.Kind] && !one.TryLock() {
				return
			} else if rare[f.Kind] {
				defer one.Unlock()
			}
			w.strike(f)
		})
	}
}

// settleTime is the time until nothing is under way any more, once nothing fails and nobody asks.
const settleTime = 22 * time.Second

// awaitQuiet starts the instances that do not run, and waits for the longest time that anything takes to come to rest.
func (w *World) awaitQuiet(ctx context.Context) {
	w.Start()
	clock.Sleep(ctx, settleTime)
}

// checkInstances checks that every instance is ready, and that no part of it complains.
func (w *World) checkInstances(ctx context.Context) {
	for _, n := range w.nodes {
		r := n.current()
		if r == nil {
			w.Report(customers.InstancesReady, "instance %d does not run", n.number)
			continue
		}
		for _, c := range r.instance.Components() {
			if err := c.Check(ctx); err != nil {
				w.Report(customers.InstancesReady, "instance %d, %s: %v", n.number, c.Name, err)
			}
		}
		if err := r.instance.CheckCaughtUp(ctx); err != nil {
			w.Report(customers.InstancesReady, "instance %d: %v", n.number, err)
		}
	}
}
