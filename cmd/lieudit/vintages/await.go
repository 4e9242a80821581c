package vintages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"lieudit/eventstore/dirlock"
)

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
