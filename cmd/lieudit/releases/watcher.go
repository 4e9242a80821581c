package releases

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

	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/queries/mappedfile"
)

// pollInterval is how often a watcher reads which release is current and whether the served file has changed. A poll reads
// one small file and the metadata of another.
const pollInterval = 250 * time.Millisecond

// Files of the serving folder, next to its lock.
const (
	servedNameFile = "name"    // name of the release that the service answers from
	refusedFile    = "refused" // name of a release that it did not take over, and the reason
	verifiedFile   = "checked" // fingerprint of the file that was last found undamaged
)

// Watcher lets a service answer from the current release, and never from a damaged one. Load polls once before the service
// starts. Run then polls every pollInterval, and reads all of the served file once every verifyInterval:
//
//	Load, poll ──> loadCurrent ──> openVerified ──> swap      another release is current
//	                    └────> withdrawDamaged ──> withdraw   the served file is damaged or was written to
//	verifyPeriodically ──> VerifyGently                       finds damage, which the next poll sees
//
// Load and Run must not overlap; Problem may be called at any time. The folder decides which release is current; the
// Watcher writes "current" only if its content is lost and can be restored without doubt.
type Watcher[F any] struct {
	folder         Folder[F]
	swap           func(context.Context, F) // see NewWatcher
	withdraw       func(error)              // see NewWatcher
	log            *slog.Logger
	isAnswering    func() bool   // see AnnounceWhile
	verifyInterval time.Duration // pause between two readings of all of the served file

	servedName string         // name of the served release, "" without one; written by the polling goroutine alone
	refused    refusedRelease // the release that was refused last

	mu      sync.Mutex       // guards the fields below
	served  *mappedfile.File // nil: none
	problem error            // of the last poll; nil: none
}

// refusedRelease is a file that was read and found damaged. It is remembered, so that a poll does not read it again until
// it changes.
type refusedRelease struct {
	name   string
	info   os.FileInfo
	reason error
}

// matches reports whether a file is the refused one and has not changed since.
func (r refusedRelease) matches(name string, info os.FileInfo) bool {
	return r.name == name && isUnchanged(r.info, info)
}

// isUnchanged reports whether two calls of os.Stat found the same inode, size and time of the last write. It returns false if one
// of them is nil.
func isUnchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ChangedError means that the file of the served release was written to, so the mapped bytes may be anything. The release
// is served again once the whole file has been read and found undamaged.
type ChangedError struct{ Noun string }

func (e *ChangedError) Error() string {
	return "the file of the " + e.Noun + " was changed while it was served"
}

// NewWatcher returns a watcher of a folder. The watcher passes each release that becomes current to swap, which owns it
// from then on and has it served when it returns. It calls withdraw, with the reason, when the served release must not
// answer any more. Both are called by one goroutine, swap and withdraw never at the same time.
func NewWatcher[F any](f Folder[F], log *slog.Logger, swap func(context.Context, F), withdraw func(error)) *Watcher[F] {
	return &Watcher[F]{folder: f, swap: swap, withdraw: withdraw, log: log, isAnswering: func() bool { return true }, verifyInterval: 24 * time.Hour}
}

// AnnounceWhile makes the watcher announce its release only while isAnswering reports that the service answers from it: a service may stop
// doing so for a reason of its own. It must be called before Run, whose goroutine calls isAnswering.
func (w *Watcher[F]) AnnounceWhile(isAnswering func() bool) { w.isAnswering = isAnswering }

// Problem tells what is wrong with the releases and how to repair it. It returns nil if nothing is wrong.
func (w *Watcher[F]) Problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// Load serves the current release if there is an undamaged one, and otherwise leaves a Problem. It may take long: it reads
// all of a file that no earlier start has verified.
func (w *Watcher[F]) Load(ctx context.Context) {
	w.recordProblem(w.loadCurrent(ctx, (*mappedfile.File).Verify))
}

// recordProblem keeps the outcome of a poll for Problem. It logs each new problem once, and the end of the last one. An
// interrupted poll says nothing about the release and changes nothing.
func (w *Watcher[F]) recordProblem(err error) {
	noun := w.folder.kind.Noun
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err != nil && (w.problem == nil || w.problem.Error() != err.Error()):
		consequence := "no " + w.folder.kind.Contents + " are served"
		if w.served != nil {
			consequence = "the " + noun + " before is served on"
		}
		w.log.Error("the current "+noun+" cannot be served", "consequence", consequence, "reason", err)
	case err == nil && w.problem != nil:
		w.log.Info("the current "+noun+" is served again", "name", w.servedName)
	}
	w.problem = err
}

// verifyFunc reads all of a release and returns its damage: Verify at full speed before the service starts, VerifyGently
// next to its requests.
type verifyFunc func(*mappedfile.File, context.Context) error

