package trial

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"lieudit/cmd/lieudit/fleet"
)

// nodeKills is how often the node is killed.
const nodeKills = 2

// blow is a process that is killed once so many requests have been served, and started again after a while.
type blow struct {
	at    int64
	post  *post // nil: the node
	pause time.Duration
}

// blows are the chaos of a seed: every instance once, and the node, while there is still something to serve.
func (r *run) blows(dice *rand.Rand) (all []blow) {
	if !r.Chaos {
		return nil
	}
	victims := append(slices.Clone(r.posts), make([]*post, nodeKills)...)
	for _, p := range victims {
		share := 0.05 + 0.8*dice.Float64()
		all = append(all, blow{int64(share * float64(min(r.Cap, r.Requests))), p, time.Duration(dice.Int64N(int64(300 * time.Millisecond)))})
	}
	slices.SortFunc(all, func(a, b blow) int { return cmp.Compare(a.at, b.at) })
	return all
}

// strike does the blows, one after another, until the clients are done.
func (r *run) strike(ctx context.Context, blows []blow) error {
	for _, b := range blows {
		if !r.reaches(ctx, b.at) {
			return nil
		}
		do := r.killNode
		if b.post != nil {
			do = r.killInstance
		}
		if err := do(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// reaches waits until so many requests have been served.
func (r *run) reaches(ctx context.Context, served int64) bool {
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

func (r *run) killInstance(ctx context.Context, b blow) error {
	p := b.post
	p.instance.Kill()
	p.lives[0].killed = true
	r.note("%s (process %d) killed", p.name, p.instance.ID())
	time.Sleep(b.pause)
	p.current.Store(p.lives[1])
	if err := r.raise(ctx, p, p.lives[1].address); err != nil {
		return err
	}
	r.note("%s (process %d) started again", p.name, p.instance.ID())
	return nil
}

func (r *run) killNode(ctx context.Context, b blow) (err error) {
	r.node.Kill()
	r.note("node (process %d) killed", r.node.ID())
	time.Sleep(b.pause)
	if r.node, err = fleet.Node(ctx, r.ground, nodeName); err != nil {
		return err
	}
	r.note("node (process %d) started again", r.node.ID())
	return nil
}
