// Package vintages keeps the folder of address vintages in a data folder. A vintage is one release of the address base,
// the Base Adresse Nationale (BAN), built into an index file; its millésime is the date of the data. The package's one job
// is to change the vintage of a running service safely: an import builds a file in a process of its own, and the service
// takes it over without a pause. Its constraint: a damaged vintage is never served, and a folder that ever held real
// addresses never gets invented ones unless an import brings them.
//
// The two processes meet only in files. Import.Run reads Sources, builds a file with Folder.Add and writes its name into
// the file "current". In the service a Watcher polls that name, verifies the file, passes it to the service by swap and
// writes its name into "serving/name". Folder.AwaitServed reads that, so that the import can print which vintage the
// service answers from.
//
//	Sources ──> Import.Run ──> Folder.Add ──> current ──> Watcher ──> swap (live)
//	                                                         │
//	Folder.AwaitServed <──────── serving/{name,refused} <────┘
package vintages

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

	"lieudit/eventstore/dirlock"
	"lieudit/queries/address/vintage"
)

// Files of the folder. lastVintageFile lies beside the folder.
const (
	currentFile      = "current"      // holds the name of the current vintage
	servingFolder    = "serving"      // locked by the service that answers from this folder
	vintageExtension = ".vintage"     // of a vintage's file, after its name
	lastVintageFile  = "last-vintage" // holds the name of the last vintage of real addresses
)

// DemoMillesime stands in place of a date in the vintage of invented addresses that a service builds for itself.
const DemoMillesime = "demo"

// Folder is the folder of vintages in a data folder. A vintage's name is its millésime and the time of its import. The
// methods may be called by several goroutines and processes at a time: those that write lock the folder, and readers see
// a file whole or not at all.
type Folder struct{ dir string }

// FolderIn is the folder of vintages in a data folder. It need not exist yet.
func FolderIn(data string) Folder { return Folder{filepath.Join(data, "vintages")} }

// Current is the name of the current vintage, "" when there is none.
func (f Folder) Current() (string, error) { return readNameFile(filepath.Join(f.dir, currentFile)) }

// Open opens a vintage by its name. It checks the header of the file, not all of it.
func (f Folder) Open(name string) (*vintage.Vintage, error) { return vintage.Open(f.Path(name)) }

// Path is the file of a vintage.
func (f Folder) Path(name string) string { return filepath.Join(f.dir, name+vintageExtension) }

// readNameFile reads a file that holds a name; "" when there is no file.
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
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// BuildFunc builds a vintage into the file at path. Current is the name of the current vintage, "" when there is none.
type BuildFunc func(path, current string) (vintage.Summary, error)

// Add builds a vintage, names it by its millésime and the time, and makes it the current one. It locks the folder: a
// second Add meanwhile fails with a *dirlock.HeldError. After an error the current vintage is the one before. The vintage
// before stays on disk until the next Add or RemoveLeftovers.
func (f Folder) Add(ctx context.Context, now time.Time, build BuildFunc) (name string, s vintage.Summary, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", s, err
	}
	lock, err := dirlock.Acquire(f.dir, now)
	if err != nil {
		return "", s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	current, unreadable := f.repairCurrent(ctx)
	if err := f.removeUnneeded(current); err != nil {
		return "", s, err
	}
	draft := filepath.Join(f.dir, ".draft")
	if s, err = build(draft, current); err != nil {
		return "", s, err
	}
	name = fmt.Sprintf("%s-%d", s.Millesime, now.UnixMilli())
	if err := os.Rename(draft, f.Path(name)); err != nil {
		return "", s, errors.Join(err, os.Remove(draft))
	}
	if !s.Synthetic { // before it is current, so that no crash leaves a current vintage that is not recorded
		if err := f.recordRealVintage(name); err != nil {
			return "", s, err
		}
	}
	if unreadable != nil { // for example a folder in place of the file: a rename could not replace it
		if err := os.RemoveAll(filepath.Join(f.dir, currentFile)); err != nil {
			return "", s, err
		}
	}
	return name, s, f.setCurrent(name)
}

// setCurrent makes a vintage the current one. The caller holds the folder's lock.
func (f Folder) setCurrent(name string) error {
	return replaceNameFile(filepath.Join(f.dir, currentFile), name)
}

// RemoveLeftovers removes what killed imports left behind, and vintages that are not current. While an import holds the
// folder, or where there is no folder, it does nothing.
func (f Folder) RemoveLeftovers(now time.Time) error {
	lock, err := dirlock.Acquire(f.dir, now)
	if _, held := errors.AsType[*dirlock.HeldError](err); held || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	current, _ := f.Current() // when it cannot be read it is "", and no vintage is removed
	return errors.Join(f.removeUnneeded(current), lock.Close())
}