// loadCurrent does one poll: it withdraws a damaged release and serves the current one. If the file "current" is gone
// and only one release can have been current, it serves that one and restores the file. Its error becomes the Problem.
func (w *Watcher[F]) loadCurrent(ctx context.Context, verify verifyFunc) error {
	w.withdrawDamaged()
	name, err := w.folder.Current()
	if err != nil {
		return fmt.Errorf("%s/%s cannot be read: %w: %s", w.folder.kind.FolderName, currentFile, err, w.folder.kind.RepairAdvice)
	}
	isNamed := name != ""
	if !isNamed {
		if name = w.folder.findOnly(); name == "" {
			return w.folder.CheckLost()
		}
	}
	if err := w.serve(ctx, name, verify); err != nil {
		return err
	}
	if !isNamed {
		return w.restoreCurrent(name)
	}
	return nil
}

// withdrawDamaged takes the served release out of service if a reader found it damaged or if its file was written to.
// A damaged one is refused until its file changes. One that was only written to is verified again by the same poll.
// A release whose file was removed or replaced stays in service: the mapping keeps the old file.
func (w *Watcher[F]) withdrawDamaged() {
	file := w.servedFile()
	if file == nil {
		return
	}
	reason := file.Damage()
	if reason != nil {
		w.refused = refusedRelease{w.servedName, file.Info(), w.folder.DamagedError(w.servedName, reason)}
		w.folder.forgetVerified()
	} else if info, err := os.Stat(w.folder.Path(w.servedName)); err == nil && os.SameFile(info, file.Info()) && !isUnchanged(info, file.Info()) {
		reason = &ChangedError{w.folder.kind.Noun}
	}
	if reason == nil {
		return
	}
	w.withdraw(reason)
	w.setServed("", nil)
}

// ServedName returns the name of the release that the service answers from, "" if there is none.
func (w *Watcher[F]) ServedName() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served == nil {
		return ""
	}
	return w.servedName
}

func (w *Watcher[F]) servedFile() *mappedfile.File {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.served
}

func (w *Watcher[F]) setServed(name string, file *mappedfile.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servedName, w.served = name, file
}

// serve opens a release by its name, verifies it and passes it to swap. It does nothing if the same file is already
// served, and returns the earlier reason if the same file was refused before.
func (w *Watcher[F]) serve(ctx context.Context, name string, verify verifyFunc) error {
	info, err := os.Stat(w.folder.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s/%s names %s, whose file is gone: %s", w.folder.kind.FolderName, currentFile, name, w.folder.kind.RepairAdvice)
	}
	if err != nil {
		return w.folder.DamagedError(name, err)
	}
	if file := w.servedFile(); file != nil && name == w.servedName && isUnchanged(info, file.Info()) {
		return nil
	}
	if w.refused.matches(name, info) {
		return w.refused.reason
	}
	v, err := w.openVerified(ctx, name, verify)
	if err != nil && ctx.Err() == nil { // an interrupted verification refuses nothing
		w.refused = refusedRelease{name, info, w.folder.DamagedError(name, err)}
		return w.refused.reason
	}
	if err != nil {
		return err
	}
	file := w.folder.kind.File(v)
	if err := file.Prefault(); err != nil {
		w.log.Warn(w.folder.kind.Noun+" not read ahead", "reason", err) // only the first requests are slower
	}
	isSynthetic := w.folder.kind.Describe(v).IsSynthetic
	w.swap(ctx, v)
	w.setServed(name, file)
	w.refused = refusedRelease{}
	if !isSynthetic {
		if err := w.folder.recordReal(name); err != nil {
			w.log.Warn(w.folder.kind.Noun+" of real data not noted", "reason", err)
		}
	}
	return nil
}

// openVerified opens a release and verifies its whole file, unless this process or an earlier one found the same file
// undamaged before. It returns an error for a damaged one.
func (w *Watcher[F]) openVerified(ctx context.Context, name string, verify verifyFunc) (v F, err error) {
	v, err = w.folder.Open(name)
	if err != nil {
		return v, err
	}
	file := w.folder.kind.File(v)
	if w.folder.wasVerified(file) {
		return v, nil
	}
	if err := verify(file, ctx); err != nil {
		return v, errors.Join(err, file.Close())
	}
	w.recordVerified(file)
	return v, nil
}

// recordVerified records that a release is undamaged, so that the next start serves it without reading all of it first.
func (w *Watcher[F]) recordVerified(file *mappedfile.File) {
	if err := w.folder.recordVerified(file); err != nil {
		w.log.Warn("check of a "+w.folder.kind.Noun+" not noted: the next start checks it before it serves it", "reason", err)
	}
}

