package sqldb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/schemas/table"
)

// This file removes deleted or emptied rows from a database's files (a scrub). SQLite overwrites them at once, and only its
// write-ahead log must be emptied. Postgres keeps old rows in the files of the table, of its indexes and of its TOAST table
// until others overwrite them, and neither VACUUM nor a checkpoint changes that: so the tables are rewritten, and the old
// files are dropped. VACUUM FULL would keep out readers meanwhile. A copy keeps out only writers, and readers just for the
// moment in which it replaces the table.
//
//	Tx.RequireScrub ── a row of {scrub}, in the transaction that deletes ──► DB.Scrub, at most once an Interval:
//	    awaitReaders ─► lock against writers ─► copyTable… ─► lock against readers ─► swapTable…, the mark is cleared ─► commit
//
// A crash, or a disk that is too full for the copy, undoes everything, and the mark stays. If there are several instances,
// one scrubs and the others find the mark cleared. The write-ahead log of Postgres, replicas and dumps are not scrubbed.

// ScrubTable records whether a Postgres database must be scrubbed: one row, with the time of the first deletion since the last
// scrub (due, 0 for none) and of the last scrub (done). Whoever calls RequireScrub has made it with Create.
var ScrubTable = table.Def{Name: "scrub", KeyColumns: 1, Columns: []table.Column{
	{Name: "id", Type: table.Integer}, {Name: "due", Type: table.Timestamp}, {Name: "done", Type: table.Timestamp},
}}

// RequireScrub notes that the transaction deletes data that must not stay in the files. It comes after the deletions: a scrub
// locks the tables first, and then reads the note.
func (tx *Tx) RequireScrub(ctx context.Context) error {
	if tx.db.ScrubsAtOnce() {
		return nil
	}
	_, err := tx.Exec(ctx, "insert into {scrub} (id, due, done) values (1, "+tx.db.Now()+", 0)"+
		" on conflict (id) do update set due = case when scrub.due = 0 then excluded.due else scrub.due end")
	return err
}

// ScrubsAtOnce reports whether a scrub is cheap, so that it is made right after each deletion and needs no note.
func (db *DB) ScrubsAtOnce() bool { return db.dialect.hasWAL }

// Scrub is what to scrub, and how often.
type Scrub struct {
	Tables   []table.Def   // those without PersonalColumns are left alone
	Interval time.Duration // least time between two scrubs
	// Begin, if not nil, takes the locks that come first in transactions that write the tables.
	Begin func(context.Context, *Tx) error
	// Swapped, if not nil, is called when the new tables have replaced the old ones, which are not dropped yet. When it
	// returns, no view may name an old table.
	Swapped func(context.Context, *Tx) error
}

// Scrub scrubs if that is due. later is how long it has to wait because the last scrub ran less than an Interval ago; 0 means
// that nothing is left in the files. After an error it is due as before.
func (db *DB) Scrub(ctx context.Context, s Scrub) (later time.Duration, err error) {
	if db.ScrubsAtOnce() {
		return 0, db.TruncateWAL(ctx)
	}
	isDue, later, err := db.scrubDue(ctx, db, s.Interval)
	if err != nil || !isDue {
		return later, err
	}
	err = db.RunInTx(ctx, func(tx *Tx) error { return tx.scrub(ctx, s) })
	return 0, err
}

// scrubDue reports whether a scrub may be made now, or how long it has to wait. A scrub that was made later than now was made
// before the database's clock was set back.
func (db *DB) scrubDue(ctx context.Context, q Querier, interval time.Duration) (isDue bool, later time.Duration, err error) {
	var due, done, now int64
	rows, err := q.Query(ctx, "select due, done, "+db.Now()+" from {scrub} where due <> 0")
	if err != nil {
		return false, 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		return false, 0, rows.Err()
	}
	if err := rows.Scan(&due, &done, &now); err != nil {
		return false, 0, err
	}
	since := time.Duration(now-done) * time.Microsecond
	if done != 0 && since >= 0 && since < interval {
		return false, interval - since, nil
	}
	return true, 0, nil
}

