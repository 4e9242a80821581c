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
	"syscall"
	"time"

	"lieudit/eventstore/dirlock"
	"lieudit/queries/address/vintage"
)

// pollInterval is how often the service looks whether another vintage is current, and whether the file it answers from is what it was.
const pollInterval = 250 * time.Millisecond

const (
	servedNameFile = "name"    // of the vintage the service answers from
	refusedFile    = "refused" // of one it could not open, and why
)

// Watcher keeps a service on the current vintage, and off one that is not whole:
//
//	Load ── current ── open ── Verify, unless it was checked before ──> swap
//	turn ── Load ── the file has changed, or is damaged ──> withdraw
//	check ── VerifyGently ── damage, which the next turn sees
type Watcher struct {
	folder         Folder
	swap           func(context.Context, *vintage.Vintage)
	withdraw       func(error)
	log            *slog.Logger
	verifyInterval time.Duration // all of the vintage is checked again

	servedName string          // the vintage answered from
	rejected   rejectedVintage // the one that was refused last

	mu      sync.Mutex // of what follows
	served  *vintage.Vintage
	problem error
}

// rejectedVintage is a file that was looked at, and why it must not be served.
type rejectedVintage struct {
	name   string
	info   os.FileInfo
	reason error
}

// matches says whether a file is the one that was looked at, and has not changed since.
func (c rejectedVintage) matches(name string, info os.FileInfo) bool {
	return c.name == name && isUnchanged(c.info, info)
}

func isUnchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ErrChanged: the file of the served vintage was written to. It is served again once all of it was found whole.
var ErrChanged = errors.New("the file of the vintage was changed while it was served")

// NewWatcher is a follower that hands every vintage that becomes current to swap, which owns it from then on, and serves
// it by the time it returns. One that must not be asked any more it takes out of service by withdraw.
func NewWatcher(f Folder, log *slog.Logger, swap func(context.Context, *vintage.Vintage), withdraw func(error)) *Watcher {
	return &Watcher{folder: f, swap: swap, withdraw: withdraw, log: log, verifyInterval: 24 * time.Hour}
}

// Problem is what is wrong with the vintages, and what mends it; nil: nothing.
func (f *Watcher) Problem() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// Load serves the current vintage, if there is one that is whole.
func (f *Watcher) Load(ctx context.Context) {
	f.recordProblem(f.loadCurrent(ctx, (*vintage.Vintage).Verify))
}

// recordProblem keeps what is wrong, and says it once.
func (f *Watcher) recordProblem(err error) {
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
		f.log.Info("the current vintage is served again", "name", f.servedName)
	}
	f.problem = err
}

type verifyFunc func(*vintage.Vintage, context.Context) error

// loadCurrent looks once.
func (f *Watcher) loadCurrent(ctx context.Context, verify verifyFunc) error {
	f.withdrawDamaged()
	name, err := f.folder.Current()
	if err != nil {
		return fmt.Errorf("vintages/%s cannot be read: %w: %s", currentFile, err, repairAdvice)
	}
	isNamed := name != ""
	if !isNamed {
		if name = f.folder.findOnlyVintage(); name == "" {
			return f.folder.CheckLost()
		}
	}
	if err := f.serveVintage(ctx, name, verify); err != nil {
		return err
	}
	if !isNamed {
		return f.restoreCurrent(name)
	}
	return nil
}

// withdrawDamaged takes a vintage out of service that proved damaged, or whose file was written to.
func (f *Watcher) withdrawDamaged() {
	v := f.servedVintage()
	if v == nil {
		return
	}
	reason := v.Damage()
	if reason != nil {
		f.rejected = rejectedVintage{f.servedName, v.Info(), f.damagedError(f.servedName, reason)}
		f.folder.forgetVerified()
	} else if info, err := os.Stat(f.folder.Path(f.servedName)); err == nil && os.SameFile(info, v.Info()) && !isUnchanged(info, v.Info()) {
		reason = ErrChanged
	}
	if reason == nil {
		return
	}
	f.withdraw(reason)
	f.setServed("", nil)
}

func (f *Watcher) damagedError(name string, reason error) error {
	return fmt.Errorf("vintage %s: %w: %s", name, reason, repairAdvice)
}

func (f *Watcher) servedVintage() *vintage.Vintage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served
}

func (f *Watcher) setServed(name string, v *vintage.Vintage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servedName, f.served = name, v
}

