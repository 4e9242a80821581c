// Package releases keeps the releases of one kind of data in a folder of the data folder: the vintages of the address base,
// or the road networks. A service answers from one release at a time. A release is an immutable file that an import builds
// or copies, and its date is that of the data. The package's one job is to change the release of a running service safely:
// an import builds a file in a process of its own, and the service switches to it without a pause. A damaged release is
// never served, and a folder that ever held real data never gets invented data unless an import brings it.
//
// The two processes meet only in files. An import reads Sources, builds a file with Folder.Add and writes its name into the
// file "current". In the service a Watcher polls that name, verifies the file, passes it to the service by swap and writes
// its name into "serving/name". Folder.AwaitServed reads that, so that the import can print which release the service
// answers from. A Kind holds what differs between the kinds of data.
//
//	Sources ──> import ──> Folder.Add ──> current ──> Watcher ──> swap (live)
//	                                                     │
//	Folder.AwaitServed <──── serving/{name,refused} <────┘
package releases

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/queries/mappedfile"
)

// Files of the folder.
const (
	currentFile    = "current"  // holds the name of the current release
	beforeFile     = "before"   // holds the name of the release that was current before
	sumExtension   = ".sum"     // of the file next to a release that holds its noted sum, after the name of the release's file
	servingFolder  = "serving"  // locked by the service that answers from this folder
	fetchingFolder = "fetching" // holds the files that the service is fetching from other instances
)

// DemoDate replaces the date in a release of invented data that a service builds for itself.
const DemoDate = "demo"

// Kind holds what differs between the kinds of releases. F is an open release, such as *vintage.Vintage. All fields are
// required.
type Kind[F any] struct {
	Noun         string // what messages call a release: "vintage"
	Contents     string // what messages call its contents: "addresses"
	FolderName   string // of the folder of releases, within the data folder
	Extension    string // of a release's file, after its name, with the dot
	LastRealFile string // holds the name of the last release of real data; lies next to the folder
	RepairAdvice string // ends the errors about a lost or damaged release: what an operator can do

	Versions func() (first, last int)     // of the file's format that are read
	HasMagic func(head []byte) bool       // whether a file that begins with these 16 bytes is a release
	Open     func(path string) (F, error) // checks the header of a file, not all of it
	File     func(F) *mappedfile.File     // the file of an open release
	Describe func(F) Label
}

// Label is what a folder needs to know of a release.
type Label struct {
	Date        string // of the data, as 2026-11-21, or DemoDate
	IsSynthetic bool   // the data is invented
}

// Folder is the folder of releases of one kind in a data folder. A release's name is its date and the time of its import.
// The methods may be called by several goroutines and processes at a time: those that write lock the folder, and readers
// see a file whole or not at all.
type Folder[F any] struct {
	kind Kind[F]
	dir  string
}

// FolderIn is the folder of releases of a kind in a data folder. It need not exist yet.
func FolderIn[F any](data string, kind Kind[F]) Folder[F] {
	return Folder[F]{kind, filepath.Join(data, kind.FolderName)}
}

// Current returns the name of the current release, "" if there is none.
func (f Folder[F]) Current() (string, error) { return readNameFile(filepath.Join(f.dir, currentFile)) }

// Open opens a release by its name. It checks the header of the file, not all of it.
func (f Folder[F]) Open(name string) (F, error) { return f.kind.Open(f.Path(name)) }

// DamagedError adds the name of a release, and how to repair it, to the reason why it cannot be served.
func (f Folder[F]) DamagedError(name string, reason error) error {
	return fmt.Errorf("%s %s: %w: %s", f.kind.Noun, name, reason, f.kind.RepairAdvice)
}

// Path is the file of a release.
func (f Folder[F]) Path(name string) string { return filepath.Join(f.dir, name+f.kind.Extension) }

