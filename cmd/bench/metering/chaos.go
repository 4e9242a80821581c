package metering

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"lieudit/cmd/bench/harness"
)

// nodeKills is how often the node is killed.
const nodeKills = 2

// fault is a process that is killed once so many requests have been served, and started again after a while.
type fault struct {
	afterServed int64
	instance    *instance // nil: the node
	pause       time.Duration
}

// planFaults are the chaos of a seed: every instance once, and the node, while there is still something to serve.
func (r *run) planFaults(rng *rand.Rand) (all []fault) {
	if !r.Chaos {
		return nil
	}
	victims := append(slices.Clone(r.instances), make([]*instance, nodeKills)...)
	for _, p := range victims {
		share := 0.05 + 0.8*rng.Float64()
		all = append(all, fault{int64(share * float64(min(r.Cap, r.Requests))), p, time.Duration(rng.Int64N(int64(300 * time.Millisecond)))})
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.afterServed, b.afterServed) })
	return all
}

// injectFaults does the blows, one after another, until the clients are done.
func (r *run) injectFaults(ctx context.Context, faults []fault) error {
	for _, b := range faults {
		if !r.waitServed(ctx, b.afterServed) {
			return nil
		}
		do := r.killNode
		if b.instance != nil {
			do = r.killInstance
		}
		if err := do(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// waitServed waits until so many requests have been served.
func (r *run) waitServed(ctx context.Context, served int64) bool {
	for r.served.Load() < served {
		select {
		case <-ctx.Done():
			return false
		case <-r.done:
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}

func (r *run) killInstance(ctx context.Context, b fault) error {
	p := b.instance
	p.service.Kill()
	p.processes[0].killed = true
	r.logIncident("%s (process %d) killed", p.name, p.service.PID())
	time.Sleep(b.pause)
	p.current.Store(p.processes[1])
	if err := r.startInstance(ctx, p, p.processes[1].address); err != nil {
		return err
	}
	r.logIncident("%s (process %d) started again", p.name, p.service.PID())
	return nil
}

func (r *run) killNode(ctx context.Context, b fault) (err error) {
	r.node.Kill()
	r.logIncident("node (process %d) killed", r.node.PID())
	time.Sleep(b.pause)
	if r.node, err = harness.StartNode(ctx, r.workDir, nodeName); err != nil {
		return err
	}
	r.logIncident("node (process %d) started again", r.node.PID())
	return nil
}
