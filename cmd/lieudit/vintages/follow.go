package vintages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lieudit/eventstore/hold"
	"lieudit/queries/address/vintage"
)

// look is how often the service looks whether another vintage is current.
const look = 250 * time.Millisecond

const (
	answering = "name"    // of the vintage the service answers from
	refused   = "refused" // of one it could not open, and why
)

// Follower keeps a service on the current vintage.
type Follower struct {
	folder Folder
	swap   func(*vintage.Vintage)
	log    *slog.Logger
	now    string // the vintage answered from
	bad    string // the one that was refused
}

// NewFollower is a follower that hands every vintage that becomes current to swap, which owns it from then on.
func NewFollower(f Folder, log *slog.Logger, swap func(*vintage.Vintage)) *Follower {
	return &Follower{folder: f, swap: swap, log: log}
}

// Load opens the current vintage, if there is one.
func (f *Follower) Load() error {
	name, err := f.folder.Current()
	if err != nil || name == "" || name == f.now || name == f.bad {
		return err
	}
	v, err := f.folder.Open(name)
	if err != nil {
		f.bad = name
		return err
	}
	if err := v.Prefault(); err != nil {
		f.log.Warn("vintage not read ahead", "reason", err)
	}
	f.swap(v)
	f.now = name
	return nil
}

// Run follows until ctx ends. Meanwhile it holds a folder and says there what it answers from.
func (f *Follower) Run(ctx context.Context) (err error) {
	seat := filepath.Join(f.folder.dir, serving)
	if err := os.MkdirAll(seat, 0o700); err != nil {
		return err
	}
	clock := time.NewTicker(look)
	defer clock.Stop()
	lock, err := hold.Folder(seat, time.Now())
	for ; err != nil; lock, err = hold.Folder(seat, time.Now()) {
		if _, held := errors.AsType[*hold.HeldError](err); !held {
			return fmt.Errorf("vintages: %w", err)
		}
		select { // an import looks whether we are here, and lets go at once
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for said := ""; ; {
		said = f.turn(seat, said)
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}

// turn looks once, and says what is answered from when that is not what it said last.
func (f *Follower) turn(seat, said string) string {
	if err := f.Load(); err != nil {
		f.log.Error("vintage refused; the one before is served on", "reason", err)
		if err := writeName(filepath.Join(seat, refused), f.bad+" "+err.Error()); err != nil {
			f.log.Warn("refusal of a vintage not told", "reason", err)
		}
	}
	if f.now == said {
		return said
	}
	if err := writeName(filepath.Join(seat, answering), f.now); err != nil {
		f.log.Warn("served vintage not told", "reason", err)
		return said
	}
	return f.now
}