// readNameFile reads a file that holds a name. It returns "" if there is no file.
func readNameFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// replaceNameFile replaces a file durably and atomically: a reader sees the old name or the new one, never a part. It
// syncs the file and its folder. The known library for this, google/renameio, does not sync the folder.
func replaceNameFile(path, name string) (err error) {
	draft, err := os.CreateTemp(filepath.Dir(path), ".name-")
	if err != nil {
		return err
	}
	_, err = draft.WriteString(name + "\n")
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = osfile.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return osfile.SyncFolder(filepath.Dir(path))
}

// BuildFunc builds a release into the file at path. Current is the name of the current release, "" if there is none.
type BuildFunc func(path, current string) (Label, error)

// Add builds a release, names it by its date and the time, and makes it the current one. It locks the folder: a
// second Add meanwhile fails with a *dirlock.HeldError after lockTimeout. After an error the current release is the one before. The release
// before stays on disk until the next Add.
func (f Folder[F]) Add(ctx context.Context, now time.Time, build BuildFunc) (name string, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", err
	}
	lock, err := f.acquire(ctx, now)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	current, unreadable := f.repairCurrent(ctx)
	if err := f.removeUnneeded(current, ""); err != nil { // the one before too: three at a time would need more room
		return "", err
	}
	draft := filepath.Join(f.dir, ".draft")
	label, err := build(draft, current)
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s-%d", label.Date, now.UnixMilli())
	if err := osfile.Rename(draft, f.Path(name)); err != nil {
		return "", errors.Join(err, os.Remove(draft))
	}
	if label.Date != DemoDate {
		if err := f.notePending(name); err != nil {
			return "", err
		}
	}
	return name, f.makeCurrent(name, label.IsSynthetic, unreadable != nil)
}

// lockTimeout is how long a command waits for the folder's lock. A service holds it for a moment when it takes over what it has
// fetched; another import holds it for longer.
const lockTimeout = 2 * time.Second

// acquire locks the folder for a command.
func (f Folder[F]) acquire(ctx context.Context, now time.Time) (*dirlock.Lock, error) {
	for waited := time.Duration(0); ; waited += pollInterval / 5 {
		lock, err := dirlock.Acquire(f.dir, now)
		if _, isHeld := errors.AsType[*dirlock.HeldError](err); !isHeld || waited >= lockTimeout {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollInterval / 5):
		}
	}
}

// makeCurrent makes a release whose file is already in the folder the current one. isUnreadable means that the file "current"
// cannot be read. The caller holds the folder's lock.
func (f Folder[F]) makeCurrent(name string, isSynthetic, isUnreadable bool) error {
	if !isSynthetic { // before it is current, so that no crash leaves a current release that is not recorded
		if err := f.recordReal(name); err != nil {
			return err
		}
	}
	if isUnreadable { // for example a folder in place of the file: a rename could not replace it
		if err := os.RemoveAll(filepath.Join(f.dir, currentFile)); err != nil {
			return err
		}
	}
	return f.setCurrent(name)
}

// setCurrent makes a release the current one, and notes the one before unless that was invented for a demo. The caller holds the
// folder's lock.
func (f Folder[F]) setCurrent(name string) error {
	if before, err := f.Current(); err == nil && before != "" && before != name && !IsDemo(before) {
		if err := replaceNameFile(filepath.Join(f.dir, beforeFile), before); err != nil {
			return err
		}
	}
	return replaceNameFile(filepath.Join(f.dir, currentFile), name)
}

// before returns the name of the release that was current before, "" if it is unknown.
func (f Folder[F]) before() string {
	name, err := readNameFile(filepath.Join(f.dir, beforeFile))
	if current, currentErr := f.Current(); err != nil || currentErr != nil || name == current {
		return ""
	}
	return name
}

// RemoveLeftovers removes what killed imports left behind, and all releases except the current one and the one before. While an import
// holds the folder, or if there is no folder, it does nothing.
func (f Folder[F]) RemoveLeftovers(now time.Time) error {
	return f.removeAllBut(now, f.before)
}

