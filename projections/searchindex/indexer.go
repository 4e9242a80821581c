// Package searchindex keeps an external search engine in step with the read model of sites, from the outbox rows that the
// model writes in the transaction of each change. Only one instance at a time writes to the index. An outbox row is deleted
// only after the index has taken the site, and only if the row did not change meanwhile; so no change is missed, and some are
// indexed twice.
//
//	site, outbox ──> dueRows ──> buildBatch: sites as they are now ──> Index.ApplyBatch ──> deleteApplied
//	                    ^                                                  │ refused: halves, down to one row
//	                    └────────────── setRowAside <──────────────────────┘
//	outbox empty ──> Index.SaveProgress
//
// Indexer.Run is the owner task of the read model. Each session opens the index, puts into the outbox what the index lacks
// (openIndex), and drains the outbox. Writers call Indexer.AwaitPosition before they answer.
//
// Run doubles its pauses itself: Retry of cenkalti/backoff returns to short pauses only after a success, and a session ends
// only by failing.
package searchindex

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// Batch is one write to an index.
type Batch struct {
	Generation string       // that the sites are from; sites of others are deleted at the end
	Position   int64        // up to which the index holds all changes with this batch
	Sites      []table.Site // to add or replace, as they are now
	Deleted    []string     // keys of sites to delete, and account ids with a slash for all sites of an account
}

// IndexState is the progress that an index itself has stored.
type IndexState struct {
	Generation string
	Position   int64
	Sites      int // of that generation
}

// Index is an external search engine. A change is durable and searchable when its method returns. The Indexer calls the
// methods one after the other, never concurrently.
type Index interface {
	// Open makes the index ready, creates it if it is missing, and returns its state.
	Open(ctx context.Context) (IndexState, error)
	// ApplyBatch fails with ErrRefused if the index cannot take something in the batch, and with ErrLost if the index is not
	// the one that was opened. A batch that failed may have been applied all the same.
	ApplyBatch(ctx context.Context, b Batch) error
	// SaveProgress saves that the index holds all of a generation up to a position, and deletes the sites of other
	// generations. b has no sites.
	SaveProgress(ctx context.Context, b Batch) error
}

var (
	// ErrRefused: the index cannot take a batch, however often it is tried.
	ErrRefused = errors.New("refused")
	// ErrLost: the index is gone or was replaced.
	ErrLost = errors.New("the index is not the one that was filled")
)

// Indexer drains the outbox of the locations read model into an index. It is safe for concurrent use.
type Indexer struct {
	index    Index
	registry *sqldb.Registry
	log      *slog.Logger

	mu              sync.Mutex
	isActive        bool          // this instance writes to the index
	progressed      chan struct{} // closed when this instance next indexes rows
	reason          string        // why the index cannot be written, "" if it can or if another instance writes it
	stalledPosition int64         // the oldest position that a caller waited for in vain
}

// New returns an indexer of the sites in a registry. It does nothing before Run. log gets one line when the index cannot be
// written and one when it can again.
func New(index Index, registry *sqldb.Registry, log *slog.Logger) *Indexer {
	return &Indexer{index: index, registry: registry, log: log, progressed: make(chan struct{})}
}

const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 5 * time.Second // pause between two attempts
)

// Run drains the outbox of a generation into the index until ctx ends. It is the OwnerTask of the locations model.
func (o *Indexer) Run(ctx context.Context, owned projector.OwnedGeneration) {
	o.setActive(true)
	defer o.setActive(false)
	for backoff := minBackoff; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		d := &session{Indexer: o, owned: owned, generation: generationID(owned.Generation), refused: map[string]retry{}}
		startedAt := time.Now()
		err := d.runSession(ctx)
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

// setActive notes whether this instance writes to the index. If it does not, another one does, or none.
func (o *Indexer) setActive(isActive bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isActive, o.reason = isActive, ""
}

// generationID names a generation in the index. A generation's name may recur after a database was rebuilt, so the time of
// its creation is part of it.
func generationID(g sqldb.Generation) string {
	return g.Name + "@" + g.Created.Time().Format("20060102T150405.000000")
}

// recordFailure notes why the index cannot be written, and logs it once per incident.
func (o *Indexer) recordFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == "" {
		o.log.Warn("site search cannot be told of changes", "reason", err)
	}
	o.reason = err.Error()
}

// recordRecovery notes that the index can be written again.
func (o *Indexer) recordRecovery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != "" {
		o.log.Info("site search is told of changes again")
	}
	o.reason = ""
}

func (o *Indexer) failureReason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}

// session is one opening of the index by the instance that owns the generation.
type session struct {
	*Indexer
	owned      projector.OwnedGeneration
	generation string
	appliedTo  int64            // the index holds all changes up to this position, except those still in the outbox
	savedTo    int64            // the position that was saved last
	savedAt    time.Time        // when it was saved
	refused    map[string]retry // by key: rows that the index refused
}

const (
	maxBatchRows     = 5000 // rows in one batch
	idlePollInterval = time.Second
	saveInterval     = 5 * time.Second
)

