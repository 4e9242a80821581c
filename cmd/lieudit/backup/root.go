package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
)

// restoringFolder is the folder within each restored one into which a backup is unpacked.
const restoringFolder = "restoring"

// NotEmptyError means that nothing is restored into a folder because it is not empty.
type NotEmptyError struct {
	Folder        string
	IsInterrupted bool // a restore was cut off while it was moving its files to their final paths
}

func (e *NotEmptyError) Error() string {
	if e.IsInterrupted {
		return fmt.Sprintf("%s holds parts of a restore that was cut off: empty it and restore again", e.Folder)
	}
	return fmt.Sprintf("%s is not empty: restore into an empty folder, or an absent one", e.Folder)
}

// UnfinishedError means that a restore into a folder is under way or was cut off.
type UnfinishedError struct{ Folder string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore into %s is under way or was cut off: run lieudit restore again", e.Folder)
}

// CheckFinished returns an *UnfinishedError for a folder that must not be opened, because a restore has not ended there.
func CheckFinished(folder string) error {
	if _, err := os.Lstat(filepath.Join(folder, restoringFolder)); err == nil {
		return &UnfinishedError{folder}
	}
	return nil
}

// root is a folder that is restored. Its files are unpacked into staging, which lies within it, so that renames can move them to their
// final paths even if the folder is a disk of its own.
type root struct {
	dir, staging string
	lock         *dirlock.Lock
	isNew        bool // the folder was absent
	isPublished  bool // files were moved to their final paths
}

// prepare locks an empty folder, which it makes if there is none, and removes what a killed restore left in it.
func (r *root) prepare(now time.Time) error {
	if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
		r.isNew = true
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return err
		}
	}
	if err := r.requireEmpty(); err != nil {
		return err
	}
	lock, err := dirlock.Acquire(r.dir, now)
	if err != nil {
		return err
	}
	r.lock = lock
	if err := os.RemoveAll(r.staging); err != nil { // left by a killed restore
		return err
	}
	return os.Mkdir(r.staging, 0o700)
}

// requireEmpty refuses a folder that holds anything but what an empty disk, or a killed restore, holds.
func (r *root) requireEmpty() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	isKilled := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == restoringFolder })
	for _, e := range entries {
		if !slices.Contains([]string{"lock", "lost+found", restoringFolder}, e.Name()) {
			return &NotEmptyError{r.dir, isKilled}
		}
	}
	return nil
}

// publish renames the entries of staging into the folder, except for the locks that were taken there.
func (r *root) publish() error {
	if err := syncFolders(r.staging); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.staging)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := osfile.Rename(filepath.Join(r.staging, e.Name()), filepath.Join(r.dir, e.Name())); err != nil {
			return err
		}
	}
	return osfile.SyncFolder(r.dir)
}

// syncFolders syncs a folder and those below it, so that the names of synced files survive a power cut too.
func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return osfile.SyncFolder(path)
	})
}
