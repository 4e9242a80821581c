// Package vintages is the folder of address vintages beside a service's other data: immutable files, the name of the
// current one, and a word from the running service which it answers from. Imports take turns by a lock of their
// own; whatever an import leaves when it is killed is removed by the next.
package vintages

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore/hold"
	"lieudit/queries/address/vintage"
)

const (
	pointer   = "current" // the name of the current vintage
	serving   = "serving" // the folder held by the service that answers from here
	extension = ".vintage"
)

// Folder is where the vintages of a data folder are.
type Folder struct{ dir string }

// In is the folder in a data folder. It need not exist yet.
func In(data string) Folder { return Folder{filepath.Join(data, "vintages")} }

// Current is the name of the current vintage; empty: there is none.
func (f Folder) Current() (string, error) { return readName(filepath.Join(f.dir, pointer)) }

// Open opens a vintage by its name.
func (f Folder) Open(name string) (*vintage.Vintage, error) { return vintage.Open(f.Path(name)) }

// Path is the file of a vintage.
func (f Folder) Path(name string) string { return filepath.Join(f.dir, name+extension) }

func readName(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// writeName puts a name into a file at once, so that a reader sees the old one or the new one.
func writeName(path, name string) (err error) {
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

// Build makes a vintage at a path. Current is the name of the current one, empty when there is none.
type Build func(path, current string) (vintage.Summary, error)

// Add builds a vintage and makes it the current one. A second import at the same time is a *hold.HeldError. What fails
// leaves the folder as it was.
func (f Folder) Add(now time.Time, build Build) (name string, s vintage.Summary, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", s, err
	}
	lock, err := hold.Folder(f.dir, now)
	if err != nil {
		return "", s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	current, err := f.Current()
	if err != nil {
		return "", s, err
	}
	if err := f.sweep(current); err != nil {
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
	return name, s, writeName(filepath.Join(f.dir, pointer), name)
}

// sweep removes what nothing needs: leavings of killed imports, and vintages that are not current. One that is served
// still stays in memory until its service lets go.
func (f Folder) sweep(current string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	keep := []string{pointer, serving, "lock", current + extension}
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
		}
	}
	return err
}
