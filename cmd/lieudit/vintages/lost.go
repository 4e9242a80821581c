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
