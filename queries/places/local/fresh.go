package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/queries/places/finder"
	"lieudit/schemas/table"
)

const (
	// patience is how long a question waits for what was written to be in the read model.
	patience  = 2 * time.Second
	pollEvery = 5 * time.Millisecond
	// lookEvery is how long an index is used before the tables are asked whether it is all there is, although
	// nobody told of a change: rows of an erased account vanish without one, and a copy may be filled anew.
	lookEvery = 30 * time.Second
)

// current is the index of a key with all that is known to be written in it.
func (e *Engine) current(ctx context.Context, k key) (*index, error) {
	h, position := e.holding(k), e.changed(k.account)
	if s := h.snapshot(); s.has(position) && time.Since(s.looked) < lookEvery {
		return s.index, nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := e.turn(waiting, h, position)
	switch {
	case err == nil:
		return s.index, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case waiting.Err() != nil:
		err = fmt.Errorf("%w: %w", finder.ErrBehind, err)
	}
	return nil, fmt.Errorf("sites of %s: %w", k.account, err)
}

// has says whether all changes up to a position are in the snapshot.
func (s *snapshot) has(position uint64) bool { return s != nil && s.at >= position }

// turn refreshes a holding, one caller at a time.
func (e *Engine) turn(ctx context.Context, h *holding, position uint64) (*snapshot, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	old := h.snapshot()
	if old.has(position) && time.Since(old.looked) < lookEvery { // somebody else did it meanwhile
		return old, nil
	}
	fresh, err := e.refresh(ctx, h.key, old, position)
	if err != nil && old.has(position) { // it was only to be looked whether all is well
		again := *old
		again.looked = time.Now()
		fresh, err = &again, nil
	}
	if err == nil {
		h.keep(fresh)
		e.weigh(h, len(fresh.rows))
	}
	return fresh, err
}

// refresh reads what changed since the old snapshot, or everything, once the read model has passed the position.
func (e *Engine) refresh(ctx context.Context, k key, old *snapshot, position uint64) (*snapshot, error) {
	for {
		var fresh *snapshot
		err := e.shelf.ReadCopy(ctx, table.Places, func(c table.Copy, db *table.DB) (err error) {
			r := reading{ctx, db, k, snapshot{copy: c.Name, looked: time.Now()}}
			fresh, err = r.read(old, position)
			return err
		})
		if fresh != nil || err != nil && (old.has(position) || !errors.Is(err, table.ErrNone)) {
			return fresh, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// reading makes a snapshot of a copy of the read model.
type reading struct {
	ctx  context.Context
	db   *table.DB
	of   key
	made snapshot
}

// read gives nil while the copy has not passed the position. The position of the copy is read before its rows: these may be newer,
// and are then read again next time.
func (r *reading) read(old *snapshot, position uint64) (*snapshot, error) {
	if err := r.db.QueryRow(r.ctx, "select position from checkpoint").Scan(&r.made.at); err != nil || r.made.at < position {
		return nil, err
	}
	var err error
	if old == nil || old.copy != r.made.copy || old.at > r.made.at {
		err = r.whole()
	} else {
		err = r.since(old)
	}
	return &r.made, err
}

// whole reads all sites.
func (r *reading) whole() error {
	where := map[finder.Status]string{finder.Active: " and active", finder.Inactive: " and not active"}[r.of.status]
	rows, err := table.Select(r.ctx, r.db, table.Sites, "where account = ?"+where, r.of.account)
	if err != nil {
		return err
	}
	r.made.index, err = (&index{}).changed(rows, r.of.holds)
	return err
}

// since reads the sites that changed. No site is ever deleted; where an account's are all gone it was erased.
func (r *reading) since(old *snapshot) error {
	rows, err := table.Select(r.ctx, r.db, table.Sites, "where account = ? and position > ?", r.of.account, int64(old.at))
	if err != nil {
		return err
	}
	if r.made.index = old.index; len(rows) > 0 {
		r.made.index, err = old.changed(rows, r.of.holds)
		return err
	}
	if len(old.rows) == 0 {
		return nil
	}
	left := 0
	row := r.db.QueryRow(r.ctx, "select count(*) from (select 1 from site where account = ? limit 1) any_site", r.of.account)
	if err := row.Scan(&left); err != nil || left > 0 {
		return err
	}
	r.made.index = &index{}
	return nil
}
