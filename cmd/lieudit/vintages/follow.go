package vintages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lieudit/eventstore/hold"
	"lieudit/queries/address/vintage"
)

// look is how often the service looks whether another vintage is current, and whether the file it answers from is what it was.
const look = 250 * time.Millisecond

const (
	answering = "name"    // of the vintage the service answers from
	refused   = "refused" // of one it could not open, and why
)

// Follower keeps a service on the current vintage, and off one that is not whole:
//
//	Load ── current ── open ── Verify, unless it was checked before ──> swap
//	turn ── Load ── the file has changed, or is damaged ──> withdraw
//	check ── VerifyGently ── damage, which the next turn sees
type Follower struct {
	folder   Folder
	swap     func(context.Context, *vintage.Vintage)
	withdraw func(error)
	log      *slog.Logger
	every    time.Duration // all of the vintage is checked again

	now string    // the vintage answered from
	bad candidate // the one that was refused last

	mu      sync.Mutex // of what follows
	served  *vintage.Vintage
	problem error
}

// candidate is a file that was looked at, and why it must not be served.
type candidate struct {
	name   string
	info   os.FileInfo
	reason error
}

// is says whether a file is the one that was looked at, and has not changed since.
func (c candidate) is(name string, info os.FileInfo) bool {
	return c.name == name && unchanged(c.info, info)
}

func unchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ErrChanged: the file of the served vintage was written to. It is served again once all of it was found whole.
var ErrChanged = errors.New("the file of the vintage was changed while it was served")

// NewFollower is a follower that hands every vintage that becomes current to swap, which owns it from then on, and serves
// it by the time it returns. One that must not be asked any more it takes out of service by withdraw.
func NewFollower(f Folder, log *slog.Logger, swap func(context.Context, *vintage.Vintage), withdraw func(error)) *Follower {
	return &Follower{folder: f, swap: swap, withdraw: withdraw, log: log, every: 24 * time.Hour}
}

// Problem is what is wrong with the vintages, and what mends it; nil: nothing.
func (f *Follower) Problem() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// Load serves the current vintage, if there is one that is whole.
func (f *Follower) Load(ctx context.Context) { f.settle(f.load(ctx, (*vintage.Vintage).Verify)) }

// settle keeps what is wrong, and says it once.
func (f *Follower) settle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err != nil && (f.problem == nil || f.problem.Error() != err.Error()):
		consequence := "no addresses are served"
		if f.served != nil {
			consequence = "the vintage before is served on"
		}
		f.log.Error("the current vintage cannot be served", "consequence", consequence, "reason", err)
	case err == nil && f.problem != nil:
		f.log.Info("the current vintage is served again", "name", f.now)
	}
	f.problem = err
}

type verify func(*vintage.Vintage, context.Context) error

// load looks once.
func (f *Follower) load(ctx context.Context, verify verify) error {
	f.leaveDamaged()
	name, err := f.folder.Current()
	if err != nil {
		return fmt.Errorf("vintages/%s cannot be read: %w: %s", pointer, err, mend)
	}
	pointed := name != ""
	if !pointed {
		if name = f.folder.sole(); name == "" {
			return f.folder.Lost()
		}
	}
	if err := f.follow(ctx, name, verify); err != nil {
		return err
	}
	if !pointed {
		return f.repoint(name)
	}
	return nil
}

// leaveDamaged takes a vintage out of service that proved damaged, or whose file was written to.
func (f *Follower) leaveDamaged() {
	v := f.current()
	if v == nil {
		return
	}
	why := v.Damage()
	if why != nil {
		f.bad = candidate{f.now, v.Info(), f.damaged(f.now, why)}
		f.folder.forgetChecked()
	} else if info, err := os.Stat(f.folder.Path(f.now)); err == nil && os.SameFile(info, v.Info()) && !unchanged(info, v.Info()) {
		why = ErrChanged
	}
	if why == nil {
		return
	}
	f.withdraw(why)
	f.serve("", nil)
}

func (f *Follower) damaged(name string, why error) error {
	return fmt.Errorf("vintage %s: %w: %s", name, why, mend)
}

func (f *Follower) current() *vintage.Vintage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served
}

func (f *Follower) serve(name string, v *vintage.Vintage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.served = name, v
}

