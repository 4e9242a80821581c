// Package peers lets all instances on one log serve the same vintage of the address base and the same road network. An import is
// made at one of them; the others fetch the file from it. What a single instance does with its files is decided by package releases.
//
//	releases.Folder: a new current file ──> follow ──> deployment.ReleaseData ──> the log
//	the log ──> Follower.observe ──> Fleet ──> follow ──> fetch ──> GET /peer/v1/… at a holder ──> releases.Folder.AddFetched
//	what is served ──> deployment.AnnounceInstance ──> the log ──> Fleet of the others ──> releases.Standing, for the commands
//
// There are no heartbeats. An instance announces itself when it starts and when what it serves changes. Every instance that answers
// customers reads the log within a second, because it may not check keys otherwise; so each live instance soon sees a new release and
// announces that it follows it. If one does not, the instance that made the release sends a request to its address. If nobody answers
// there, it is taken off the list. Should it be alive after all, it finds itself missing and announces itself again.
//
// Times are elapsed times of this machine: clocks of different machines are never compared.
package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/releases"
	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/schemas/event"
)

// Kinds of reference data, as they are named on the log.
const (
	VintageKind = "vintage"
	NetworkKind = "network"
)

// Folder is a releases.Folder of any kind.
type Folder interface {
	Noun() string
	Versions() (first, last int)
	CurrentFile(known releases.Local) (releases.Local, error)
	FindSum(sum string) (name, path string)
	BeforeSum() string
	MarkReleased(name, sum string) error
	Activate(name string, now time.Time) error
	FetchPath(sum string) (string, error)
	MakeRoom(now time.Time) error
	AddFetched(ctx context.Context, path, name, sum string, now time.Time) error
	WriteStanding(releases.Standing) error
}

// Data is a kind of reference data of this instance. All fields are required.
type Data struct {
	Kind     string
	Folder   Folder
	Served   func() string // name of the release that the service answers from; "" for none
	Problem  func() error  // why the service does not answer from the current release; nil while it does, or nothing is wrong yet
	Withdraw func(error)   // stops answering from data that was invented for a demo
}

// Config is what a follower works for. All fields but URL are required.
type Config struct {
	Deployment  *deployment.Deployment
	Instance    string // id of this process
	Program     string // version
	URL         string // address at which other instances reach this one; "" if they cannot
	IsAlone     bool   // no other instance can be on the log
	Data        []Data
	Now         func() time.Time // wall time, for the names of locks
	Log         *slog.Logger
	AskInterval time.Duration // pause between two reads of the log; 0: half a second
	AckTimeout  time.Duration // after which an instance that has not seen a release gets a request at its address; 0: ten seconds
}

const (
	defaultAskInterval = 500 * time.Millisecond
	defaultAckTimeout  = 10 * time.Second // instances continue serving while the log is silent for up to this long
	leaveTimeout       = 2 * time.Second
)

// Follower keeps the data of an instance at the last release. It is safe for concurrent use.
type Follower struct {
	Config
	host   string
	client *http.Client
	kinds  []*kind
	dummy  string // compared with a request's secret if there is no real one
	slot   chan struct{}

	fleet   atomic.Pointer[fleetView] // nil until the log was read
	reading sync.Mutex                // one reader of the log at a time
}

// fleetView is what the log held when it was last read.
type fleetView struct {
	deployment.Fleet
	hasFormat bool // releases may be written
}

// New returns a follower of the data of an instance. Run makes it work.
func New(c Config) *Follower {
	if c.AskInterval == 0 {
		c.AskInterval = defaultAskInterval
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = defaultAckTimeout
	}
	host, err := os.Hostname()
	if err != nil { // the host distinguishes instances that have the same address
		host = c.Instance
	}
	f := &Follower{Config: c, host: host, client: newClient(), dummy: rand.Text(), slot: make(chan struct{}, 1)}
	for _, d := range c.Data {
		f.kinds = append(f.kinds, newKind(f, d))
	}
	return f
}

