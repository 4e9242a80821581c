// Package hold keeps a folder for one process at a time. The kernel lets go when the holder ends, however it
// ends, so a dead holder never blocks; a second one is told who holds it and since when.
package hold

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

// Folder takes a folder that exists until the holder closes it or ends. A folder taken already is a *HeldError.
func Folder(dir string, now time.Time) (*Held, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = sign(f, now)
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = holder(f, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Held{dir, f}, nil
}

const name = "lock"

// Held is a folder that is ours.
type Held struct {
	dir  string
	file *os.File
}

// Close lets go. It unlocks by name: a process being forked right now has a copy of the file for a moment.
func (h *Held) Close() error {
	return errors.Join(syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN), h.file.Close())
}

// Lost says that the folder is not where it was taken, or that its lock is another: what is written to its open
// files then may be gone when they are closed.
func (h *Held) Lost() error {
	there, err := os.Stat(filepath.Join(h.dir, name))
	if err != nil {
		return fmt.Errorf("%s was moved or removed while in use: %w", h.dir, err)
	}
	if ours, err := h.file.Stat(); err != nil || !os.SameFile(there, ours) {
		return fmt.Errorf("%s was replaced while in use", h.dir)
	}
	return nil
}

func sign(f *os.File, now time.Time) error {
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

func holder(f *os.File, dir string) error {
	e := &HeldError{Dir: dir}
	// A holder that died while signing leaves half a line: then it stays unnamed.
	if b, err := io.ReadAll(f); err == nil && json.Unmarshal(b, e) != nil {
		*e = HeldError{Dir: dir}
	}
	return e
}
