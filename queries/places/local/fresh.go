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
	// nobody told of a change: a copy may be filled anew.
	lookEvery = 30 * time.Second
)

// current is the index of a key with all that is known to be written in it.
func (e *Engine) current(ctx context.Context, k key) (*index, error) {
	h, position := e.holding(k), e.changed(k.account)
	if s := e.loaded(h); s.has(position) && e.now().Sub(s.looked) < lookEvery {
		return s.index, nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := e.turn(ctx, waiting, h, position)
	if err != nil {
		return nil, fmt.Errorf("sites of %s: %w", k.account, err)
	}
	return s.index, nil
}

// has says whether all changes up to a position are in the snapshot.
func (s *snapshot) has(position uint64) bool { return s != nil && s.at >= position }

// loaded is the snapshot of a holding. One of rows that turned out not to be on the log counts as none.
func (e *Engine) loaded(h *holding) *snapshot {
	if s := h.now.Load(); s != nil && s.strays == e.shelf.Strays(table.Places) {
		return s
	}
	return nil
}

// turn refreshes a holding, one caller at a time. It waits for the read model until waiting ends.
func (e *Engine) turn(ctx, waiting context.Context, h *holding, position uint64) (*snapshot, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	strays, old := e.shelf.Strays(table.Places), e.loaded(h)
	if old.has(position) && e.now().Sub(old.looked) < lookEvery { // somebody else did it meanwhile
		return old, nil
	}
	r := reading{ctx: ctx, of: h.key, old: old, position: position, now: e.now, loads: e.loads}
	enough := old.has(position)
	if enough {
		r.ctx = waiting
	}
	fresh, err := e.refresh(&r, waiting)
	var stopped *table.StoppedError
	if errors.As(err, &stopped) { // what is held may be of before its rows were written again
		h.now.Store(nil)
		e.weigh(h, 0)
		return nil, err
	}
	if err != nil && enough { // it was only to be looked whether all is well
		again := *old
		again.looked = e.now()
		fresh, err = &again, nil
	}
	if err == nil {
		fresh.strays = strays
		h.now.Store(fresh)
		e.weigh(h, len(fresh.rows))
	}
	return fresh, err
}

// refresh reads until the read model has passed the position.
func (e *Engine) refresh(r *reading, waiting context.Context) (*snapshot, error) {
	for {
		var fresh *snapshot
		err := e.shelf.ReadCopy(r.ctx, table.Places, func(c table.Copy, db *table.DB) (err error) {
			fresh, err = r.read(c, db)
			return err
		})
		if fresh != nil || err != nil && (r.old.has(r.position) || !errors.Is(err, table.ErrNone)) {
			return fresh, err
		}
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case <-waiting.Done():
			return nil, errors.Join(finder.ErrBehind, err)
		case <-time.After(pollEvery):
		}
	}
}

// reading makes a snapshot of a copy of the read model, out of an old one where that will do.
type reading struct {
	ctx      context.Context
	of       key
	old      *snapshot
	position uint64
	now      func() time.Time
	loads    chan struct{}
}

// read gives nil while the copy has not passed the position. How far the copy is is read before its rows: these may be
// newer, and are then read again next time.
func (r *reading) read(c table.Copy, db *table.DB) (*snapshot, error) {
	fresh := &snapshot{looked: r.now()}
	if err := db.QueryRow(r.ctx, "select position from checkpoint").Scan(&fresh.at); err != nil || fresh.at < r.position {
		return nil, err
	}
	status, err := table.StatusOf(r.ctx, db, r.of.account)
	if err == nil && status.Stopped() {
		err = &table.StoppedError{AccountStatus: status}
	}
	if err != nil {
		return nil, err
	}
	fresh.copy = fmt.Sprintf("%s, refolded %d times", c.Name, status.Refolds)
	if old := r.old; old == nil || old.copy != fresh.copy || old.at > fresh.at || old.outgrown() {
		fresh.index, err = r.whole(db)
	} else {
		fresh.index, err = r.since(db)
	}
	return fresh, err
}

// whole reads all sites. Few do so at once: while it lasts it takes several times the room of what is held then.
func (r *reading) whole(db *table.DB) (*index, error) {
	select {
	case r.loads <- struct{}{}:
		defer func() { <-r.loads }()
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	}
	where := map[finder.Status]string{finder.Active: " and active", finder.Inactive: " and not active"}[r.of.status]
	rows, err := table.Select(r.ctx, db, table.Sites, "where account = ?"+where, r.of.account)
	if err != nil {
		return nil, err
	}
	return new(index).changed(rows, r.of.holds)
}

// since reads the sites that changed. No site is ever deleted; where an account's are all gone it was erased.
func (r *reading) since(db *table.DB) (*index, error) {
	rows, err := table.Select(r.ctx, db, table.Sites, "where account = ? and position > ?", r.of.account, int64(r.old.at))
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return r.old.changed(rows, r.of.holds)
	}
	left := 0
	row := db.QueryRow(r.ctx, "select count(*) from (select 1 from site where account = ? limit 1) any_site", r.of.account)
	if err := row.Scan(&left); err != nil || left > 0 {
		return r.old.index, err
	}
	return new(index), nil
}