// Run works until ctx ends. Then it records on the log that the instance leaves, and returns when its goroutines have ended.
func (f *Follower) Run(ctx context.Context) error {
	var parts errgroup.Group
	for _, k := range f.kinds {
		parts.Go(func() error {
			k.follow(ctx)
			return nil
		})
	}
	f.keepAnnounced(ctx)
	parts.Wait()
	f.leave(ctx)
	return nil
}

// metadata names the author of what a follower records.
func (f *Follower) metadata(reason string) commands.Metadata {
	return commands.Metadata{Actor: eventstore.SystemActor, Reason: reason}
}

// keepAnnounced reads the log until ctx ends. It announces this instance whenever the log does not say what it serves, and writes the
// standing for the commands.
func (f *Follower) keepAnnounced(ctx context.Context) {
	lost := newLostFinder(f)
	defer lost.wait()
	isSilent := false
	for {
		var err error
		if f.fleet.Load() == nil {
			err = f.observe(ctx)
		}
		if err == nil {
			err = f.announce(ctx)
		}
		if err == nil {
			err = f.observe(ctx) // read what was announced, so that the commands learn of it
		}
		if ctx.Err() != nil {
			return
		}
		if isSilent != (err != nil) {
			if isSilent = err != nil; isSilent {
				f.Log.Warn("the log does not tell which releases there are; what is served stays", "reason", err)
			}
		}
		if view := f.fleet.Load(); view != nil {
			lost.look(ctx, view)
		}
		for _, k := range f.kinds {
			k.tellCommands(err)
		}
		if !clock.Sleep(ctx, f.AskInterval) {
			return
		}
	}
}

// observe reads the fleet from the log.
func (f *Follower) observe(ctx context.Context) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, f.AckTimeout)
	defer cancel()
	hasFormat, err := f.Deployment.HasFormat(ctx, event.ReleasesFormat)
	if err != nil {
		return err
	}
	view := &fleetView{hasFormat: hasFormat}
	if hasFormat {
		if view.Fleet, err = f.Deployment.Fleet(ctx); err != nil {
			return err
		}
	}
	f.fleet.Store(view)
	return nil
}

// announce records what this instance serves, unless the log already says so or the instance is alone.
func (f *Follower) announce(ctx context.Context) error {
	view := f.fleet.Load()
	if f.IsAlone || view == nil || !view.hasFormat {
		return nil
	}
	a := event.InstanceAnnounced{Instance: f.Instance, Host: f.host, URL: f.URL, Program: f.Program}
	for _, k := range f.kinds {
		d, isKnown := k.announced()
		if !isKnown {
			return nil // the folder has not been read yet
		}
		a.Data = append(a.Data, d)
	}
	return f.Deployment.AnnounceInstance(ctx, f.metadata("data of an instance"), a)
}

// leave takes this instance off the list.
func (f *Follower) leave(ctx context.Context) {
	view := f.fleet.Load()
	if f.IsAlone || view == nil || !view.hasFormat {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := f.Deployment.RemoveInstance(ctx, f.metadata("end of an instance"), f.Instance, false); err != nil {
		f.Log.Warn("the other instances were not told that this one ends", "reason", err)
	}
}

// CheckJoined returns nil once this instance serves the last releases, or has found that it cannot. Before that it should not
// answer: its data would be older than that of the others.
func (f *Follower) CheckJoined() error {
	var waiting []error
	for _, k := range f.kinds {
		waiting = append(waiting, k.checkJoined())
	}
	return errors.Join(waiting...)
}

// HasSeenLog reports whether the releases have been read from the log.
func (f *Follower) HasSeenLog() bool { return f.fleet.Load() != nil }

// ErrNoAddress means that other instances cannot reach this one.
var ErrNoAddress = errors.New("other instances cannot reach this one, so that its imports are of itself alone: --peer-url URL (LIEUDIT_PEER_URL)")

// Check returns nil while the last releases are served, otherwise why they are not. It also reports that others cannot reach this instance.
func (f *Follower) Check() error {
	var problems []error
	if !f.IsAlone && f.URL == "" {
		problems = append(problems, ErrNoAddress)
	}
	for _, k := range f.kinds {
		if p := k.problem(); p != "" {
			problems = append(problems, fmt.Errorf("%s", p))
		}
	}
	return errors.Join(problems...)
}
