// Package searchindex tells a search engine outside of the sites that changed, from the rows that the places read model leaves
// in its outbox in the transaction of the change. What was told is deleted only where it did not change meanwhile, so
// nothing is missed and anything may be told twice. Its one constraint: one instance at a time tells.
package searchindex

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// Batch is what an index is told at once.
type Batch struct {
	Generation string       // what the sites are from; those of another fill are to go in the end
	Position   int64        // as far as the index has been told when it has been told this
	Sites      []table.Site // as they stand
	Deleted    []string     // keys of sites that are no more, and accounts with a slash after them
}

// IndexState is how far an index was told, by what it knows itself.
type IndexState struct {
	Generation string
	Position   int64
	Sites      int // of that fill
}

// Index is a search engine outside. What Tell and Seal did can be found when they return.
type Index interface {
	// Open makes the index ready, as a new one where it is not there, and says what it was told before.
	Open(ctx context.Context) (IndexState, error)
	// ApplyBatch fails with ErrRefused where something of the batch cannot be taken, and with ErrLost where the index is not
	// the one that was opened. A batch that failed may have been taken all the same.
	ApplyBatch(ctx context.Context, b Batch) error
	// SaveProgress notes that all of a fill was told up to a position; what is of others is dropped. There are no sites in b.
	SaveProgress(ctx context.Context, b Batch) error
}

var (
	// ErrRefused: the index cannot take what it was told, however often.
	ErrRefused = errors.New("refused")
	// ErrLost: the index is gone, or another one is in its place.
	ErrLost = errors.New("the index is not the one that was filled")
)

// Indexer empties the outbox of the places read model into an index. It is safe for concurrent use.
type Indexer struct {
	Log *slog.Logger // one line when the index cannot be told and when it can again; slog.Default() unless set before use

	index    Index
	registry *table.Registry

	mu              sync.Mutex
	isActive        bool          // this instance tells the index
	progressed      chan struct{} // closed when it told something
	reason          string        // why it cannot, "" when it can or another instance does
	stalledPosition int64         // the oldest position somebody waited for in vain
}

// New is the outbox of the places on a shelf. Nothing happens before Run.
func New(index Index, registry *table.Registry) *Indexer {
	return &Indexer{Log: slog.Default(), index: index, registry: registry, progressed: make(chan struct{})}
}

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 5 * time.Second // pause between two attempts
)

// Run tells the index what is in the outbox of a copy, until ctx ends: it is what the places model has done Beside it.
func (o *Indexer) Run(ctx context.Context, owned projector.OwnedGeneration) {
	o.setActive(true)
	defer o.setActive(false)
	for backoff := minBackoff; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		d := &session{Indexer: o, owned: owned, generation: generationID(owned.Generation), refused: map[string]retry{}}
		startedAt := time.Now()
		err := d.run(ctx)
		o.recordFailure(ctx, err)
		if time.Since(startedAt) > maxBackoff || errors.Is(err, ErrLost) {
			backoff = minBackoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
}

// setActive notes whether this instance setActive the index. If it does not, another does, or none at all.
func (o *Indexer) setActive(isActive bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isActive, o.reason = isActive, ""
}

// generationID names what a copy fills an index with, as no other copy ever did.
func generationID(c table.Generation) string {
	return c.Name + "@" + c.Created.Time().Format("20060102T150405.000000")
}

// recordFailure notes why the index cannot be told.
func (o *Indexer) recordFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == "" {
		o.Log.Warn("site search cannot be told of changes", "reason", err)
	}
	o.reason = err.Error()
}

// recordRecovery notes that it can.
func (o *Indexer) recordRecovery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != "" {
		o.Log.Info("site search is told of changes again")
	}
	o.reason = ""
}

func (o *Indexer) failureReason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}

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
	rows, err := table.Select(ctx, d.owned.DB, table.Outbox, "where position > 0 order by position, id limit ?", maxBatchRows)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	rows, err = table.Select(ctx, d.owned.DB, table.Outbox, "where position < 0 order by position desc, id limit ?", maxBatchRows)
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

// buildBatch is what the index is told of rows: the sites as they stand now, which may be later than what the rows say.
func (d *session) buildBatch(ctx context.Context, rows []table.OutboxEntry) (Batch, error) {
	b := Batch{Generation: d.generation, Position: d.appliedTo}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		b.Position = max(b.Position, r.Position)
		keys = append(keys, r.ID)
	}
	var err error
	if b.Sites, err = table.LoadByKeys(ctx, d.owned.DB, table.Sites, keys); err != nil {
		return Batch{}, err
	}
	exists := make(map[string]bool, len(b.Sites))
	for _, s := range b.Sites {
		exists[s.ID] = true
	}
	for _, key := range keys {
		if !exists[key] {
			b.Deleted = append(b.Deleted, key)
		}
	}
	return b, nil
}

// deleteApplied deletes what was told, unless it changed since. A row that is not there any more was told by another instance
// too, perhaps before this one and of a later state: it is told once more. So are the sites of an account that was told
// to be gone, should it have some.
func (d *session) deleteApplied(ctx context.Context, rows []table.OutboxEntry) error {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.ID
		delete(d.refused, r.ID)
	}
	return d.owned.DB.RunInTx(ctx, func(tx *table.Tx) error {
		current, err := table.LoadByKeys(ctx, tx, table.Outbox, keys)
		if err != nil {
			return err
		}
		positions := make(map[string]int64, len(current))
		for _, r := range current {
			positions[r.ID] = r.Position
		}
		var applied, again []table.OutboxEntry
		for _, r := range rows {
			switch at, exists := positions[r.ID]; {
			case !exists:
				r.Position = max(r.Position, -r.Position)
				again = append(again, r)
			case at == r.Position:
				applied = append(applied, r)
			}
		}
		if err := deleteRows(ctx, tx, applied); err != nil {
			return err
		}
		return table.Upsert(ctx, tx, table.Outbox, again)
	})
}

// deleteRows deletes rows, and has the sites told again of accounts that were gone.
func deleteRows(ctx context.Context, tx *table.Tx, rows []table.OutboxEntry) error {
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = min(len(rows), 200)
		args := make([]any, 0, n)
		for _, r := range rows[:n] {
			args = append(args, r.ID)
			account, isAccount := strings.CutSuffix(r.ID, "/")
			if !isAccount {
				continue
			}
			_, err := tx.Exec(ctx, "insert into outbox (id, position) select id, position from site where account = ? on conflict (id) do nothing", account)
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "delete from outbox where id in (?"+strings.Repeat(", ?", n-1)+")", args...); err != nil {
			return err
		}
	}
	return nil
}

// retry is how often something was refused, and when it is tried again.
type retry struct {
	attempts int
	next     time.Time
}

const (
	minRefusedBackoff = 10 * time.Second
	maxRefusedBackoff = time.Hour
)

// setRowAside keeps a row out of the way of the others: its position is negative until the site changes.
func (d *session) setRowAside(ctx context.Context, row table.OutboxEntry, cause error) error {
	t := d.refused[row.ID]
	if row.Position > 0 {
		d.Log.Error("site search refuses a site; it is set aside", "site", row.ID, "reason", cause)
		if _, err := d.owned.DB.Exec(ctx, "update outbox set position = -position where id = ? and position = ?", row.ID, row.Position); err != nil {
			return err
		}
	}
	t.next = time.Now().Add(min(minRefusedBackoff<<min(t.attempts, 20), maxRefusedBackoff))
	t.attempts++
	d.refused[row.ID] = t
	return nil
}