// removeUnneeded removes the leftovers of killed imports and the vintages that are not current. A service may still answer
// from a removed one, which stays mapped in its memory. Where the current vintage is missing, no vintage is removed: one
// of them may be all that is left.
func (f Folder) removeUnneeded(current string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(f.Path(current))
	isLost := current == "" || err != nil
	err = nil // from here on the errors of removing
	for _, e := range entries {
		isNeeded := slices.Contains([]string{currentFile, servingFolder, "lock", current + vintageExtension}, e.Name()) ||
			isLost && filepath.Ext(e.Name()) == vintageExtension
		if !isNeeded {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}

// repairAdvice ends the errors about a lost or damaged vintage: what an operator can do.
const repairAdvice = "put it back from a backup, or begin anew (the ids it gave are lost): lieudit ban import --fresh FILE"

// LostError says that a folder held a vintage of real addresses, and that its file "current" names no vintage any more.
type LostError struct {
	Last      string   // name of the last one that is known of
	Remaining []string // names of the vintages whose files are there
}

func (e *LostError) Error() string {
	if slices.Contains(e.Remaining, e.Last) {
		return fmt.Sprintf("vintages/%s names no vintage, and any of %s may have been current: write the right name into it, or %s",
			currentFile, strings.Join(e.Remaining, ", "), repairAdvice)
	}
	return fmt.Sprintf("vintages/%s names no vintage, and the vintage %s is gone: %s", currentFile, e.Last, repairAdvice)
}

// LastRealVintage is the name of the last known vintage of real addresses, "" when there never was one. Older releases did
// not write lastVintageFile; their vintages are found by the other files of the folder. A file that exists and cannot be
// read counts as a trace of real addresses.
func (f Folder) LastRealVintage() string {
	for _, file := range []string{
		filepath.Join(filepath.Dir(f.dir), lastVintageFile), filepath.Join(f.dir, currentFile), filepath.Join(f.dir, servingFolder, servedNameFile),
	} {
		name, err := readNameFile(file)
		if err != nil {
			return "it named" // in place of a name: LostError's text is then "the vintage it named is gone"
		}
		if name != "" && !isDemo(name) {
			return name
		}
	}
	for _, name := range f.listVintages() {
		if !isDemo(name) {
			return name
		}
	}
	return ""
}

// recordRealVintage records that the folder holds real addresses. The record lies beside the folder: the folder may be a
// disk of its own, and when that is not mounted the record must still be there.
func (f Folder) recordRealVintage(name string) error {
	path := filepath.Join(filepath.Dir(f.dir), lastVintageFile)
	if noted, err := readNameFile(path); err == nil && noted == name {
		return nil
	}
	return replaceNameFile(path, name)
}

// isDemo says whether a name is that of a vintage that a service built for itself.
func isDemo(name string) bool { return strings.HasPrefix(name, DemoMillesime+"-") }

// listVintages returns the names of the vintages whose files are there, sorted; none when the folder cannot be read.
func (f Folder) listVintages() (names []string) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), vintageExtension); ok && e.Type().IsRegular() && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// findOnlyVintage returns the vintage that must have been the current one when the file "current" is gone: the only one
// there, where invented ones do not count beside real ones. It is "" when there is none, when there are several, and when
// the last known vintage of real addresses is another one.
func (f Folder) findOnlyVintage() string {
	names := f.listVintages()
	if found := slices.DeleteFunc(slices.Clone(names), isDemo); len(found) > 0 {
		names = found
	}
	if len(names) != 1 {
		return ""
	}
	if last := f.LastRealVintage(); last != "" && last != names[0] { // what is left is invented, or older than what was lost
		return ""
	}
	return names[0]
}

// CheckLost explains why a folder has no current vintage: a *LostError, or nil where there never was a real one.
func (f Folder) CheckLost() error {
	if last := f.LastRealVintage(); last != "" {
		return &LostError{Last: last, Remaining: f.listVintages()}
	}
	return nil
}

// repairCurrent returns the name of the current vintage for an import that holds the folder. When the file "current" is
// gone and findOnlyVintage finds an undamaged vintage, that becomes the current one again. It is "" when there is none.
// The error says that the file "current" exists and cannot be read.
func (f Folder) repairCurrent(ctx context.Context) (current string, unreadable error) {
	current, err := f.Current()
	if err != nil || current != "" {
		return current, err
	}
	name := f.findOnlyVintage()
	if name == "" {
		return "", nil
	}
	v, err := f.Open(name)
	if err != nil {
		return "", nil // openPrevious then refuses to lose its ids
	}
	if errors.Join(v.Verify(ctx), v.Close()) != nil || f.setCurrent(name) != nil {
		return "", nil
	}
	return name, nil
}

// RefusedError says why the running service did not take over a vintage.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return "the running service refused the vintage and stays with the one before: " + e.Reason
}

// ServedVintage is the name of the vintage that the running service answers from, "" while it answers from none. Running
// says whether a service runs: it holds the lock of the serving folder, which ServedVintage tries to take and releases.
func (f Folder) ServedVintage() (name string, running bool, err error) {
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

// AwaitServed blocks until the running service answers from a vintage. It returns false and no error when no service runs,
// a *RefusedError when the service refused the vintage, and ctx's error when ctx ends first.
func (f Folder) AwaitServed(ctx context.Context, name string) (running bool, err error) {
	ticker := time.NewTicker(pollInterval / 5) // adds little to the time that the watcher takes
	defer ticker.Stop()
	for {
		served, running, err := f.ServedVintage()
		if err != nil || !running || served == name {
			return running, err
		}
		if reason, err := f.readRefusal(name); err != nil || reason != "" {
			return true, errors.Join(err, &RefusedError{reason})
		}
		select {
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for the running service: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// readRefusal is the reason why the running service refused a vintage, "" when it did not.
func (f Folder) readRefusal(name string) (string, error) {
	text, err := readNameFile(filepath.Join(f.dir, servingFolder, refusedFile))
	if refusedName, reason, _ := strings.Cut(text, " "); refusedName == name {
		return reason, err
	}
	return "", err
}