// serveVintage serves a vintage by name unless it is served, or refused as it is.
func (f *Watcher) serveVintage(ctx context.Context, name string, verify verifyFunc) error {
	info, err := os.Stat(f.folder.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("vintages/%s names %s, whose file is gone: %s", currentFile, name, repairAdvice)
	}
	if err != nil {
		return f.damagedError(name, err)
	}
	if v := f.servedVintage(); v != nil && name == f.servedName && isUnchanged(info, v.Info()) {
		return nil
	}
	if f.rejected.matches(name, info) {
		return f.rejected.reason
	}
	v, err := f.openVerified(ctx, name, verify)
	if err != nil && ctx.Err() == nil {
		f.rejected = rejectedVintage{name, info, f.damagedError(name, err)}
		return f.rejected.reason
	}
	if err != nil {
		return err
	}
	if err := v.Prefault(); err != nil {
		f.log.Warn("vintage not read ahead", "reason", err)
	}
	f.swap(ctx, v)
	f.setServed(name, v)
	f.rejected = rejectedVintage{}
	if !v.Synthetic {
		if err := f.folder.recordRealVintage(name); err != nil {
			f.log.Warn("vintage of real addresses not noted", "reason", err)
		}
	}
	return nil
}

// openVerified opens a vintage that is whole: all of it is read, unless this very file was found whole before.
func (f *Watcher) openVerified(ctx context.Context, name string, verify verifyFunc) (*vintage.Vintage, error) {
	v, err := f.folder.Open(name)
	if err != nil || f.folder.wasVerified(v) {
		return v, err
	}
	if err := verify(v, ctx); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	f.recordVerified(v)
	return v, nil
}

// recordVerified remembers that a vintage was found whole, so that the next start need not wait for that.
func (f *Watcher) recordVerified(v *vintage.Vintage) {
	if err := f.folder.recordVerified(v); err != nil {
		f.log.Warn("check of a vintage not noted: the next start checks it before it serves it", "reason", err)
	}
}

// restoreCurrent names the vintage that is served as the current one, where nothing does any more. While an import is at work
// it leaves that to it.
func (f *Watcher) restoreCurrent(name string) error {
	lock, err := dirlock.Acquire(f.folder.dir, time.Now())
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("vintages/%s names no vintage: %w", currentFile, err)
	}
	err = f.folder.setCurrent(name)
	f.log.Warn("vintages/"+currentFile+" named no vintage; it names the only one that is there", "name", name)
	return errors.Join(err, lock.Close())
}

// Run follows until ctx ends, and checks all of what is served meanwhile. It holds a folder and says there what it
// answers from; where another service on the same data holds it, that one speaks.
func (f *Watcher) Run(ctx context.Context) (err error) {
	dir := filepath.Join(f.folder.dir, servingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var checks sync.WaitGroup
	checks.Go(func() { f.verifyPeriodically(ctx) })
	defer checks.Wait()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var lock *dirlock.Lock
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	for announced := ""; ; {
		if lock == nil { // an import that looks whether we are here lets go at once, and a folder that is gone may be back
			lock, _ = dirlock.Acquire(dir, time.Now())
		}
		announced = f.poll(ctx, dir, announced, lock != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// verifyPeriodically reads all of the served vintage now and then, beside the questions.
func (f *Watcher) verifyPeriodically(ctx context.Context) {
	for {
		if v := f.servedVintage(); v != nil {
			if v.VerifyGently(ctx) == nil {
				f.recordVerified(v)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.verifyInterval):
		}
	}
}

// poll looks once. Who speaks says what is answered from when that is not what it said last.
func (f *Watcher) poll(ctx context.Context, dir, announced string, holdsLock bool) string {
	rejectedBefore := f.rejected
	f.recordProblem(f.loadCurrent(ctx, (*vintage.Vintage).VerifyGently))
	if !holdsLock {
		return announced
	}
	if f.rejected.reason != nil && f.rejected != rejectedBefore {
		if err := replaceNameFile(filepath.Join(dir, refusedFile), f.rejected.name+" "+f.rejected.reason.Error()); err != nil {
			f.log.Warn("refusal of a vintage not told", "reason", err)
		}
	}
	if f.servedName == announced {
		return announced
	}
	if err := replaceNameFile(filepath.Join(dir, servedNameFile), f.servedName); err != nil {
		f.log.Warn("served vintage not told", "reason", err)
		return announced
	}
	return f.servedName
}

// verifiedFile is the file, in the folder of who serves, that says which file was found whole.
const verifiedFile = "checked"

// fileFingerprint is what a file is told by from one that has changed.
func fileFingerprint(v *vintage.Vintage) string {
	inode := uint64(0)
	if stat, ok := v.Info().Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", v.Digest(), inode, v.Size(), v.Modified().UnixNano())
}

// wasVerified says whether the very file was found whole before.
func (f Folder) wasVerified(v *vintage.Vintage) bool {
	noted, err := readNameFile(filepath.Join(f.dir, servingFolder, verifiedFile))
	return err == nil && noted == fileFingerprint(v)
}

func (f Folder) recordVerified(v *vintage.Vintage) error {
	dir := filepath.Join(f.dir, servingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if f.wasVerified(v) {
		return nil
	}
	return replaceNameFile(filepath.Join(dir, verifiedFile), fileFingerprint(v))
}

// forgetVerified has the next start check a vintage before it serves it.
func (f Folder) forgetVerified() { os.Remove(filepath.Join(f.dir, servingFolder, verifiedFile)) }
