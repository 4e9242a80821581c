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

// pollInterval is how often a watcher reads which vintage is current and whether the served file has changed.
const pollInterval = 250 * time.Millisecond

// Files of the serving folder, beside its lock.
const (
	servedNameFile = "name"    // name of the vintage that the service answers from
	refusedFile    = "refused" // name of a vintage that it did not take over, and the reason
	verifiedFile   = "checked" // fingerprint of the file that was found undamaged last
)

// Watcher keeps a service on the current vintage and off a damaged one. Load looks once before the service starts; Run
// then polls, and reads all of the served file now and then:
//
//	Load, poll ──> loadCurrent ──> openVerified ──> swap      another vintage is current
//	                    └────> withdrawDamaged ──> withdraw   the served file is damaged or was written to
//	verifyPeriodically ──> VerifyGently                       notes damage, which the next poll sees
//
// Load and Run must not overlap; Problem may be called at any time.
type Watcher struct {
	folder         Folder
	swap           func(context.Context, *vintage.Vintage)
	withdraw       func(error)
	log            *slog.Logger
	verifyInterval time.Duration // pause between two readings of all of the served file

	servedName string          // name of the served vintage
	rejected   rejectedVintage // the vintage that was refused last

	mu      sync.Mutex // guards the fields below
	served  *vintage.Vintage
	problem error
}

// rejectedVintage is a file that was read and must not be served.
type rejectedVintage struct {
	name   string
	info   os.FileInfo
	reason error
}

// matches says whether a file is the rejected one and has not changed since.
func (r rejectedVintage) matches(name string, info os.FileInfo) bool {
	return r.name == name && isUnchanged(r.info, info)
}

// isUnchanged compares two looks at a file: by inode, size and time of the last write.
func isUnchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ErrChanged says that the file of the served vintage was written to. The vintage is served again once all of the file
// was read and found undamaged.
var ErrChanged = errors.New("the file of the vintage was changed while it was served")

// NewWatcher returns a watcher of a folder. It passes each vintage that becomes current to swap, which owns it and serves
// it by the time it returns. It calls withdraw when the served vintage must not answer any more.
func NewWatcher(f Folder, log *slog.Logger, swap func(context.Context, *vintage.Vintage), withdraw func(error)) *Watcher {
	return &Watcher{folder: f, swap: swap, withdraw: withdraw, log: log, verifyInterval: 24 * time.Hour}
}

// Problem says what is wrong with the vintages and how to repair it; nil when nothing is wrong.
func (w *Watcher) Problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// Load serves the current vintage if there is an undamaged one.
func (w *Watcher) Load(ctx context.Context) {
	w.recordProblem(w.loadCurrent(ctx, (*vintage.Vintage).Verify))
}

// recordProblem keeps the problem for readiness and logs each new one once, and its end.
func (w *Watcher) recordProblem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err != nil && (w.problem == nil || w.problem.Error() != err.Error()):
		consequence := "no addresses are served"
		if w.served != nil {
			consequence = "the vintage before is served on"
		}
		w.log.Error("the current vintage cannot be served", "consequence", consequence, "reason", err)
	case err == nil && w.problem != nil:
		w.log.Info("the current vintage is served again", "name", w.servedName)
	}
	w.problem = err
}

// verifyFunc reads all of a vintage: fast before the service starts, gently beside its requests.
type verifyFunc func(*vintage.Vintage, context.Context) error

// loadCurrent does one poll: it withdraws a damaged vintage and serves the current one.
func (w *Watcher) loadCurrent(ctx context.Context, verify verifyFunc) error {
	w.withdrawDamaged()
	name, err := w.folder.Current()
	if err != nil {
		return fmt.Errorf("vintages/%s cannot be read: %w: %s", currentFile, err, repairAdvice)
	}
	isNamed := name != ""
	if !isNamed {
		if name = w.folder.findOnlyVintage(); name == "" {
			return w.folder.CheckLost()
		}
	}
	if err := w.serveVintage(ctx, name, verify); err != nil {
		return err
	}
	if !isNamed {
		return w.restoreCurrent(name)
	}
	return nil
}

// withdrawDamaged takes the served vintage out of service when it proved damaged or its file was written to.
func (w *Watcher) withdrawDamaged() {
	v := w.servedVintage()
	if v == nil {
		return
	}
	reason := v.Damage()
	if reason != nil {
		w.rejected = rejectedVintage{w.servedName, v.Info(), w.damagedError(w.servedName, reason)}
		w.folder.forgetVerified()
	} else if info, err := os.Stat(w.folder.Path(w.servedName)); err == nil && os.SameFile(info, v.Info()) && !isUnchanged(info, v.Info()) {
		reason = ErrChanged
	}
	if reason == nil {
		return
	}
	w.withdraw(reason)
	w.setServed("", nil)
}

// damagedError adds to a reason which vintage it is about and how to repair it.
func (w *Watcher) damagedError(name string, reason error) error {
	return fmt.Errorf("vintage %s: %w: %s", name, reason, repairAdvice)
}

func (w *Watcher) servedVintage() *vintage.Vintage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.served
}

func (w *Watcher) setServed(name string, v *vintage.Vintage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servedName, w.served = name, v
}

