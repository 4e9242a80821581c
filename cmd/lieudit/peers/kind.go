package peers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"lieudit/cmd/lieudit/releases"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
)

// kind follows the releases of one kind of data. Its goroutine (follow) alone changes files; the others read the status.
type kind struct {
	Data
	follower    *Follower
	first, last int                  // versions of the file's format that are opened
	banned      map[string]time.Time // end of a ban: of a holder that gave wrong bytes, or of a file for which there was no room
	failures    int                  // fetches that failed one after the other

	mu     sync.Mutex
	status status
	told   releases.Standing // what was last written for the commands
}

// status is what a kind has found out.
type status struct {
	isKnown  bool // the folder was read
	isJoined bool // see Follower.CheckJoined
	local    releases.Local
	served   string // name
	serves   string // sum
	before   string // sum
	follows  string // sum of the last release that was seen
	problem  string // why it does not serve that, for readiness
	summary  string // the same without what changes from one attempt to the next, for the log
	fetching string // progress, for people
}

func newKind(f *Follower, d Data) *kind {
	k := &kind{Data: d, follower: f, banned: map[string]time.Time{}}
	k.first, k.last = d.Folder.Versions()
	return k
}

const (
	followInterval = 200 * time.Millisecond // how often what is served is compared with what was released; commands wait for it
	retryPause     = 3 * time.Second        // after a failure that may pass: a full disk, an unreachable holder
	diskPause      = time.Minute            // after a fetch for which the disk had no room
	maxFailures    = 3                      // fetches that fail before the instance answers from what it has
)

// follow compares what is served with what was released until ctx ends, and acts on the difference.
func (k *kind) follow(ctx context.Context) {
	for pause := time.Duration(0); clock.Sleep(ctx, pause); {
		pause = followInterval
		if err := k.step(ctx); err != nil && ctx.Err() == nil {
			pause = retryPause
		}
	}
}

// step takes the next step from what is served towards what was released. It returns an error if that cannot be done now.
func (k *kind) step(ctx context.Context) error {
	local, err := k.Folder.CurrentFile(k.local())
	if err != nil && !errors.Is(err, releases.ErrNoCurrent) {
		return k.fail("the sum of its file", err)
	}
	k.noteLocal(local)
	view := k.follower.fleet.Load()
	if view == nil {
		return nil
	}
	if !view.hasFormat {
		k.join("", "")
		return nil
	}
	last, ok := view.Last(k.Kind)
	k.noteFollowed(last.Sum) // whatever the outcome: the others see that this instance lives
	switch {
	case local.IsPending() && local.Name == k.Served():
		return k.release(ctx, local, false)
	case local.IsPending(): // the watcher takes it over, or reports why not
		return k.awaitWatcher()
	case !ok:
		return k.adopt(ctx, local)
	}
	return k.pursue(ctx, view, local, last)
}

func (k *kind) local() releases.Local {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status.local
}

// noteLocal notes what the folder holds and what is served.
func (k *kind) noteLocal(local releases.Local) {
	served, before := k.Served(), k.Folder.BeforeSum()
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.status
	s.isKnown, s.local, s.before = true, local, before
	switch {
	case served == "":
		s.serves = ""
	case served == local.Name:
		s.serves = local.Sum
	case served != s.served: // another file than the current one, for a moment
		s.serves = ""
	}
	s.served = served
}

func (k *kind) noteFollowed(sum string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status.follows = sum
}

// join notes that the instance may answer, and what is wrong with the data that it answers from, "" if nothing is. The summary of a
// problem is the same each time, so that it is logged once.
func (k *kind) join(problem, summary string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if summary != "" && summary != k.status.summary {
		k.follower.Log.Warn("the last release of the "+k.Folder.Noun()+" is not served here", "reason", problem)
	}
	k.status.isJoined, k.status.problem, k.status.summary, k.status.fetching = true, problem, summary, ""
}

// fail notes a problem, and returns it.
func (k *kind) fail(what string, err error) error {
	if osfile.IsDiskFull(err) {
		what += ": the disk is full"
	}
	err = fmt.Errorf("%s: %w", what, err)
	k.join(err.Error(), what)
	return err
}

// release records that all instances should serve a file. An instance that others cannot reach keeps its file to itself.
func (k *kind) release(ctx context.Context, local releases.Local, isAdopted bool) error {
	f := k.follower
	if f.URL == "" && !f.IsAlone {
		problem := ""
		if local.IsPending() {
			problem = "it serves what was imported at it, which the others cannot fetch: --peer-url"
		}
		k.join(problem, problem)
		return nil
	}
	r := event.DataReleased{
		Kind: k.Kind, Name: local.Name, Date: local.Date, Sum: local.Sum, Bytes: local.Bytes, Format: local.Version, Secret: local.Secret,
		Instance: f.Instance, IsSynthetic: local.IsSynthetic, IsAdopted: isAdopted,
	}
	if err := f.announce(ctx); err != nil { // so that the others know from where to fetch it
		return err
	}
	if err := f.Deployment.ReleaseData(ctx, f.metadata("import"), r); err != nil {
		return err
	}
	if err := f.observe(ctx); err != nil { // before the mark: what is not pending is compared with what was observed
		return err
	}
	if err := k.Folder.MarkReleased(local.Name, local.Sum); err != nil {
		return k.fail("noting the release", err)
	}
	f.Log.Info(k.Folder.Noun()+" released to all instances", "date", local.Date, "sum", local.Sum)
	return nil
}

