package vintages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"lieudit/eventstore/hold"
)

// RefusedError says that the running service could not open a vintage.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return "the running service refused the vintage and stays with the one before: " + e.Reason
}

// Served says which vintage the running service answers from; running is false when none runs.
func (f Folder) Served() (name string, running bool, err error) {
	seat := filepath.Join(f.dir, serving)
	lock, err := hold.Folder(seat, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if _, held := errors.AsType[*hold.HeldError](err); held {
		name, err = readName(filepath.Join(seat, answering))
		return name, true, err
	}
	if err != nil {
		return "", false, err
	}
	return "", false, lock.Close()
}

// Await returns when the running service answers from a vintage, and at once when none runs.
func (f Folder) Await(ctx context.Context, name string) (running bool, err error) {
	clock := time.NewTicker(look / 5)
	defer clock.Stop()
	for {
		served, running, err := f.Served()
		if err != nil || !running || served == name {
			return running, err
		}
		if reason, err := f.refusal(name); err != nil || reason != "" {
			return true, errors.Join(err, &RefusedError{reason})
		}
		select {
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for the running service: %w", ctx.Err())
		case <-clock.C:
		}
	}
}

func (f Folder) refusal(name string) (string, error) {
	text, err := readName(filepath.Join(f.dir, serving, refused))
	if of, reason, _ := strings.Cut(text, " "); of == name {
		return reason, err
	}
	return "", err
}
