package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/cmd/lieudit/fleet"
)

// Profile is one of the ways to run the service.
type Profile string

// The profiles: one instance with all it needs in its data folder; several on one node and a Postgres of their own.
const (
	Embedded Profile = "embedded"
	Servers  Profile = "servers"
)

// diskSize is what the data folder of the embedded profile may hold, as mount(8) has it.
const diskSize = "4g"

// system is the processes of one profile.
type system struct {
	profile   Profile
	ground    fleet.Ground
	mount     string // of the data folder's own file system; "" for none
	cluster   *fleet.Cluster
	instances []*instance
	operator  string   // token of the customer area
	leftOut   []string // what this machine does not allow

	mu   sync.Mutex // guards node against being stalled while it is killed
	node *fleet.Process

	descriptors atomic.Int64 // that the next instance to start may have; 0: no limit
}

// instance is where one process after the other serves.
type instance struct {
	name    string
	current atomic.Pointer[life] // nil while none runs
	lives   int
}

// life is one process of an instance.
type life struct {
	name    string
	process *fleet.Instance
	limited bool // in its descriptors
	killed  atomic.Bool
}

// raise starts everything and waits until it is ready.
func (s *system) raise(ctx context.Context, o Options) (err error) {
	if s.ground, err = fleet.NewGround(o.Dir); err != nil {
		return err
	}
	instances := 1
	if s.profile == Servers {
		instances = o.Instances
		if s.cluster, err = fleet.NewCluster(ctx, fleet.PostgresBin()); err != nil {
			return err
		}
		if s.node, err = fleet.Node(ctx, s.ground, nodeName); err != nil {
			return err
		}
	} else if err := s.mountDisk(ctx); err != nil {
		s.leftOut = append(s.leftOut, "disk full: "+oneLine(err.Error()))
	}
	for n := range instances {
		i := &instance{name: fmt.Sprintf("instance-%d", n+1)}
		s.instances = append(s.instances, i)
		if err := s.start(ctx, i); err != nil {
			return err
		}
		if err := i.current.Load().process.Ready(ctx); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(s.ground.Folder(s.instances[0].name), "operator-token"))
	s.operator = strings.TrimSpace(string(text))
	return err
}

const nodeName = "node"

// mountDisk gives the data folder a file system of its own, that can be filled. Mostly only root may.
func (s *system) mountDisk(ctx context.Context) error {
	folder := s.ground.Folder("instance-1")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if said, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size="+diskSize, "tmpfs", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("mount a disk: %w: %s", err, said)
	}
	s.mount = folder
	return nil
}

// words are the command line of an instance.
func (s *system) words() (words []string) {
	if s.profile == Servers {
		words = append(words, "--eventstore", "esdb+unix://"+s.ground.Socket(nodeName), "--postgres", s.cluster.URL)
	}
	return words
}

// How long a process may take until it listens, and one that may not be able to.
const (
	startTime   = 2 * time.Minute
	limitedTime = 15 * time.Second
)

// start starts an instance's next life.
func (s *system) start(ctx context.Context, i *instance) error {
	limit, patience := int(s.descriptors.Load()), startTime
	if limit > 0 {
		patience = limitedTime
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := fleet.Serve(ctx, s.ground.WithDescriptors(limit), i.name, "127.0.0.1:0", s.words()...)
	if err != nil {
		return err
	}
	i.lives++
	i.current.Store(&life{name: fmt.Sprintf("%s, life %d", i.name, i.lives), process: p, limited: limit > 0})
	return nil
}

// kill ends an instance as kill -9 does, and says which life that was.
func (i *instance) kill() *life {
	l := i.current.Load()
	if l == nil {
		return nil
	}
	l.killed.Store(true)
	l.process.Kill()
	i.current.Store(nil)
	return l
}

// gone says whether a life ended by itself.
func (l *life) gone() bool {
	select {
	case <-l.process.Gone():
		return !l.killed.Load()
	default:
		return false
	}
}

// any is an instance that runs, or nil.
func (s *system) any(dice *rand.Rand) *life {
	first := dice.IntN(len(s.instances))
	for n := range s.instances {
		if l := s.instances[(first+n)%len(s.instances)].current.Load(); l != nil {
			return l
		}
	}
	return nil
}

// clear kills what still runs and removes everything, unless it is to be kept.
func (s *system) clear(keep bool) error {
	for _, i := range s.instances {
		i.kill()
	}
	if s.node != nil {
		s.node.Kill()
	}
	var errs []error
	if s.cluster != nil {
		errs = append(errs, s.cluster.Clear())
	}
	if keep {
		return errors.Join(errs...)
	}
	if s.mount != "" {
		errs = append(errs, exec.Command("umount", s.mount).Run())
	}
	return errors.Join(append(errs, s.ground.Clear())...)
}