// adopt releases what is served if the log has no release yet: an earlier program imported it.
func (k *kind) adopt(ctx context.Context, local releases.Local) error {
	k.join("", "")
	if local.Sum == "" || local.Name != k.Served() || local.IsSynthetic {
		return nil
	}
	if k.follower.URL != "" || k.follower.IsAlone {
		local.Secret = newSecret()
	}
	return k.release(ctx, local, true)
}

// awaitWatcher waits until the service answers from the current release, or has refused it.
func (k *kind) awaitWatcher() error {
	if err := k.Problem(); err != nil {
		return k.fail("the "+k.Folder.Noun()+" that was imported is not served", err)
	}
	k.join("", "")
	return nil
}

// pursue makes the last release that this program can open the current one.
func (k *kind) pursue(ctx context.Context, view *fleetView, local releases.Local, last event.DataReleased) error {
	target, ok := view.Latest(k.Kind, k.first, k.last)
	problem := ""
	if target.Sum != last.Sum {
		problem = fmt.Sprintf("the %s of %s has format %d, and this program opens %d to %d: exchange it for a later one", k.Folder.Noun(), last.Date, last.Format, k.first, k.last)
	}
	switch {
	case ok && local.Sum == target.Sum && local.Name != "":
		if k.Served() == local.Name || problem != "" {
			k.join(problem, problem)
		} else if err := k.Problem(); err != nil {
			return k.fail("the "+k.Folder.Noun()+" that is released is here and is not served", err)
		}
		return nil
	case !ok:
		k.join(problem, problem)
		return nil
	case last.IsAdopted && local.Sum != "" && !local.IsSynthetic && local.Date > last.Date && local.Name == k.Served():
		if _, isReleased := view.Find(k.Kind, local.Sum); !isReleased { // an earlier program has imported it, and it is the newer one
			return k.adopt(ctx, local)
		}
	}
	if local.Date == releases.DemoDate {
		k.Withdraw(fmt.Errorf("the %s of %s is released, and is not here yet", k.Folder.Noun(), target.Date))
	}
	return k.obtain(ctx, view, target)
}

// obtain activates a release whose file is here, or fetches it.
func (k *kind) obtain(ctx context.Context, view *fleetView, target event.DataReleased) error {
	f := k.follower
	if name, _ := k.Folder.FindSum(target.Sum); name != "" {
		return k.unlessHeld("taking over the file that is here", k.Folder.Activate(name, f.Now()))
	}
	if target.Name != filepath.Base(target.Name) {
		return k.fail("the release's name", fmt.Errorf("%q is not the name of a file", target.Name))
	}
	if time.Now().Before(k.banned[target.Sum]) {
		return nil // the disk was full a moment ago, and readiness says so
	}
	path, err := k.Folder.FetchPath(target.Sum)
	if err == nil {
		err = k.Folder.MakeRoom(f.Now())
	}
	if err != nil {
		return k.fail("room for the "+k.Folder.Noun(), err)
	}
	err = k.fetch(ctx, view, target, path)
	if osfile.IsDiskFull(err) {
		k.banned[target.Sum] = time.Now().Add(diskPause)
	}
	switch k.failures++; {
	case err == nil:
		k.failures = 0
	case errors.Is(err, errBusy): // until then another instance becomes a holder
		k.failures = 0
		clock.Sleep(ctx, busyPause)
		return nil
	case ctx.Err() == nil && (k.failures >= maxFailures || errors.Is(err, errNoHolder) || osfile.IsDiskFull(err)):
		return k.fail(fmt.Sprintf("the %s of %s (%.12s) is released and could not be fetched", k.Folder.Noun(), target.Date, target.Sum), err)
	default:
		return err
	}
	return k.unlessHeld("taking over what was fetched", k.Folder.AddFetched(ctx, path, target.Name, target.Sum, f.Now()))
}

// unlessHeld is fail, but ignores a nil error and one that says that an import holds the folder: the next step tries again.
func (k *kind) unlessHeld(what string, err error) error {
	if _, isHeld := errors.AsType[*dirlock.HeldError](err); isHeld || err == nil {
		return nil
	}
	return k.fail(what, err)
}

// announced returns what the log should say about this kind. isKnown is false until the folder was read.
func (k *kind) announced() (d event.AnnouncedData, isKnown bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.status
	return event.AnnouncedData{
		Kind: k.Kind, FirstFormat: k.first, LastFormat: k.last, Follows: s.follows, Serves: s.serves, Before: s.before, Problem: s.summary,
	}, s.isKnown
}

func (k *kind) problem() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status.problem
}

// checkJoined returns nil once the instance may answer from what it serves of this kind.
func (k *kind) checkJoined() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.status.isJoined:
		return nil
	case k.status.fetching != "":
		return errors.New(k.status.fetching)
	}
	return fmt.Errorf("it is not known yet which %s is released", k.Folder.Noun())
}

// noteProgress notes how much of a file has been fetched.
func (k *kind) noteProgress(target event.DataReleased, done int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status.fetching = fmt.Sprintf("the %s of %s is being fetched: %d of %d MiB", k.Folder.Noun(), target.Date, done>>20, target.Bytes>>20)
}