// restoreCurrent writes the name of the served release into the missing file "current". While an import holds the
// folder it does nothing: the import restores the file itself (Folder.repairCurrent).
func (w *Watcher[F]) restoreCurrent(name string) error {
	lock, err := dirlock.Acquire(w.folder.dir, time.Now())
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s/%s names no %s: %w", w.folder.kind.FolderName, currentFile, w.folder.kind.Noun, err)
	}
	err = w.folder.setCurrent(name)
	w.log.Warn(w.folder.kind.FolderName+"/"+currentFile+" named no "+w.folder.kind.Noun+"; it names the only one that is there", "name", name)
	return errors.Join(err, lock.Close())
}

// Run polls until ctx ends, and reads all of the served file every verifyInterval. It locks the serving folder and announces
// there which release it serves, for Folder.ServedName. If another service on the same data folder holds the lock,
// that one announces, and this one still polls. Run returns when its goroutines have ended, without an error if
// ctx ended it.
func (w *Watcher[F]) Run(ctx context.Context) (err error) {
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
		if lock == nil { // a lock that another process holds may be free later: ServedName takes it for a moment
			if lock, _ = dirlock.Acquire(dir, time.Now()); lock != nil { // after an error it is nil, and the next poll tries again
				announced = readDemoAnnouncement(dir)
			}
		}
		announced = w.poll(ctx, dir, announced, lock != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// verifyPeriodically reads all of the served release every verifyInterval, slowly enough for the requests next to it. A disk
// may damage a file long after it was written. The release keeps the damage that it finds (mappedfile.File.Damage), and
// the next poll withdraws it.
func (w *Watcher[F]) verifyPeriodically(ctx context.Context) {
	for {
		if file := w.servedFile(); file != nil {
			if file.VerifyGently(ctx) == nil {
				w.recordVerified(file)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.verifyInterval):
		}
	}
}

// poll does one loadCurrent and returns the name that is announced afterwards. With the lock it writes a new refusal and its
// reason into refusedFile, and the name of the served release into servedNameFile if that has changed. An announcement
// that fails is tried again by the next poll, a refusal is not.
func (w *Watcher[F]) poll(ctx context.Context, dir, announced string, holdsLock bool) string {
	refusedBefore := w.refused
	w.recordProblem(w.loadCurrent(ctx, (*mappedfile.File).VerifyGently))
	if !holdsLock {
		return announced
	}
	if w.refused.reason != nil && w.refused != refusedBefore {
		if err := replaceNameFile(filepath.Join(dir, refusedFile), w.refused.name+" "+w.refused.reason.Error()); err != nil {
			w.log.Warn("refusal of a "+w.folder.kind.Noun+" not told", "reason", err)
		}
	}
	name := w.servedName
	if !w.isAnswering() {
		name = ""
	}
	if name == announced {
		return announced
	}
	if err := replaceNameFile(filepath.Join(dir, servedNameFile), name); err != nil {
		w.log.Warn("served "+w.folder.kind.Noun+" not told", "reason", err)
		return announced
	}
	return name
}

// readDemoAnnouncement returns the name of the invented release that an earlier watcher announced last, "" if its release was not
// invented. That release may no longer be served. A name of real data stays until another one is announced: Folder.LastReal reads it
// as a trace.
func readDemoAnnouncement(dir string) string {
	if name, err := readNameFile(filepath.Join(dir, servedNameFile)); err == nil && IsDemo(name) {
		return name
	}
	return ""
}

// fileFingerprint is a text that changes whenever a release's file is written to or replaced. It holds the digest of
// the file's header, the inode, the size in bytes and the time of the last write.
func fileFingerprint(file *mappedfile.File) string {
	return fmt.Sprintf("%s %d %d %d", file.Digest(), osfile.Number(file.Info()), file.Size(), file.Modified().UnixNano())
}

// wasVerified reports whether the same file was found undamaged before.
func (f Folder[F]) wasVerified(file *mappedfile.File) bool {
	noted, err := readNameFile(filepath.Join(f.dir, servingFolder, verifiedFile))
	return err == nil && noted == fileFingerprint(file)
}

// recordVerified writes the fingerprint of an undamaged file into verifiedFile.
func (f Folder[F]) recordVerified(file *mappedfile.File) error {
	dir := filepath.Join(f.dir, servingFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if f.wasVerified(file) {
		return nil
	}
	return replaceNameFile(filepath.Join(dir, verifiedFile), fileFingerprint(file))
}

// forgetVerified makes the next start read all of the release before it serves it. An error is dropped: a file that cannot
// be removed is most often not there.
func (f Folder[F]) forgetVerified() { os.Remove(filepath.Join(f.dir, servingFolder, verifiedFile)) }
