// Package vintages is the folder of address vintages beside a service's other data: immutable files, the name of the
// current one, and a word from the running service which it answers from. Imports take turns by a lock of their
// own; whatever an import leaves when it is killed is removed by the next. A folder that ever held real addresses never
// gets invented ones by itself, whatever became of its files: a note beside it remembers.
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

const (
	currentFile      = "current" // the name of the current vintage
	servingFolder    = "serving" // the folder held by the service that answers from here
	vintageExtension = ".vintage"
	lastVintageFile  = "last-vintage" // beside the folder: the name of the last one of real addresses
)

// DemoMillesime is the millésime of the invented vintage that a service makes for itself.
const DemoMillesime = "demo"

// Folder is where the vintages of a data folder are.
type Folder struct{ dir string }

// FolderIn is the folder in a data folder. It need not exist yet.
func FolderIn(data string) Folder { return Folder{filepath.Join(data, "vintages")} }

// Current is the name of the current vintage; empty: there is none.
func (f Folder) Current() (string, error) { return readNameFile(filepath.Join(f.dir, currentFile)) }

// Open opens a vintage by its name.
func (f Folder) Open(name string) (*vintage.Vintage, error) { return vintage.Open(f.Path(name)) }

// Path is the file of a vintage.
func (f Folder) Path(name string) string { return filepath.Join(f.dir, name+vintageExtension) }

func readNameFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// replaceNameFile puts a name into a file at once, so that a reader sees the old one or the new one.
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

// BuildFunc makes a vintage at a path. Current is the name of the current one, empty when there is none.
type BuildFunc func(path, current string) (vintage.Summary, error)

// Add builds a vintage and makes it the current one. A second import at the same time is a *hold.HeldError. What fails
// leaves the folder as it was.
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
	if !s.Synthetic {
		if err := f.recordRealVintage(name); err != nil {
			return "", s, err
		}
	}
	if unreadable != nil { // whatever it is, it is no name
		if err := os.RemoveAll(filepath.Join(f.dir, currentFile)); err != nil {
			return "", s, err
		}
	}
	return name, s, f.setCurrent(name)
}

// setCurrent makes a vintage the current one.
func (f Folder) setCurrent(name string) error {
	return replaceNameFile(filepath.Join(f.dir, currentFile), name)
}

// RemoveLeftovers removes what killed imports left, unless an import is at work.
func (f Folder) RemoveLeftovers(now time.Time) error {
	lock, err := dirlock.Acquire(f.dir, now)
	if _, held := errors.AsType[*dirlock.HeldError](err); held || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	current, _ := f.Current() // where that cannot be read no vintage is removed
	return errors.Join(f.removeUnneeded(current), lock.Close())
}

// removeUnneeded removes what nothing needs: leavings of killed imports, and vintages that are not current. One that is served
// still stays in memory until its service lets go. Where the current one is not there, none is removed: one of them may
// be all that is left.
func (f Folder) removeUnneeded(current string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(f.Path(current))
	isLost := current == "" || err != nil
	err = nil
	for _, e := range entries {
		isNeeded := slices.Contains([]string{currentFile, servingFolder, "lock", current + vintageExtension}, e.Name()) ||
			isLost && filepath.Ext(e.Name()) == vintageExtension
		if !isNeeded {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}

// repairAdvice is what an operator can do about a vintage that is lost.
const repairAdvice = "put it back from a backup, or begin anew (the ids it gave are lost): lieudit ban import --fresh FILE"

// LostError says that a folder held a vintage of real addresses, and that nothing says any more which is current.
type LostError struct {
	Last      string   // the last that is known of
	Remaining []string // the vintages that are there
}

func (e *LostError) Error() string {
	if slices.Contains(e.Remaining, e.Last) {
		return fmt.Sprintf("vintages/%s names no vintage, and any of %s may have been current: write the right name into it, or %s",
			currentFile, strings.Join(e.Remaining, ", "), repairAdvice)
	}
	return fmt.Sprintf("vintages/%s names no vintage, and the vintage %s is gone: %s", currentFile, e.Last, repairAdvice)
}

// LastRealVintage is the name of a vintage of real addresses that was ever here; empty: there was none. A folder of a release that
// left no note of it is known by its files.
func (f Folder) LastRealVintage() string {
	for _, file := range []string{
		filepath.Join(filepath.Dir(f.dir), lastVintageFile), filepath.Join(f.dir, currentFile), filepath.Join(f.dir, servingFolder, servedNameFile),
	} {
		name, err := readNameFile(file)
		if err != nil {
			return "it named"
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

// recordRealVintage notes that real addresses are here. The note lies beside the folder, which may be a disk that is not there one day.
func (f Folder) recordRealVintage(name string) error {
	path := filepath.Join(filepath.Dir(f.dir), lastVintageFile)
	if noted, err := readNameFile(path); err == nil && noted == name {
		return nil
	}
	return replaceNameFile(path, name)
}

// isDemo says whether a name is that of a service's own demonstration.
func isDemo(name string) bool { return strings.HasPrefix(name, DemoMillesime+"-") }

// listVintages are the names of the vintages that are there.
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

// findOnlyVintage is the vintage that must have been current where the pointer is gone: the only one, invented ones aside if there
// are others, and the last one that is known of. Empty: there is none, or no telling.
func (f Folder) findOnlyVintage() string {
	names := f.listVintages()
	if found := slices.DeleteFunc(slices.Clone(names), isDemo); len(found) > 0 {
		names = found
	}
	if len(names) != 1 {
		return ""
	}
	if last := f.LastRealVintage(); last != "" && last != names[0] { // the demonstration, or an older vintage
		return ""
	}
	return names[0]
}

// CheckLost is the error of a folder without a current vintage; nil where there never was a real one.
func (f Folder) CheckLost() error {
	if last := f.LastRealVintage(); last != "" {
		return &LostError{Last: last, Remaining: f.listVintages()}
	}
	return nil
}

// repairCurrent is the name of the current vintage for an import, which holds the folder. Where the name is gone and one
// whole vintage is there, that is it again.
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
		return "", nil // the import says that nothing can be carried over
	}
	if errors.Join(v.Verify(ctx), v.Close()) != nil || f.setCurrent(name) != nil {
		return "", nil
	}
	return name, nil
}

// RefusedError says that the running service could not open a vintage.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return "the running service refused the vintage and stays with the one before: " + e.Reason
}

// ServedVintage says which vintage the running service answers from; running is false when none runs.
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

// AwaitServed returns when the running service answers from a vintage, and at once when none runs.
func (f Folder) AwaitServed(ctx context.Context, name string) (running bool, err error) {
	ticker := time.NewTicker(pollInterval / 5)
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

func (f Folder) readRefusal(name string) (string, error) {
	text, err := readNameFile(filepath.Join(f.dir, servingFolder, refusedFile))
	if refusedName, reason, _ := strings.Cut(text, " "); refusedName == name {
		return reason, err
	}
	return "", err
}
