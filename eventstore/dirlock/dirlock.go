// Package dirlock keeps a folder for one process at a time. The kernel lets go when the holder ends, however it
// ends, so a dead holder never blocks; a second one is told who holds it and since when.
package dirlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// HeldError says that somebody else, in this process or another, holds the folder. PID is 0 when the
// holder has not said who it is yet.
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

// Acquire takes a folder that exists until the holder closes it or ends. A folder taken already is a *HeldError.
func Acquire(dir string, now time.Time) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = writeHolder(file, now)
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = readHolder(file, dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{dir, file}, nil
}

const fileName = "lock"

// Lock is a folder that is ours.
type Lock struct {
	dir  string
	file *os.File
}

// Close lets go. It unlocks by name: a process being forked right now has a copy of the file for a moment.
func (h *Lock) Close() error {
	return errors.Join(syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN), h.file.Close())
}

// CheckHeld says that the folder is not where it was taken, or that its lock is another: what is written to its open
// files then may be gone when they are closed.
func (h *Lock) CheckHeld() error {
	current, err := os.Stat(filepath.Join(h.dir, fileName))
	if err != nil {
		return fmt.Errorf("%s was moved or removed while in use: %w", h.dir, err)
	}
	if ours, err := h.file.Stat(); err != nil || !os.SameFile(current, ours) {
		return fmt.Errorf("%s was replaced while in use", h.dir)
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

func readHolder(f *os.File, dir string) error {
	e := &HeldError{Dir: dir}
	// A holder that died while signing leaves half a line: then it stays unnamed.
	if b, err := io.ReadAll(f); err == nil && json.Unmarshal(b, e) != nil {
		*e = HeldError{Dir: dir}
	}
	return e
}