// scrub writes the tables anew in one transaction. It looks again whether that is due once no other instance can do it.
func (tx *Tx) scrub(ctx context.Context, s Scrub) error {
	var tables []table.Def
	var names []string
	for _, d := range s.Tables {
		if len(d.PersonalColumns) > 0 {
			tables, names = append(tables, d), append(names, "{"+d.Name+"}")
		}
	}
	if err := tx.Lock(ctx, "scrub "+tx.db.schema); err != nil {
		return err
	}
	if err := tx.awaitReaders(ctx, tables); err != nil {
		return err
	}
	if err := tx.lockOutWriters(ctx, names, s.Begin); err != nil {
		return err
	}
	if isDue, _, err := tx.db.scrubDue(ctx, tx, s.Interval); err != nil || !isDue {
		return err
	}
	for _, d := range tables {
		if err := tx.copyTable(ctx, d); err != nil {
			return err
		}
	}
	if err := tx.lockOutReaders(ctx, names); err != nil {
		return err
	}
	if err := tx.swapTables(ctx, tables, s.Swapped); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "update {scrub} set due = 0, done = "+tx.db.Now())
	return err
}

const (
	readersPause    = 100 * time.Millisecond // between two looks at who reads, and for readers that wait
	readersAttempts = 100
)

// errTablesInUse: somebody reads a table for so long that its copy could not take its place.
var errTablesInUse = errors.New("somebody reads a table for too long")

// awaitReaders waits until those who now read a table have ended. It locks nothing: a dump of the database holds its tables
// for hours, and writers would wait for a copy that cannot replace its table.
func (tx *Tx) awaitReaders(ctx context.Context, tables []table.Def) error {
	reading, err := tx.listReaders(ctx, tables)
	for range readersAttempts {
		if err != nil || len(reading) == 0 {
			return err
		}
		if err := pauseForReaders(ctx); err != nil {
			return err
		}
		var now map[string]bool
		now, err = tx.listReaders(ctx, tables)
		maps.DeleteFunc(reading, func(transaction string, _ bool) bool { return !now[transaction] })
	}
	return tx.db.wrapError(ctx, errTablesInUse)
}

// listReaders returns the transactions of others that have read a table and have not ended.
func (tx *Tx) listReaders(ctx context.Context, tables []table.Def) (map[string]bool, error) {
	query, args := "", []any{}
	for _, d := range tables {
		query, args = query+", ?", append(args, d.Name)
	}
	rows, err := tx.Query(ctx, "select distinct l.virtualtransaction from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace"+
		" where l.database = (select oid from pg_database where datname = current_database()) and l.granted and l.mode in ('AccessShareLock', 'RowShareLock')"+
		" and l.pid is distinct from pg_backend_pid() and n.nspname = ? and c.relname in ("+query[2:]+")", append([]any{tx.db.schema}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var transaction string
		if err := rows.Scan(&transaction); err != nil {
			return nil, err
		}
		found[transaction] = true
	}
	return found, rows.Err()
}

func pauseForReaders(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(readersPause):
		return nil
	}
}

// writersTimeout is how long a scrub waits for whoever writes a table, or vacuums it by hand. Postgres ends a vacuum of its own
// after deadlock_timeout, a second.
const writersTimeout = 10 * time.Second

// lockOutWriters locks tables for their copies. begin, unless nil, takes the locks that come first.
func (tx *Tx) lockOutWriters(ctx context.Context, names []string, begin func(context.Context, *Tx) error) error {
	if err := tx.setLockTimeout(ctx, writersTimeout); err != nil {
		return err
	}
	if begin != nil {
		if err := begin(ctx, tx); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in share row exclusive mode")
	return err
}

// setLockTimeout sets how long the next statements of the transaction wait for a lock.
func (tx *Tx) setLockTimeout(ctx context.Context, timeout time.Duration) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("set local lock_timeout = %d", timeout.Milliseconds()))
	return err
}

const (
	copySuffix = "_new" // of the name of a copy before it takes the place of its table
	oldSuffix  = "_old" // of the name of the table whose place it took
)

