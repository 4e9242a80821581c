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
