package vintages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mend is what an operator can do about a vintage that is lost.
const mend = "put it back from a backup, or begin anew (the ids it gave are lost): lieudit ban import --fresh FILE"

// LostError says that a folder held a vintage of real addresses, and that nothing says any more which is current.
type LostError struct {
	Last string   // the last that is known of
	Left []string // the vintages that are there
}

func (e *LostError) Error() string {
	if slices.Contains(e.Left, e.Last) {
		return fmt.Sprintf("vintages/%s names no vintage, and any of %s may have been current: write the right name into it, or %s",
			pointer, strings.Join(e.Left, ", "), mend)
	}
	return fmt.Sprintf("vintages/%s names no vintage, and the vintage %s is gone: %s", pointer, e.Last, mend)
}

// Held is the name of a vintage of real addresses that was ever here; empty: there was none. A folder of a release that
// left no note of it is known by its files.
func (f Folder) Held() string {
	for _, file := range []string{
		filepath.Join(filepath.Dir(f.dir), note), filepath.Join(f.dir, pointer), filepath.Join(f.dir, serving, answering),
	} {
		name, err := readName(file)
		if err != nil {
			return "it named"
		}
		if name != "" && !invented(name) {
			return name
		}
	}
	for _, name := range f.all() {
		if !invented(name) {
			return name
		}
	}
	return ""
}

// remember notes that real addresses are here. The note lies beside the folder, which may be a disk that is not there one day.
func (f Folder) remember(name string) error {
	path := filepath.Join(filepath.Dir(f.dir), note)
	if noted, err := readName(path); err == nil && noted == name {
		return nil
	}
	return writeName(path, name)
}

// invented says whether a name is that of a service's own demonstration.
func invented(name string) bool { return strings.HasPrefix(name, Demo+"-") }

// all are the names of the vintages that are there.
func (f Folder) all() (names []string) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && e.Type().IsRegular() && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// sole is the vintage that must have been current where the pointer is gone: the only one, invented ones aside if there
// are others, and the last one that is known of. Empty: there is none, or no telling.
func (f Folder) sole() string {
	all := f.all()
	if found := slices.DeleteFunc(slices.Clone(all), invented); len(found) > 0 {
		all = found
	}
	if len(all) != 1 {
		return ""
	}
	if last := f.Held(); last != "" && last != all[0] { // the demonstration, or an older vintage
		return ""
	}
	return all[0]
}

// Lost is the error of a folder without a current vintage; nil where there never was a real one.
func (f Folder) Lost() error {
	if last := f.Held(); last != "" {
		return &LostError{Last: last, Left: f.all()}
	}
	return nil
}

// repaired is the name of the current vintage for an import, which holds the folder. Where the name is gone and one
// whole vintage is there, that is it again.
func (f Folder) repaired(ctx context.Context) (current string, unreadable error) {
	current, err := f.Current()
	if err != nil || current != "" {
		return current, err
	}
	name := f.sole()
	if name == "" {
		return "", nil
	}
	v, err := f.Open(name)
	if err != nil {
		return "", nil // the import says that nothing can be carried over
	}
	if errors.Join(v.Verify(ctx), v.Close()) != nil || f.point(name) != nil {
		return "", nil
	}
	return name, nil
}