// copyTable makes a copy of a table with all rows as they are now, its indexes and its statistics.
func (tx *Tx) copyTable(ctx context.Context, d table.Def) error {
	fresh := d
	fresh.Name += copySuffix
	statements := tx.db.dialect.createStatements(fresh)
	fill := "insert into {" + fresh.Name + "} (" + columnList(d) + ") select " + columnList(d) + " from {" + d.Name + "}"
	for _, statement := range append([]string{statements[0], fill}, append(statements[1:], "analyze {"+fresh.Name+"}")...) {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

const (
	readersTimeout = 300 * time.Millisecond // the longest that readers wait for a scrub that waits for other readers
	swapAttempts   = 25
)

// lockOutReaders locks tables for their replacement. Readers that come later wait behind this lock while it waits for earlier
// ones, so it is tried for short times. Writers wait for all of it, so it soon gives up.
func (tx *Tx) lockOutReaders(ctx context.Context, names []string) error {
	if err := tx.setLockTimeout(ctx, readersTimeout); err != nil {
		return err
	}
	for range swapAttempts {
		if _, err := tx.Exec(ctx, "savepoint before_swap"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in access exclusive mode")
		if err == nil || !isLockConflict(err) {
			return err
		}
		if _, err := tx.Exec(ctx, "rollback to savepoint before_swap"); err != nil {
			return err
		}
		if err := pauseForReaders(ctx); err != nil {
			return err
		}
	}
	return tx.db.wrapError(ctx, errTablesInUse)
}

// isLockConflict reports whether a statement failed because it did not get a lock in time.
func isLockConflict(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "40P01") // lock_not_available, deadlock_detected
}

// swapTables puts the copies in the place of their tables, under the same names of tables, indexes and keys, and drops the old
// ones.
func (tx *Tx) swapTables(ctx context.Context, tables []table.Def, swapped func(context.Context, *Tx) error) error {
	for _, d := range tables {
		for _, statement := range []string{
			"alter table {" + d.Name + "} rename to " + d.Name + oldSuffix,
			"alter table {" + d.Name + copySuffix + "} rename to " + d.Name,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	if swapped != nil {
		if err := swapped(ctx, tx); err != nil {
			return err
		}
	}
	for _, d := range tables {
		statements := []string{
			"drop table {" + d.Name + oldSuffix + "}",
			"alter index {" + d.Name + copySuffix + "_pkey} rename to " + d.Name + "_pkey",
		}
		for i := range d.Indexes {
			index := fmt.Sprintf("_%d", i+1)
			statements = append(statements, "alter index {"+d.Name+copySuffix+index+"} rename to "+d.Name+index)
		}
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// inSchema is the transaction as another schema of the same database sees it.
func (tx *Tx) inSchema(schema string) *Tx {
	db := *tx.db
	db.schema = schema
	return &Tx{&db, tx.sqlTx}
}

// scrubInterval is the shortest time between two scrubs of a generation: erasures are collected.
const scrubInterval = time.Hour

// Scrub takes what was deleted from a generation of a model out of the files of its database, as DB.Scrub says. The caller
// sees to it that nobody writes rows of the generation meanwhile.
func (s *Registry) Scrub(ctx context.Context, m table.ReadModel, g Generation, db *DB) (later time.Duration, err error) {
	interval := s.ScrubInterval
	if interval == 0 {
		interval = scrubInterval
	}
	return db.Scrub(ctx, Scrub{Tables: m.Tables, Interval: interval, Swapped: func(ctx context.Context, tx *Tx) error {
		return s.repointViews(ctx, tx.inSchema(registrySchema), m, g)
	}})
}

// repointViews points the views for people at the new tables of a generation, if they show it.
func (s *Registry) repointViews(ctx context.Context, tx *Tx, m table.ReadModel, g Generation) error {
	if err := tx.Lock(ctx, "registry"); err != nil {
		return err
	}
	var state GenerationState
	if err := tx.QueryRow(ctx, "select state from {copy} where name = ?", g.Name).Scan(&state); err != nil {
		return tx.db.wrapError(ctx, err)
	}
	if state != Serving {
		return nil
	}
	return s.updateViews(ctx, tx, m, g)
}
