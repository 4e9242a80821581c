package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/cmd/bench/harness"
)

// Profile is one of the ways to run the service.
type Profile string

// The profiles. Embedded: one instance with everything in its data folder. Servers: several instances that share a log node
// and a Postgres.
const (
	Embedded Profile = "embedded"
	Servers  Profile = "servers"
)

// diskSize is the size of the embedded profile's file system, in the notation of mount(8). fillDisk makes it smaller for
// a while.
const diskSize = "4g"

// system starts, kills and stops the processes of one profile. The instances are set by startAll and stay the same; each has one process after
// another.
type system struct {
	profile       Profile
	workDir       harness.WorkDir
	mount         string // of the data folder's own file system; "" for none
	postgres      *harness.Postgres
	instances     []*instance
	operatorToken string   // token of the customer area
	leftOut       []string // profiles and faults that this machine does not allow

	nodeLock sync.Mutex // guards node against being stalled while it is killed
	node     *harness.Process

	processes      atomic.Int64 // how many instances were started so far
	maxDescriptors atomic.Int64 // that the next instance to start may have; 0: no limit
}

// instance is one data folder, on which one process after another serves.
type instance struct {
	name    string
	current atomic.Pointer[serverProcess] // nil while none runs
	starts  int
}

// serverProcess is one process of an instance, from its start to its end. killed is set before the kill, so that a request
// that fails because of it is not a violation.
type serverProcess struct {
	name    string
	number  int // no other process of the run has it
	process *harness.Instance
	limited bool // started with few file descriptors
	killed  atomic.Bool
}

// startAll starts all processes of the profile and waits until the instances are ready. The first instance is ready before the second starts,
// so it is the one that writes the operator's token. Call tearDown even after an error.
func (s *system) startAll(ctx context.Context, o Options) (err error) {
	if s.workDir, err = harness.NewWorkDir(o.Dir); err != nil {
		return err
	}
	instances := 1
	if s.profile == Servers {
		instances = o.Instances
		if s.postgres, err = harness.StartPostgres(ctx, harness.FindPostgres()); err != nil {
			return err
		}
		if s.node, err = harness.StartNode(ctx, s.workDir, nodeName); err != nil {
			return err
		}
	} else if err := s.mountDisk(ctx); err != nil {
		// Without a disk of its own the profile runs all other faults.
		s.leftOut = append(s.leftOut, "disk full: "+oneLine(err.Error()))
	}
	for n := range instances {
		i := &instance{name: fmt.Sprintf("instance-%d", n+1)}
		s.instances = append(s.instances, i)
		if err := s.startInstance(ctx, i); err != nil {
			return err
		}
		if err := i.current.Load().process.WaitReady(ctx); err != nil {
			return err
		}
	}
	s.operatorToken, err = harness.ReadOperatorToken(ctx, s.workDir.Path(s.instances[0].name))
	return err
}

// nodeName is the name of the log node's folder and socket.
const nodeName = "node"

// mountDisk mounts a small file system as the data folder, so that fillDisk can fill it. That usually needs root.
func (s *system) mountDisk(ctx context.Context) error {
	folder := s.workDir.Path("instance-1")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if output, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size="+diskSize, "tmpfs", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("mount a disk: %w: %s", err, output)
	}
	s.mount = folder
	return nil
}

// serveFlags returns the flags of an instance of this profile. The embedded profile needs none.
func (s *system) serveFlags() []string {
	if s.profile == Servers {
		return append(s.workDir.NodeFlags(nodeName), "--postgres", s.postgres.URL)
	}
	return nil
}

// How long a process may take until it listens: usually, and with few descriptors, with which it may never listen.
const (
	startTimeout        = 2 * time.Minute
	limitedStartTimeout = 15 * time.Second
)

// startInstance starts the next process of an instance on its data folder, and returns once it listens. Its ports may differ
// from those of the process before: clients read them from the current process.
func (s *system) startInstance(ctx context.Context, i *instance) error {
	limit, timeout := int(s.maxDescriptors.Load()), startTimeout
	if limit > 0 {
		timeout = limitedStartTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p, err := harness.StartInstance(ctx, s.workDir.WithMaxDescriptors(limit), i.name, harness.AnyPort, s.serveFlags()...)
	if err != nil {
		return err
	}
	i.starts++
	i.current.Store(&serverProcess{number: int(s.processes.Add(1)), name: fmt.Sprintf("%s, life %d", i.name, i.starts), process: p, limited: limit > 0})
	return nil
}

// kill kills the instance's process with SIGKILL and returns it; nil: none ran.
func (i *instance) kill() *serverProcess {
	p := i.current.Load()
	if p == nil {
		return nil
	}
	p.killed.Store(true)
	p.process.Kill()
	i.current.Store(nil)
	return p
}

// endedByItself reports whether a process ended without being killed.
func (p *serverProcess) endedByItself() bool {
	select {
	case <-p.process.Exited():
		return !p.killed.Load()
	default:
		return false
	}
}

// anyRunning returns the process of a random instance that was not killed, or nil. The process may just have ended by itself.
func (s *system) anyRunning(rng *rand.Rand) *serverProcess {
	first := rng.IntN(len(s.instances))
	for n := range s.instances {
		if p := s.instances[(first+n)%len(s.instances)].current.Load(); p != nil {
			return p
		}
	}
	return nil
}

// tearDown kills all processes and, unless keep is set, removes their data.
func (s *system) tearDown(keep bool) error {
	for _, i := range s.instances {
		i.kill()
	}
	if s.node != nil {
		s.node.Kill()
	}
	var errs []error
	if s.postgres != nil {
		errs = append(errs, s.postgres.Remove())
	}
	if keep {
		return errors.Join(errs...)
	}
	if s.mount != "" {
		errs = append(errs, exec.Command("umount", s.mount).Run())
	}
	return errors.Join(append(errs, s.workDir.Remove())...)
}