// removeAllBut removes leftovers and releases but the current one and the one that kept names, which is asked while the folder is held.
func (f Folder[F]) removeAllBut(now time.Time, kept func() string) error {
	lock, err := dirlock.Acquire(f.dir, now)
	if _, held := errors.AsType[*dirlock.HeldError](err); held || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	current, _ := f.Current() // "" if it cannot be read: then no release is removed
	return errors.Join(f.removeUnneeded(current, kept()), lock.Close())
}

// removeUnneeded removes the leftovers of killed imports and the releases that are neither current nor the one before, which is
// "" to remove that one too. A service may still answer from a removed one, which stays mapped in its memory. If the
// current release is missing, no release is removed: one of them may be all that is left.
func (f Folder[F]) removeUnneeded(current, before string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(f.Path(current))
	isLost := current == "" || err != nil
	err = nil // from here on it collects errors of removing
	needed := []string{currentFile, beforeFile, servingFolder, fetchingFolder, "lock"}
	for _, name := range []string{current, before} {
		if name != "" {
			needed = append(needed, name+f.kind.Extension, name+f.kind.Extension+sumExtension)
		}
	}
	for _, e := range entries {
		isNeeded := slices.Contains(needed, e.Name()) ||
			isLost && filepath.Ext(strings.TrimSuffix(e.Name(), sumExtension)) == f.kind.Extension
		if !isNeeded {
			err = errors.Join(err, removeUnlessInUse(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}

// removeUnlessInUse removes a file or a folder. On systems that do not let a file in use be removed, a file that a service still
// answers from is left to the next import.
func removeUnlessInUse(path string) error {
	if err := os.RemoveAll(path); !osfile.IsInUse(err) {
		return err
	}
	return nil
}

// LostError reports that a folder held a release of real data, and that its file "current" no longer names a release.
type LostError struct {
	Noun, FolderName, RepairAdvice string   // as in Kind
	Last                           string   // name of the last known one
	Remaining                      []string // names of the releases whose files exist
}

func (e *LostError) Error() string {
	if slices.Contains(e.Remaining, e.Last) {
		return fmt.Sprintf("%s/%s names no %s, and any of %s may have been current: write the right name into it, or %s",
			e.FolderName, currentFile, e.Noun, strings.Join(e.Remaining, ", "), e.RepairAdvice)
	}
	return fmt.Sprintf("%s/%s names no %[3]s, and the %[3]s %s is gone: %s", e.FolderName, currentFile, e.Noun, e.Last, e.RepairAdvice)
}

// LastReal returns the name of the last known release of real data, "" if there never was one. Older programs did not write
// LastRealFile; what they imported is found by the other files of the folder. A file that exists but cannot be read counts
// as a trace of real data.
func (f Folder[F]) LastReal() string {
	for _, file := range []string{f.lastRealPath(), filepath.Join(f.dir, currentFile), filepath.Join(f.dir, servingFolder, servedNameFile)} {
		name, err := readNameFile(file)
		if err != nil {
			return "it named" // replaces a name: LostError's text is then "the release it named is gone"
		}
		if name != "" && !IsDemo(name) {
			return name
		}
	}
	for _, name := range f.listNames() {
		if !IsDemo(name) {
			return name
		}
	}
	return ""
}

// lastRealPath is the file that holds the name of the last release of real data.
func (f Folder[F]) lastRealPath() string {
	return filepath.Join(filepath.Dir(f.dir), f.kind.LastRealFile)
}

// recordReal records that the folder holds real data. The record lies next to the folder: the folder may be a
// disk of its own, and when that is not mounted the record must still be there.
func (f Folder[F]) recordReal(name string) error {
	path := f.lastRealPath()
	if noted, err := readNameFile(path); err == nil && noted == name {
		return nil
	}
	return replaceNameFile(path, name)
}

// IsDemo reports whether a service built the release of this name for itself.
func IsDemo(name string) bool { return strings.HasPrefix(name, DemoDate+"-") }

// listNames returns the sorted names of the releases whose files exist, or nil if the folder cannot be read.
func (f Folder[F]) listNames() (names []string) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), f.kind.Extension); ok && e.Type().IsRegular() && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// findOnly returns the release that must have been current if the file "current" is gone: the only one in the folder.
// Invented ones do not count next to real ones. It returns "" if there is no release or more than one, or if the last known
// release of real data is another one.
func (f Folder[F]) findOnly() string {
	names := f.listNames()
	if found := slices.DeleteFunc(slices.Clone(names), IsDemo); len(found) > 0 {
		names = found
	}
	if before, err := readNameFile(filepath.Join(f.dir, beforeFile)); err == nil && len(names) > 1 { // it was not the current one
		names = slices.DeleteFunc(names, func(name string) bool { return name == before })
	}
	if len(names) != 1 {
		return ""
	}
	if last := f.LastReal(); last != "" && last != names[0] { // the remaining one is invented, or older than the lost one
		return ""
	}
	return names[0]
}

// CheckLost explains why a folder has no current release: it returns a *LostError, or nil if there never was a real one.
func (f Folder[F]) CheckLost() error {
	if last := f.LastReal(); last != "" {
		return &LostError{f.kind.Noun, f.kind.FolderName, f.kind.RepairAdvice, last, f.listNames()}
	}
	return nil
}

// repairCurrent returns the name of the current release for an import that holds the folder, "" if there is none. If the
// file "current" is gone and findOnly finds an undamaged release, that one becomes current again. The error means that the
// file "current" exists and cannot be read.
func (f Folder[F]) repairCurrent(ctx context.Context) (current string, unreadable error) {
	current, err := f.Current()
	if err != nil || current != "" {
		return current, err
	}
	name := f.findOnly()
	if name == "" {
		return "", nil
	}
	v, err := f.Open(name)
	if err != nil {
		return "", nil // openPrevious then refuses to lose its ids
	}
	file := f.kind.File(v)
	if errors.Join(file.Verify(ctx), file.Close()) != nil || f.setCurrent(name) != nil {
		return "", nil
	}
	return name, nil
}

// RefusedError tells why the running service did not take over a release.
type RefusedError struct{ Noun, Reason string }

func (e *RefusedError) Error() string {
	return "the running service refused the " + e.Noun + " and stays with the one before: " + e.Reason
}

// ServedName returns the name of the release that the running service answers from, "" while it answers from none. Running
// reports whether a service runs. A service holds the lock of the serving folder, so ServedName tries to take it and releases it.
func (f Folder[F]) ServedName() (name string, running bool, err error) {
	dir := filepath.Join(f.dir, servingFolder)
	lock, err := dirlock.Acquire(dir, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		name, err = readNameFile(filepath.Join(dir, servedNameFile))
		return name, true, err
	}
	if err != nil {
		return "", false, err
	}
	return "", false, lock.Close()
}

// AwaitServed blocks until the running service answers from a release. It returns false and no error if no service runs,
// a *RefusedError if the service refused the release, and ctx's error if ctx ends first.
func (f Folder[F]) AwaitServed(ctx context.Context, name string) (running bool, err error) {
	ticker := time.NewTicker(pollInterval / 5) // adds little to the time that the watcher takes
	defer ticker.Stop()
	for {
		served, running, err := f.ServedName()
		if err != nil || !running || served == name {
			return running, err
		}
		if reason, err := f.readRefusal(name); err != nil || reason != "" {
			return true, errors.Join(err, &RefusedError{f.kind.Noun, reason})
		}
		select {
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for the running service: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// readRefusal returns the reason why the running service refused a release, "" if it did not.
func (f Folder[F]) readRefusal(name string) (string, error) {
	text, err := readNameFile(filepath.Join(f.dir, servingFolder, refusedFile))
	if refusedName, reason, _ := strings.Cut(text, " "); refusedName == name {
		return reason, err
	}
	return "", err
}
