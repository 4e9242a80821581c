package outbox

import (
	"context"
	"errors"
	"time"

	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// drain is one opening of the index by the instance that owns the copy.
type drain struct {
	*Outbox
	own   projector.Owned
	fill  string
	told  int64            // the highest position the index was told of
	noted int64            // the one that it noted
	at    time.Time        // when it did
	aside map[string]trial // what it refused, by key
}

const (
	atOnce    = 5000 // rows told at once
	lookEvery = time.Second
	noteEvery = 5 * time.Second
)

// run tells the index until ctx ends or something fails.
func (d *drain) run(ctx context.Context) error {
	if err := d.begun(ctx); err != nil {
		return err
	}
	sealed, err := d.open(ctx)
	for err == nil && ctx.Err() == nil {
		moved := d.own.Moved()
		var rows []table.Outgoing
		if rows, err = d.due(ctx); err != nil {
			break
		}
		if len(rows) > 0 {
			err = d.tell(ctx, rows)
			continue
		}
		if err = d.note(ctx, sealed); err != nil {
			break
		}
		sealed = true
		d.resumed()
		d.rest(ctx, moved)
	}
	return err
}

// begun returns when the copy holds something of a log.
func (d *drain) begun(ctx context.Context) error {
	for {
		moved, log := d.own.Moved(), ""
		if err := d.own.DB.QueryRow(ctx, "select log from checkpoint").Scan(&log); err != nil || log != "" {
			return err
		}
		if d.rest(ctx, moved); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// note has the index note how far it was told, at once where it was not sealed yet and else now and then: what is behind the note is told
// again at the next start.
func (d *drain) note(ctx context.Context, sealed bool) error {
	if sealed && time.Since(d.at) < noteEvery {
		return nil
	}
	if sealed && d.noted == d.told { // nothing to note: is it still there?
		d.at = time.Now()
		return d.index.Tell(ctx, Batch{Fill: d.fill, Position: d.told})
	}
	err := d.index.Seal(ctx, Batch{Fill: d.fill, Position: d.told})
	d.noted, d.at = d.told, time.Now()
	return err
}

// rest waits until there may be something to tell.
func (d *drain) rest(ctx context.Context, moved <-chan struct{}) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-moved:
	case <-timer.C: // what was set aside may be due
	}
}

// open opens the index and puts into the outbox what it was not told of: all, where it was filled by another copy or
// holds another number of sites, and else what came after the last it was told. It says whether the index holds nothing else.
func (d *drain) open(ctx context.Context) (sealed bool, err error) {
	told, err := d.index.Open(ctx)
	if err != nil {
		return false, err
	}
	if told.Fill == d.fill {
		d.told, d.noted = told.Position, told.Position
		if err := d.enqueue(ctx, told.Position); err != nil {
			return false, err
		}
		if same, err := d.holds(ctx, told.Sites); same || err != nil {
			return same, err
		}
	}
	return false, d.enqueue(ctx, 0)
}

// holds says whether the index can have so many sites: at least those of which nothing is to be told.
func (d *drain) holds(ctx context.Context, sites int) (bool, error) {
	var waiting, there, settled int
	err := d.own.DB.QueryRow(ctx, "select (select count(*) from outbox), (select count(*) from site), "+
		"(select count(*) from site where not exists (select 1 from outbox where outbox.id = site.id))").Scan(&waiting, &there, &settled)
	return settled <= sites && sites <= there+waiting, err
}

// enqueue puts the sites that changed after a position into the outbox, few at a time: the lane writes meanwhile.
func (d *drain) enqueue(ctx context.Context, after int64) error {
	for last := ""; ; {
		var next string
		row := d.own.DB.QueryRow(ctx, "select coalesce(max(id), '') from (select id from site where id > ? and position > ? order by id limit ?) as page", last, after, atOnce)
		if err := row.Scan(&next); err != nil || next == "" {
			return err
		}
		_, err := d.own.DB.Exec(ctx, "insert into outbox (id, position) select id, position from site where id > ? and id <= ? and position > ? on conflict (id) do nothing",
			last, next, after)
		if err != nil {
			return err
		}
		last = next
	}
}

// due are the rows to tell next: the oldest, and of those set aside what may be tried again.
func (d *drain) due(ctx context.Context) ([]table.Outgoing, error) {
	rows, err := table.Select(ctx, d.own.DB, table.Outbox, "where position > 0 order by position, id limit ?", atOnce)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	rows, err = table.Select(ctx, d.own.DB, table.Outbox, "where position < 0 order by position desc, id limit ?", atOnce)
	now, due := time.Now(), rows[:0]
	for _, r := range rows {
		if !d.aside[r.ID].next.After(now) {
			due = append(due, r)
		}
	}
	return due, err
}

// tell tells the index of rows, those it refuses apart from the others, and crosses them out.
func (d *drain) tell(ctx context.Context, rows []table.Outgoing) error {
	b, err := d.batch(ctx, rows)
	if err != nil {
		return err
	}
	err = d.index.Tell(ctx, b)
	switch {
	case err == nil:
		d.told = b.Position
		err = d.crossOut(ctx, rows)
		d.advanced()
		return err
	case !errors.Is(err, ErrRefused):
		return err
	case len(rows) == 1:
		return d.setAside(ctx, rows[0], err)
	}
	half := len(rows) / 2
	if err := d.tell(ctx, rows[:half]); err != nil {
		return err
	}
	return d.tell(ctx, rows[half:])
}