// runSession drains the outbox until ctx ends or something fails. It takes the channel of changes before it reads the outbox,
// so that a change in between ends the wait.
func (d *session) runSession(ctx context.Context) error {
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

// awaitCheckpoint returns once the generation holds an event of a log: the index is named after the log.
func (d *session) awaitCheckpoint(ctx context.Context) error {
	for {
		changed, log := d.owned.Changed(), ""
		if err := d.owned.DB.QueryRow(ctx, "select log from {checkpoint}").Scan(&log); err != nil || log != "" {
			return err
		}
		if d.awaitChange(ctx, changed); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// saveProgress saves in the index how far it is, at once if the index is not complete yet, otherwise every few seconds.
// Changes after the saved position are indexed again at the next start. With nothing to save it writes an empty batch, which
// shows whether the index still exists.
func (d *session) saveProgress(ctx context.Context, isComplete bool) error {
	if isComplete && time.Since(d.savedAt) < saveInterval {
		return nil
	}
	if isComplete && d.savedTo == d.appliedTo {
		d.savedAt = time.Now()
		return d.index.ApplyBatch(ctx, Batch{Generation: d.generation, Position: d.appliedTo})
	}
	err := d.index.SaveProgress(ctx, Batch{Generation: d.generation, Position: d.appliedTo})
	d.savedTo, d.savedAt = d.appliedTo, time.Now()
	return err
}

// awaitChange waits until there may be rows to index: rows changed, or rows that were set aside are due.
func (d *session) awaitChange(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(idlePollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

// openIndex opens the index and puts into the outbox what the index lacks: all sites, if another generation filled it or its
// number of sites is impossible, and otherwise the sites that changed after its saved position. isComplete means that the
// index holds nothing of other generations.
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

// indexMatches reports whether the index can hold that many sites: at least those without an outbox row, at most all that may
// have been indexed.
func (d *session) indexMatches(ctx context.Context, sites int) (bool, error) {
	var pending, stored, settled int
	err := d.owned.DB.QueryRow(ctx, "select (select count(*) from {outbox}), (select count(*) from {site}), "+
		"(select count(*) from {site} where not exists (select 1 from {outbox} where outbox.id = site.id))").Scan(&pending, &stored, &settled)
	return settled <= sites && sites <= stored+pending, err
}

// enqueueSites puts the sites that changed after a position into the outbox, in small statements, because the projector
// writes at the same time.
func (d *session) enqueueSites(ctx context.Context, after int64) error {
	for last := ""; ; {
		var next string
		row := d.owned.DB.QueryRow(ctx, "select coalesce(max(id), '') from (select id from {site} where id > ? and position > ? order by id limit ?) as page", last, after, maxBatchRows)
		if err := row.Scan(&next); err != nil || next == "" {
			return err
		}
		_, err := d.owned.DB.Exec(ctx, "insert into {outbox} (id, position) select id, position from {site} where id > ? and id <= ? and position > ? on conflict (id) do nothing",
			last, next, after)
		if err != nil {
			return err
		}
		last = next
	}
}

// dueRows are the next rows to index: the oldest, or, if there are none, those set aside whose retry is due.
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

// applyRows indexes rows and deletes them. If the index refuses the batch, it tries each half, so that a refused site
// ends up alone.
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

// buildBatch makes a batch of the sites of rows in their present state, which may be later than that of the rows.
func (d *session) buildBatch(ctx context.Context, rows []table.OutboxEntry) (Batch, error) {
	b := Batch{Generation: d.generation, Position: d.appliedTo}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		b.Position = max(b.Position, r.Position)
		keys = append(keys, r.ID)
	}
	var err error
	if b.Sites, err = sqldb.LoadByKeys(ctx, d.owned.DB, table.Sites, keys); err != nil {
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

// deleteApplied deletes rows that were indexed, unless their site changed since. If a row is already gone, another instance
// indexed it too, perhaps earlier and in a later state: the row is put back, to be indexed once more. A row that was set
// aside is put back with its position made positive again.
func (d *session) deleteApplied(ctx context.Context, rows []table.OutboxEntry) error {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.ID
		delete(d.refused, r.ID)
	}
	return d.owned.DB.RunInTx(ctx, func(tx *sqldb.Tx) error {
		current, err := sqldb.LoadByKeys(ctx, tx, table.Outbox, keys)
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
		return sqldb.Upsert(ctx, tx, table.Outbox, again)
	})
}

// deleteRows deletes rows that still have the given position: a row that changed since it was read stays, to be indexed
// again. After the row of a whole account, the sites that the account has again are put into the outbox.
func deleteRows(ctx context.Context, tx *sqldb.Tx, rows []table.OutboxEntry) error {
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = min(len(rows), 200)
		args := make([]any, 0, 2*n)
		for _, r := range rows[:n] {
			args = append(args, r.ID, r.Position)
			account, isAccount := strings.CutSuffix(r.ID, "/")
			if !isAccount {
				continue
			}
			_, err := tx.Exec(ctx, "insert into {outbox} (id, position) select id, position from {site} where account = ? on conflict (id) do nothing", account)
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "delete from {outbox} where id = ? and position = ?"+strings.Repeat(" or id = ? and position = ?", n-1), args...); err != nil {
			return err
		}
	}
	return nil
}

// retry is how often the index refused a row, and when to retry it.
type retry struct {
	attempts int       // in this session
	next     time.Time // not before
}

const (
	minRefusedBackoff = 10 * time.Second
	maxRefusedBackoff = time.Hour
)

// setRowAside keeps a refused row out of the way of the others: its position is negative until the site changes. It is
// retried after minRefusedBackoff, and then after twice as long each time, up to maxRefusedBackoff.
func (d *session) setRowAside(ctx context.Context, row table.OutboxEntry, cause error) error {
	t := d.refused[row.ID]
	if row.Position > 0 {
		d.log.Error("site search refuses a site; it is set aside", "site", row.ID, "reason", cause)
		if _, err := d.owned.DB.Exec(ctx, "update {outbox} set position = -position where id = ? and position = ?", row.ID, row.Position); err != nil {
			return err
		}
	}
	t.next = time.Now().Add(min(minRefusedBackoff<<min(t.attempts, 20), maxRefusedBackoff))
	t.attempts++
	d.refused[row.ID] = t
	return nil
}