// serveVintage serves a vintage by name, unless it is served already or the same file was rejected before.
func (w *Watcher) serveVintage(ctx context.Context, name string, verify verifyFunc) error {
	info, err := os.Stat(w.folder.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("vintages/%s names %s, whose file is gone: %s", currentFile, name, repairAdvice)
	}
	if err != nil {
		return w.damagedError(name, err)
	}
	if v := w.servedVintage(); v != nil && name == w.servedName && isUnchanged(info, v.Info()) {
		return nil
	}
	if w.rejected.matches(name, info) {
		return w.rejected.reason
	}
	v, err := w.openVerified(ctx, name, verify)
	if err != nil && ctx.Err() == nil {
		w.rejected = rejectedVintage{name, info, w.damagedError(name, err)}
		return w.rejected.reason
	}
	if err != nil {
		return err
	}
	if err := v.Prefault(); err != nil {
		w.log.Warn("vintage not read ahead", "reason", err)
	}
	w.swap(ctx, v)
	w.setServed(name, v)
	w.rejected = rejectedVintage{}
	if !v.Synthetic {
		if err := w.folder.recordRealVintage(name); err != nil {
			w.log.Warn("vintage of real addresses not noted", "reason", err)
		}
	}
	return nil
}

// openVerified opens an undamaged vintage. It reads all of the file, unless this very file was found undamaged before.
func (w *Watcher) openVerified(ctx context.Context, name string, verify verifyFunc) (*vintage.Vintage, error) {
	v, err := w.folder.Open(name)
	if err != nil || w.folder.wasVerified(v) {
		return v, err
	}
	if err := verify(v, ctx); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	w.recordVerified(v)
	return v, nil
}

// recordVerified notes that a vintage is undamaged, so that the next start need not read all of it before it serves it.
func (w *Watcher) recordVerified(v *vintage.Vintage) {
	if err := w.folder.recordVerified(v); err != nil {
		w.log.Warn("check of a vintage not noted: the next start checks it before it serves it", "reason", err)
	}
}

// restoreCurrent writes the name of the served vintage into a folder that names none. An import that holds the folder
// does so itself (Folder.repairCurrent).
func (w *Watcher) restoreCurrent(name string) error {
	lock, err := dirlock.Acquire(w.folder.dir, time.Now())
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("vintages/%s names no vintage: %w", currentFile, err)
	}
	err = w.folder.setCurrent(name)
	w.log.Warn("vintages/"+currentFile+" named no vintage; it names the only one that is there", "name", name)
	return errors.Join(err, lock.Close())
}

// Run polls until ctx ends, and reads all of the served file now and then. It locks the serving folder and announces there
// which vintage it serves. Where another service on the same data folder holds the lock, that one announces, and this one
// polls all the same.
func (w *Watcher) Run(ctx context.Context) (err error) {
	dir := filepath.Join(w.folder.dir, servingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var checks sync.WaitGroup
	checks.Go(func() { w.verifyPeriodically(ctx) })
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
		if lock == nil { // ServedVintage takes the lock for a moment, and a folder that was gone may be back
			lock, _ = dirlock.Acquire(dir, time.Now())
		}
		announced = w.poll(ctx, dir, announced, lock != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// verifyPeriodically reads all of the served vintage every verifyInterval, slowly enough for the requests beside it.
func (w *Watcher) verifyPeriodically(ctx context.Context) {
	for {
		if v := w.servedVintage(); v != nil {
			if v.VerifyGently(ctx) == nil {
				w.recordVerified(v)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.verifyInterval):
		}
	}
}

// poll looks once and returns the name that is announced afterwards. With the lock it announces a new rejection, and the
// served vintage when it is not the announced one.
func (w *Watcher) poll(ctx context.Context, dir, announced string, holdsLock bool) string {
	rejectedBefore := w.rejected
	w.recordProblem(w.loadCurrent(ctx, (*vintage.Vintage).VerifyGently))
	if !holdsLock {
		return announced
	}
	if w.rejected.reason != nil && w.rejected != rejectedBefore {
		if err := replaceNameFile(filepath.Join(dir, refusedFile), w.rejected.name+" "+w.rejected.reason.Error()); err != nil {
			w.log.Warn("refusal of a vintage not told", "reason", err)
		}
	}
	if w.servedName == announced {
		return announced
	}
	if err := replaceNameFile(filepath.Join(dir, servedNameFile), w.servedName); err != nil {
		w.log.Warn("served vintage not told", "reason", err)
		return announced
	}
	return w.servedName
}

// fileFingerprint is a text that changes whenever a vintage's file is changed or replaced: digest, inode, size and time of
// the last write.
func fileFingerprint(v *vintage.Vintage) string {
	inode := uint64(0)
	if stat, ok := v.Info().Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", v.Digest(), inode, v.Size(), v.Modified().UnixNano())
}

// wasVerified says whether this very file was found undamaged before.
func (f Folder) wasVerified(v *vintage.Vintage) bool {
	noted, err := readNameFile(filepath.Join(f.dir, servingFolder, verifiedFile))
	return err == nil && noted == fileFingerprint(v)
}

// recordVerified notes the fingerprint of an undamaged file beside the served name.
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

// forgetVerified makes the next start read all of the vintage before it serves it.
func (f Folder) forgetVerified() { os.Remove(filepath.Join(f.dir, servingFolder, verifiedFile)) }
