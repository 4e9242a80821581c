package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/caller"
	"lieudit/cmd/lieudit/fleet"
	"lieudit/http/server"
	"lieudit/schemas/plan"
)

const nodeName = "node"

// post is where an instance stands, one life after another.
type post struct {
	name     string
	number   int
	instance *fleet.Instance
	cutter   *cutter // nil: nothing is cut
	lives    []*life
	current  atomic.Pointer[life]
	times    []caller.Times // by connection, of what was served
}

// life is one process of an instance, from its start to its end, and what clients got from it.
type life struct {
	name    string
	key     string // its id
	token   string
	address string
	request []byte
	killed  bool

	served, spent, unavailable, broken, strange atomic.Int64

	// open is how many were told 503 since the last that was served: a tick of theirs may not be taken back yet.
	open atomic.Int64
}

// prepare starts the node and the instances and opens the account, with a key for each life that any instance may have.
func (r *run) prepare(ctx context.Context, dice *rand.Rand) (err error) {
	if r.node, err = fleet.Node(ctx, r.ground, nodeName); err != nil {
		return err
	}
	for i := range r.Instances {
		p := &post{name: fmt.Sprintf("instance %d", i+1), number: i + 1, times: make([]caller.Times, r.Connections)}
		r.posts = append(r.posts, p)
		if r.Chaos {
			if p.cutter, err = newCutter(ctx, r, p, dice.Uint64()); err != nil {
				return err
			}
		}
	}
	if err := r.raiseAll(ctx); err != nil {
		return err
	}
	for _, p := range r.posts {
		for _, l := range p.lives {
			l.address, l.request = p.instance.API, caller.Request(p.instance.API, server.Base+r.Path, l.token)
		}
		if err := p.known(ctx); err != nil {
			return err
		}
		p.current.Store(p.lives[0])
	}
	return nil
}

// raiseAll starts the instances and opens the account. The first starts alone: the first of a log leaves the operator's
// token in its folder.
func (r *run) raiseAll(ctx context.Context) error {
	ready := func(p *post) error {
		if err := r.raise(ctx, p, "127.0.0.1:0"); err != nil {
			return err
		}
		return p.instance.Ready(ctx)
	}
	if err := ready(r.posts[0]); err != nil {
		return err
	}
	var others errgroup.Group
	others.Go(func() error { return r.openAccount(ctx) })
	for _, p := range r.posts[1:] {
		others.Go(func() error { return ready(p) })
	}
	return others.Wait()
}

// raise starts a post's instance, or starts it again.
func (r *run) raise(ctx context.Context, p *post, listen string) (err error) {
	socket := r.ground.Socket(nodeName)
	if p.cutter != nil {
		socket = p.cutter.path
	}
	words := []string{"--no-demo", "--eventstore", "esdb+unix://" + socket}
	switch {
	case r.Postgres != "":
		words = append(words, "--postgres", r.Postgres)
	case p.number > 1: // the first instance has the vault; the others are asked for nothing that is sealed
		words = append(words, "--accept-lost-keys")
	}
	p.instance, err = fleet.Serve(ctx, r.ground, fmt.Sprintf("instance-%d", p.number), listen, words...)
	return err
}

// livesEach is how many lives an instance has at most.
const livesEach = 2

func (r *run) openAccount(ctx context.Context) error {
	office, err := r.posts[0].instance.Office()
	if err != nil {
		return err
	}
	name := plan.Discovery
	if most, ok := plan.Lookup(name); ok && r.Cap > most.Requests {
		name = plan.Business
	}
	if err := office.Open(ctx, account, name, r.Cap); err != nil {
		return err
	}
	for _, p := range r.posts {
		for n := range livesEach {
			l := &life{name: fmt.Sprintf("%s, life %d", p.name, n+1)}
			key, err := office.Key(ctx, account, l.name)
			if err != nil {
				return err
			}
			l.key, l.token = key.ID, key.Token
			p.lives = append(p.lives, l)
		}
	}
	return nil
}

// known waits until the instance knows the post's last key. An unknown path asked with it is not counted.
func (p *post) known(ctx context.Context) error {
	c, err := caller.Dial(ctx, p.instance.API)
	if err != nil {
		return err
	}
	defer c.Close()
	request := caller.Request(p.instance.API, server.Base+"/nowhere", p.lives[len(p.lives)-1].token)
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		switch status, err := c.Ask(request); {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			return nil
		case time.Now().After(late):
			return fmt.Errorf("%s still does not know its keys: %d", p.name, status)
		}
	}
}

func (p *post) calm(yes bool) {
	if p.cutter != nil {
		p.cutter.calm.Store(yes)
	}
}

func (p *post) close() {
	if p.cutter != nil {
		p.cutter.close()
	}
}
