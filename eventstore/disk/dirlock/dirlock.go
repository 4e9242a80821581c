// Package dirlock locks a folder for one process at a time. The lock is on the file named lock in the folder (a flock, on
// Windows LockFileEx): the kernel releases it when its holder ends, however it ends, so a dead holder never blocks. The file
// records who holds it and since when, for the error that a second process gets.
//
// Acquire returns a Lock, CheckHeld checks that it still protects the folder, Close releases it. gofrs/flock does not expose
// the locked file, which here names the holder and which CheckHeld compares with the file at the path.
package dirlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lieudit/eventstore/disk/osfile"
)

// HeldError: the folder is locked by another holder, in this process or another. PID is 0 if the holder has not written its
// name yet.
type HeldError struct {
	Dir   string    `json:"-"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is held by another process", e.Dir)
	}
	return fmt.Sprintf("%s is held by process %d since %s", e.Dir, e.PID, e.Since.Format(time.RFC3339))
}

// Acquire locks an existing folder until the Lock is closed or the process ends. It does not wait: if the folder is locked it
// fails with a *HeldError. now is the time that others see in that error.
func Acquire(dir string, now time.Time) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = osfile.TryLock(file)
	if err == nil {
		err = writeHolder(file, now)
	} else if errors.Is(err, osfile.ErrHeld) {
		err = readHolder(file, dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{dir, file}, nil
}

const fileName = "lock"

// Lock is a folder that this process has locked.
type Lock struct {
	dir  string
	file *os.File
}

// Close releases the lock. It unlocks explicitly, since closing the file is not enough while a process that is being forked
// has a copy of it.
func (l *Lock) Close() error {
	return errors.Join(osfile.Unlock(l.file), l.file.Close())
}

// ErrLost: the lock no longer protects the folder.
var ErrLost = errors.New("was moved, removed or replaced while in use")

// CheckHeld fails with ErrLost if the folder or its lock file was moved, removed or replaced. Writes to files that are still
// open may then be lost. Any other error means that the check itself failed.
func (l *Lock) CheckHeld() error {
	current, err := os.Stat(filepath.Join(l.dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %w", l.dir, ErrLost)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be looked at: %w", l.dir, err)
	}
	ours, err := l.file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(current, ours) {
		return fmt.Errorf("%s %w", l.dir, ErrLost)
	}
	return nil
}

func writeHolder(f *os.File, now time.Time) error {
	b, err := json.Marshal(HeldError{PID: os.Getpid(), Since: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

func readHolder(f *os.File, dir string) *HeldError {
	e := &HeldError{Dir: dir}
	// A holder that died while it wrote its name leaves half a line: then PID stays 0.
	if b, err := io.ReadAll(f); err == nil && json.Unmarshal(b, e) != nil {
		*e = HeldError{Dir: dir}
	}
	return e
}
