package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// partialSuffix ends the name of the folder next to a backup in which it is made. If a killed backup leaves the folder, the next backup
// of that name removes it.
const partialSuffix = ".partial"

// archiveName is the file's name in that folder.
const archiveName = "backup"

// requireAbsent refuses a file that exists, even a link that leads nowhere.
func requireAbsent(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s: %w, and a backup overwrites nothing", file, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// requireOutside refuses a file below the folders of the service: the service removes unknown files there, and the backup would be lost
// along with them. A file next to these folders in the data folder is accepted.
func (s Source) requireOutside(file string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return err
	}
	for _, folder := range []string{s.Data, s.Node} {
		if folder == "" {
			continue
		}
		resolved, err := filepath.EvalSymlinks(folder)
		if err != nil {
			continue // a later check reports that there is no service
		}
		below, err := relativePath(resolved, dir)
		if err == nil && below != "." && filepath.IsLocal(below) {
			return fmt.Errorf("%s lies in %s, among the files of the service: write the backup elsewhere, best on another disk", file, folder)
		}
	}
	return nil
}

// relativePath is filepath.Rel of paths that may be relative to the working folder.
func relativePath(base, target string) (string, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	if target, err = filepath.Abs(target); err != nil {
		return "", err
	}
	return filepath.Rel(base, target)
}

// makeWorkFolder makes the folder of a backup, or reuses one that a killed backup left. It refuses a folder that holds anything else.
// It makes no parent folders: a missing one may be a disk that is not mounted.
func makeWorkFolder(work string) error {
	if err := os.Mkdir(work, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if found, err := os.Lstat(work); err != nil {
		return err
	} else if !found.IsDir() {
		return fmt.Errorf("%s is in the way: it is no folder", work)
	}
	entries, err := os.ReadDir(work)
	for _, e := range entries {
		name := e.Name()
		isOurs := slices.Contains([]string{"lock", archiveName, CoreLog, UsageLog, NodeLog}, name) || strings.HasPrefix(name, vaultFile)
		if err == nil && !isOurs {
			return fmt.Errorf("%s is in the way: %s in it is of no backup", work, name)
		}
	}
	return err
}

// removeAllBut removes the entries of a folder but one.
func removeAllBut(dir string, kept ...string) (err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(kept, e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