// follow serves a vintage by name unless it is served, or refused as it is.
func (f *Follower) follow(ctx context.Context, name string, verify verify) error {
	info, err := os.Stat(f.folder.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("vintages/%s names %s, whose file is gone: %s", pointer, name, mend)
	}
	if err != nil {
		return f.damaged(name, err)
	}
	if v := f.current(); v != nil && name == f.now && unchanged(info, v.Info()) {
		return nil
	}
	if f.bad.is(name, info) {
		return f.bad.reason
	}
	v, err := f.open(ctx, name, verify)
	if err != nil && ctx.Err() == nil {
		f.bad = candidate{name, info, f.damaged(name, err)}
		return f.bad.reason
	}
	if err != nil {
		return err
	}
	if err := v.Prefault(); err != nil {
		f.log.Warn("vintage not read ahead", "reason", err)
	}
	f.swap(ctx, v)
	f.serve(name, v)
	f.bad = candidate{}
	if !v.Synthetic {
		if err := f.folder.remember(name); err != nil {
			f.log.Warn("vintage of real addresses not noted", "reason", err)
		}
	}
	return nil
}

// open opens a vintage that is whole: all of it is read, unless this very file was found whole before.
func (f *Follower) open(ctx context.Context, name string, verify verify) (*vintage.Vintage, error) {
	v, err := f.folder.Open(name)
	if err != nil || f.folder.wasChecked(v) {
		return v, err
	}
	if err := verify(v, ctx); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	f.note(v)
	return v, nil
}

// note remembers that a vintage was found whole, so that the next start need not wait for that.
func (f *Follower) note(v *vintage.Vintage) {
	if err := f.folder.noteChecked(v); err != nil {
		f.log.Warn("check of a vintage not noted: the next start checks it before it serves it", "reason", err)
	}
}

// repoint names the vintage that is served as the current one, where nothing does any more. While an import is at work
// it leaves that to it.
func (f *Follower) repoint(name string) error {
	lock, err := hold.Folder(f.folder.dir, time.Now())
	if _, held := errors.AsType[*hold.HeldError](err); held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("vintages/%s names no vintage: %w", pointer, err)
	}
	err = f.folder.point(name)
	f.log.Warn("vintages/"+pointer+" named no vintage; it names the only one that is there", "name", name)
	return errors.Join(err, lock.Close())
}

// Run follows until ctx ends, and checks all of what is served meanwhile. It holds a folder and says there what it
// answers from; where another service on the same data holds it, that one speaks.
func (f *Follower) Run(ctx context.Context) (err error) {
	seat := filepath.Join(f.folder.dir, serving)
	if err := os.MkdirAll(seat, 0o700); err != nil {
		return err
	}
	var checks sync.WaitGroup
	checks.Go(func() { f.check(ctx) })
	defer checks.Wait()
	clock := time.NewTicker(look)
	defer clock.Stop()
	var lock *hold.Held
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	for said := ""; ; {
		if lock == nil { // an import that looks whether we are here lets go at once, and a folder that is gone may be back
			lock, _ = hold.Folder(seat, time.Now())
		}
		said = f.turn(ctx, seat, said, lock != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}

// check reads all of the served vintage now and then, beside the questions.
func (f *Follower) check(ctx context.Context) {
	for {
		if v := f.current(); v != nil {
			if v.VerifyGently(ctx) == nil {
				f.note(v)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.every):
		}
	}
}

// turn looks once. Who speaks says what is answered from when that is not what it said last.
func (f *Follower) turn(ctx context.Context, seat, said string, speaks bool) string {
	before := f.bad
	f.settle(f.load(ctx, (*vintage.Vintage).VerifyGently))
	if !speaks {
		return said
	}
	if f.bad.reason != nil && f.bad != before {
		if err := writeName(filepath.Join(seat, refused), f.bad.name+" "+f.bad.reason.Error()); err != nil {
			f.log.Warn("refusal of a vintage not told", "reason", err)
		}
	}
	if f.now == said {
		return said
	}
	if err := writeName(filepath.Join(seat, answering), f.now); err != nil {
		f.log.Warn("served vintage not told", "reason", err)
		return said
	}
	return f.now
}
