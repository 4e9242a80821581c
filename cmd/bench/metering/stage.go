package metering

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/loadclient"
	"lieudit/http/api"
	"lieudit/schemas/plan"
)

const nodeName = "node"

// instance is where an instance stands, one life after another.
type instance struct {
	name      string
	number    int
	service   *harness.Instance
	proxy     *cutProxy // nil: nothing is cut
	processes []*process
	current   atomic.Pointer[process]
	latencies []loadclient.Latencies // by connection, of what was served
}

// process is one process of an instance, from its start to its end, and what clients got from it.
type process struct {
	name    string
	key     string // its id
	token   string
	address string
	request []byte
	killed  bool

	served, refused, unavailable, broken, unexpected atomic.Int64

	// openRefunds is how many were told 503 since the last that was served: a tick of theirs may not be taken back yet.
	openRefunds atomic.Int64
}

// startEnvironment starts the node and the instances and opens the account, with a key for each life that any instance may have.
func (r *run) startEnvironment(ctx context.Context, rng *rand.Rand) (err error) {
	if r.node, err = harness.StartNode(ctx, r.workDir, nodeName); err != nil {
		return err
	}
	for i := range r.Instances {
		p := &instance{name: fmt.Sprintf("instance %d", i+1), number: i + 1, latencies: make([]loadclient.Latencies, r.Connections)}
		r.instances = append(r.instances, p)
		if r.Chaos {
			if p.proxy, err = newCutProxy(ctx, r, p, rng.Uint64()); err != nil {
				return err
			}
		}
	}
	if err := r.startInstances(ctx); err != nil {
		return err
	}
	for _, p := range r.instances {
		for _, l := range p.processes {
			l.address, l.request = p.service.API, loadclient.EncodeGet(p.service.API, api.Base+r.Path, l.token)
		}
		if err := p.waitKeyKnown(ctx); err != nil {
			return err
		}
		p.current.Store(p.processes[0])
	}
	return nil
}

// startInstances starts the instances and opens the account. The first starts alone: the first of a log leaves the operator's
// token in its folder.
func (r *run) startInstances(ctx context.Context) error {
	ready := func(p *instance) error {
		if err := r.startInstance(ctx, p, "127.0.0.1:0"); err != nil {
			return err
		}
		return p.service.WaitReady(ctx)
	}
	if err := ready(r.instances[0]); err != nil {
		return err
	}
	var others errgroup.Group
	others.Go(func() error { return r.openAccount(ctx) })
	for _, p := range r.instances[1:] {
		others.Go(func() error { return ready(p) })
	}
	return others.Wait()
}

// startInstance starts a post's instance, or starts it again.
func (r *run) startInstance(ctx context.Context, p *instance, listen string) (err error) {
	socket := r.workDir.SocketPath(nodeName)
	if p.proxy != nil {
		socket = p.proxy.path
	}
	args := []string{"--no-demo", "--eventstore", "esdb+unix://" + socket}
	switch {
	case r.Postgres != "":
		args = append(args, "--postgres", r.Postgres)
	case p.number > 1: // the first instance has the vault; the others are asked for nothing that is sealed
		args = append(args, "--accept-lost-keys")
	}
	p.service, err = harness.StartInstance(ctx, r.workDir, fmt.Sprintf("instance-%d", p.number), listen, args...)
	return err
}

// processesPerInstance is how many lives an instance has at most.
const processesPerInstance = 2

func (r *run) openAccount(ctx context.Context) error {
	admin, err := r.instances[0].service.AdminClient()
	if err != nil {
		return err
	}
	name := plan.Discovery
	if most, ok := plan.Lookup(name); ok && r.Cap > most.DefaultQuota {
		name = plan.Business
	}
	if err := admin.OpenAccount(ctx, account, name, r.Cap); err != nil {
		return err
	}
	for _, p := range r.instances {
		for n := range processesPerInstance {
			l := &process{name: fmt.Sprintf("%s, life %d", p.name, n+1)}
			key, err := admin.IssueKey(ctx, account, l.name)
			if err != nil {
				return err
			}
			l.key, l.token = key.ID, key.Token
			p.processes = append(p.processes, l)
		}
	}
	return nil
}

// waitKeyKnown waits until the instance knows the post's last key. An unknown path asked with it is not counted.
func (p *instance) waitKeyKnown(ctx context.Context) error {
	c, err := loadclient.Dial(ctx, p.service.API)
	if err != nil {
		return err
	}
	defer c.Close()
	request := loadclient.EncodeGet(p.service.API, api.Base+"/nowhere", p.processes[len(p.processes)-1].token)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		switch status, err := c.Send(request); {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s still does not know its keys: %d", p.name, status)
		}
	}
}

func (p *instance) pauseCuts(yes bool) {
	if p.proxy != nil {
		p.proxy.isPaused.Store(yes)
	}
}

func (p *instance) closeProxy() {
	if p.proxy != nil {
		p.proxy.close()
	}
}
