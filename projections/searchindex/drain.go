package searchindex

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// session is one opening of the index by the instance that owns the copy.
type session struct {
	*Indexer
	owned      projector.OwnedGeneration
	generation string
	appliedTo  int64            // the highest position the index was told of
	savedTo    int64            // the one that it noted
	savedAt    time.Time        // when it did
	refused    map[string]retry // what it refused, by key
}

const (
	maxBatchRows     = 5000 // rows told at once
	idlePollInterval = time.Second
	saveInterval     = 5 * time.Second
)

// run tells the index until ctx ends or something fails.
func (d *session) run(ctx context.Context) error {
	if err := d.awaitCheckpoint(ctx); err != nil {
		return err
	}
	isComplete, err := d.openIndex(ctx)
	for err == nil && ctx.Err() == nil {
		changed := d.owned.Changed()
		var rows []table.OutboxEntry
		if rows, err = d.dueRows(ctx); err != nil {
			break
		}
		if len(rows) > 0 {
			err = d.applyRows(ctx, rows)
			continue
		}
		if err = d.saveProgress(ctx, isComplete); err != nil {
			break
		}
		isComplete = true
		d.recordRecovery()
		d.awaitChange(ctx, changed)
	}
	return err
}

// awaitCheckpoint returns when the copy holds something of a log.
func (d *session) awaitCheckpoint(ctx context.Context) error {
	for {
		changed, log := d.owned.Changed(), ""
		if err := d.owned.DB.QueryRow(ctx, "select log from checkpoint").Scan(&log); err != nil || log != "" {
			return err
		}
		if d.awaitChange(ctx, changed); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// saveProgress has the index note how far it was told, at once where it was not sealed yet and else now and then: what is behind the note is told
// again at the next start.
func (d *session) saveProgress(ctx context.Context, isComplete bool) error {
	if isComplete && time.Since(d.savedAt) < saveInterval {
		return nil
	}
	if isComplete && d.savedTo == d.appliedTo { // nothing to note: is it still there?
		d.savedAt = time.Now()
		return d.index.ApplyBatch(ctx, Batch{Generation: d.generation, Position: d.appliedTo})
	}
	err := d.index.SaveProgress(ctx, Batch{Generation: d.generation, Position: d.appliedTo})
	d.savedTo, d.savedAt = d.appliedTo, time.Now()
	return err
}

// awaitChange waits until there may be something to tell.
func (d *session) awaitChange(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(idlePollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C: // what was set aside may be due
	}
}

// openIndex opens the index and puts into the outbox what it was not told of: all, where it was filled by another copy or
// holds another number of sites, and else what came after the last it was told. It says whether the index holds nothing else.
func (d *session) openIndex(ctx context.Context) (isComplete bool, err error) {
	state, err := d.index.Open(ctx)
	if err != nil {
		return false, err
	}
	if state.Generation == d.generation {
		d.appliedTo, d.savedTo = state.Position, state.Position
		if err := d.enqueueSites(ctx, state.Position); err != nil {
			return false, err
		}
		if matches, err := d.indexMatches(ctx, state.Sites); matches || err != nil {
			return matches, err
		}
	}
	return false, d.enqueueSites(ctx, 0)
}

// indexMatches says whether the index can have so many sites: at least those of which nothing is to be told.
func (d *session) indexMatches(ctx context.Context, sites int) (bool, error) {
	var pending, stored, settled int
	err := d.owned.DB.QueryRow(ctx, "select (select count(*) from outbox), (select count(*) from site), "+
		"(select count(*) from site where not exists (select 1 from outbox where outbox.id = site.id))").Scan(&pending, &stored, &settled)
	return settled <= sites && sites <= stored+pending, err
}

// enqueueSites puts the sites that changed after a position into the outbox, few at a time: the lane writes meanwhile.
func (d *session) enqueueSites(ctx context.Context, after int64) error {
	for last := ""; ; {
		var next string
		row := d.owned.DB.QueryRow(ctx, "select coalesce(max(id), '') from (select id from site where id > ? and position > ? order by id limit ?) as page", last, after, maxBatchRows)
		if err := row.Scan(&next); err != nil || next == "" {
			return err
		}
		_, err := d.owned.DB.Exec(ctx, "insert into outbox (id, position) select id, position from site where id > ? and id <= ? and position > ? on conflict (id) do nothing",
			last, next, after)
		if err != nil {
			return err
		}
		last = next
	}
}

// dueRows are the rows to tell next: the oldest, and of those set aside what may be tried again.
func (d *session) dueRows(ctx context.Context) ([]table.OutboxEntry, error) {
	rows, err := sqldb.Select(ctx, d.owned.DB, table.Outbox, "where position > 0 order by position, id limit ?", maxBatchRows)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	rows, err = sqldb.Select(ctx, d.owned.DB, table.Outbox, "where position < 0 order by position desc, id limit ?", maxBatchRows)
	now, due := time.Now(), rows[:0]
	for _, r := range rows {
		if !d.refused[r.ID].next.After(now) {
			due = append(due, r)
		}
	}
	return due, err
}

// applyRows tells the index of rows, those it refuses apart from the others, and crosses them out.
func (d *session) applyRows(ctx context.Context, rows []table.OutboxEntry) error {
	b, err := d.buildBatch(ctx, rows)
	if err != nil {
		return err
	}
	err = d.index.ApplyBatch(ctx, b)
	switch {
	case err == nil:
		d.appliedTo = b.Position
		err = d.deleteApplied(ctx, rows)
		d.signalProgress()
		return err
	case !errors.Is(err, ErrRefused):
		return err
	case len(rows) == 1:
		return d.setRowAside(ctx, rows[0], err)
	}
	half := len(rows) / 2
	if err := d.applyRows(ctx, rows[:half]); err != nil {
		return err
	}
	return d.applyRows(ctx, rows[half:])
}
