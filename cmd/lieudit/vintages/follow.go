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
	swap   func(context.Context, *vintage.Vintage)
	log    *slog.Logger
	now    string // the vintage answered from
	bad    string // the one that was refused
}

// NewFollower is a follower that hands every vintage that becomes current to swap, which owns it from then on, and serves
// it by the time it returns.
func NewFollower(f Folder, log *slog.Logger, swap func(context.Context, *vintage.Vintage)) *Follower {
	return &Follower{folder: f, swap: swap, log: log}
}

// Load opens the current vintage, if there is one.
func (f *Follower) Load(ctx context.Context) error {
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
	f.swap(ctx, v)
	f.now = name
	return nil
}

// Run follows until ctx ends. Meanwhile it holds a folder and says there what it answers from; where another service
// on the same data holds it, that one speaks.
func (f *Follower) Run(ctx context.Context) (err error) {
	seat := filepath.Join(f.folder.dir, serving)
	if err := os.MkdirAll(seat, 0o700); err != nil {
		return err
	}
	clock := time.NewTicker(look)
	defer clock.Stop()
	var lock *hold.Held
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	for said := ""; ; {
		if lock == nil { // an import that looks whether we are here lets go at once
			lock, err = hold.Folder(seat, time.Now())
			if _, held := errors.AsType[*hold.HeldError](err); err != nil && !held {
				return fmt.Errorf("vintages: %w", err)
			}
		}
		said = f.turn(ctx, seat, said, lock != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}

// turn looks once. Who speaks says what is answered from when that is not what it said last.
func (f *Follower) turn(ctx context.Context, seat, said string, speaks bool) string {
	err := f.Load(ctx)
	if err != nil {
		f.log.Error("vintage refused; the one before is served on", "reason", err)
	}
	if !speaks {
		return said
	}
	if err != nil {
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
