package table

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// lookEvery is how long a copy is read before the registry is asked again which one serves.
const lookEvery = 200 * time.Millisecond

// reading is the copy this instance answers from.
type reading struct {
	turn    turn
	copy    Copy
	release func()
	looked  time.Time
	stale   atomic.Bool // this instance made another copy serve since
}

// Read runs f on the copy of a model that serves. f only reads; it may run twice when the copy is replaced under it,
// and begins anew then. Where no copy has ever been ready the error is ErrNone, and ErrAstray where the one that serves is
// known to hold what is not on the log.
func (s *Shelf) Read(ctx context.Context, m Model, f func(*DB) error) error {
	return s.ReadCopy(ctx, m, func(_ Copy, db *DB) error { return f(db) })
}

// ReadCopy is Read for those who want to know which copy it is.
func (s *Shelf) ReadCopy(ctx context.Context, m Model, f func(Copy, *DB) error) error {
	c, err := s.current(ctx, m, lookEvery)
	if err != nil {
		return err
	}
	err = s.read(ctx, c, f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	now, lookErr := s.current(ctx, m, 0)
	if lookErr != nil || now.Name == c.Name {
		return err
	}
	return s.read(ctx, now, f)
}

// Reads is the copy this instance answers from, as the registry says now.
func (s *Shelf) Reads(ctx context.Context, m Model) (Copy, error) { return s.current(ctx, m, 0) }

func (s *Shelf) read(ctx context.Context, c Copy, f func(Copy, *DB) error) error {
	if err := s.onLog(c); err != nil {
		return err
	}
	db, release, err := s.Use(ctx, c)
	if err != nil {
		return err
	}
	defer release()
	return f(c, db)
}

// current is the copy that served at most age ago.
func (s *Shelf) current(ctx context.Context, m Model, age time.Duration) (Copy, error) {
	r := s.readingOf(m)
	if err := r.turn.take(ctx); err != nil {
		return Copy{}, err
	}
	defer r.turn.done()
	if r.stale.Swap(false) {
		r.looked = time.Time{}
	}
	if r.release != nil && time.Since(r.looked) < age {
		return r.copy, nil
	}
	looked := time.Now()
	all, err := s.Copies(ctx)
	if err != nil {
		return Copy{}, err
	}
	for _, c := range all {
		if c.Of(m) && c.State == Serving {
			return c, r.switchTo(ctx, s, c, looked)
		}
	}
	return Copy{}, fmt.Errorf("%s: %w", m.Name, ErrNone)
}

// switchTo makes c the copy that is read from now on. The one before is let go when its last reader is done.
func (r *reading) switchTo(ctx context.Context, s *Shelf, c Copy, looked time.Time) error {
	if r.release == nil || r.copy.Name != c.Name {
		_, release, err := s.Use(ctx, c)
		if err != nil {
			return err
		}
		if r.release != nil {
			r.release()
		}
		r.release = release
	}
	r.copy, r.looked = c, looked
	return nil
}

func (s *Shelf) readingOf(m Model) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s-v%d", m.Name, m.Version)
	r, ok := s.reading[key]
	if !ok {
		r = &reading{turn: make(turn, 1)}
		s.reading[key] = r
	}
	return r
}
