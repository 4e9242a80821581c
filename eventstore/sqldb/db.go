// Package sqldb opens relational databases and keeps the generations of read models in them. The same statements run on
// Postgres and on SQLite: dialect.go holds all that differs. Package schemas/table describes the tables.
//
//	Registry ── Read ──────────────► serving Generation ──► DB.Query, Select      (queries)
//	    │
//	    ├───── BuildGeneration ────► Generation being built                       (projections)
//	    │      OpenGeneration  ────► its DB ── RunInTx ──► Tx: Upsert rows and checkpoint
//	    └───── PromoteGeneration ──► it serves from now on; Prune drops those before
//
// A generation is one filling of a read model's tables. A read model that must be filled again gets a new generation next to
// the serving one. An instance that uses a generation holds a lease on it, so that Prune of another instance leaves it alone.
// The vault uses a DB alone, without a registry (Open, Create, RunInTx).
package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lieudit/schemas/table"
)

// DB is one database: a SQLite file or a Postgres schema. Statements are written for both, with "?" for a value and {name}
// for a table or view: "select id from {site} where account = ?". On SQLite one transaction writes at a time and the others
// wait; reads wait for writes only with Options.SingleFile. It is safe for concurrent use.
type DB struct {
	name                string
	schema              string
	dialect             dialect
	observeFunc         func(operation string, took time.Duration, err error) // nil: nobody
	clock               func() time.Time                                      // nil: the database's own
	clockExpr           string                                                // reads clock in SQLite, see addClock
	removeClock         func()
	writePool, readPool *sql.DB
}

// Options are how a database is opened. The zero Options are those of a read model in a file.
type Options struct {
	// Name is used in the texts of errors.
	Name string
	// Schema is the Postgres schema of the tables, which Create makes if it is missing. SQLite ignores it.
	Schema string
	// Durable means that committed transactions survive a crash of the machine. Without it the last ones may be lost, each as
	// a whole.
	Durable bool
	// SingleFile means that the SQLite file alone holds everything committed, so that it can be copied and restored. Readers
	// then wait for writers. Postgres ignores it.
	SingleFile bool
	// Observe, if set, is called after every statement outside a transaction (OperationRead, OperationWrite) and every
	// transaction (OperationTransaction), by many goroutines, with its duration and its error.
	Observe func(operation string, took time.Duration, err error)
	// Simulated is set only in a simulation.
	Simulated Simulated
}

// Simulated replaces parts of a database in a simulation. Nil fields replace nothing.
type Simulated struct {
	Clock     func() time.Time                        // the database's clock, see DB.Now
	Connector func(driver.Connector) driver.Connector // wraps what makes connections to a SQLite file
}

// The operations that Options.Observe receives. A read has ended when its first rows are there.
const (
	OperationRead        = "read"
	OperationWrite       = "write"
	OperationTransaction = "transaction"
)

// Open opens a database at postgres://… or at the path of a SQLite file, which is made if it is missing. It makes one
// connection, so it fails if the database cannot be reached.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	db := &DB{name: o.Name, schema: o.Schema, dialect: sqlite, observeFunc: o.Observe, clock: o.Simulated.Clock}
	open := openSQLite
	if isPostgresAddress(address) {
		db.dialect, open = postgres, openPostgres
	}
	var err error
	if db.clock != nil && db.dialect.nowExpr == sqlite.nowExpr {
		if db.clockExpr, db.removeClock, err = addClock(db.clock); err != nil {
			return nil, db.wrapError(ctx, err)
		}
	}
	if db.writePool, db.readPool, err = open(address, o); err != nil {
		return nil, errors.Join(db.wrapError(ctx, err), db.Close())
	}
	if err := openFirstConnection(ctx, db.writePool); err != nil {
		return nil, errors.Join(db.wrapError(ctx, err), db.Close())
	}
	return db, nil
}

// Close closes the connections. Running statements end first.
func (db *DB) Close() error {
	if db.removeClock != nil {
		defer db.removeClock()
	}
	if db.writePool == nil {
		return nil
	}
	return errors.Join(db.writePool.Close(), db.readPool.Close())
}

// Now is the database's own clock as an SQL expression. Like every table.Instant it counts microseconds since 1970. Leases
// are compared with it, since the clocks of instances differ.
func (db *DB) Now() string {
	switch {
	case db.clockExpr != "":
		return db.clockExpr
	case db.clock != nil:
		return strconv.FormatInt(db.clock().UnixMicro(), 10)
	}
	return db.dialect.nowExpr
}

// Create makes missing tables and their indexes. It does not change existing tables. Concurrent instances take turns.
func (db *DB) Create(ctx context.Context, tables ...table.Def) error {
	return db.RunInTx(ctx, func(tx *Tx) error {
		if err := tx.Lock(ctx, "create"); err != nil {
			return err
		}
		for _, statement := range db.createStatements(tables) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// createStatements are the statements of Create. On Postgres the schema comes first.
func (db *DB) createStatements(tables []table.Def) []string {
	var statements []string
	if db.dialect.namedSchemas && db.schema != "" {
		statements = append(statements, "create schema if not exists "+db.schema)
	}
	for _, d := range tables {
		statements = append(statements, db.dialect.createStatements(d)...)
	}
	return statements
}

// TruncateWAL empties a SQLite file's write-ahead log, where overwritten or deleted rows are still readable. It fails if a
// reader holds the log for long. On Postgres it does nothing: see Scrub.
func (db *DB) TruncateWAL(ctx context.Context) error {
	if !db.dialect.hasWAL {
		return nil
	}
	var busy, pages, checkpointed int
	err := db.writePool.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &pages, &checkpointed)
	if err == nil && busy != 0 {
		err = errors.New("its log of writes could not be emptied: somebody reads from it")
	}
	return db.wrapError(ctx, err)
}

// Exec runs a statement that writes, and returns how many rows it changed.
func (db *DB) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	startedAt := time.Now()
	var changed rowCount
	result, err := db.writePool.ExecContext(context.WithValue(ctx, rowCountKey{}, &changed), db.rewriteStatement(statement), sanitizeArgs(args)...)
	db.observe(OperationWrite, startedAt, err)
	if err != nil {
		return 0, db.wrapError(ctx, err)
	}
	if changed.isKnown {
		return changed.rows, nil
	}
	return result.RowsAffected()
}

// rowCount is how many rows a statement changed, as the connection itself tells it. The result of database/sql waits for the connection
// that it came from, which somebody else may use by then.
type rowCount struct {
	rows    int64
	isKnown bool
}

type rowCountKey struct{}

// Query runs a statement that reads, on a connection that cannot write on SQLite. The caller closes the rows. args may be
// changed (see sanitizeArgs).
func (db *DB) Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	startedAt := time.Now()
	rows, err := db.readPool.QueryContext(ctx, db.rewriteStatement(statement), sanitizeArgs(args)...)
	db.observe(OperationRead, startedAt, err)
	return rows, db.wrapError(ctx, err)
}

// QueryRow runs a statement that reads one row.
func (db *DB) QueryRow(ctx context.Context, statement string, args ...any) *sql.Row {
	startedAt := time.Now()
	row := db.readPool.QueryRowContext(ctx, db.rewriteStatement(statement), sanitizeArgs(args)...)
	db.observe(OperationRead, startedAt, row.Err())
	return row
}

// RunInTx runs f in one transaction. It commits if f returns nil; otherwise it rolls back and returns f's error unchanged. If
// f returned nil and RunInTx fails, the outcome is unknown: the database may have committed. f must not write through the DB
// itself: on SQLite that would wait for this transaction forever.
func (db *DB) RunInTx(ctx context.Context, f func(*Tx) error) (err error) {
	defer func(startedAt time.Time) { db.observe(OperationTransaction, startedAt, err) }(time.Now())
	sqlTx, err := db.writePool.BeginTx(ctx, nil)
	if err != nil {
		return db.wrapError(ctx, err)
	}
	if err := f(&Tx{db, sqlTx}); err != nil {
		sqlTx.Rollback() // what failed is err; a transaction that cannot be undone was never committed
		return err
	}
	return db.wrapError(ctx, sqlTx.Commit())
}

// rewriteStatement is a statement as this database takes it (see dialect.rewriteStatement).
func (db *DB) rewriteStatement(statement string) string {
	prefix := ""
	if db.dialect.namedSchemas && db.schema != "" {
		prefix = db.schema + "."
	}
	return db.dialect.rewriteStatement(statement, prefix)
}

// observe reports an operation that has ended.
func (db *DB) observe(operation string, startedAt time.Time, err error) {
	if db.observeFunc != nil {
		db.observeFunc(operation, time.Since(startedAt), err)
	}
}

// hasColumnArrays reports whether a whole column can be passed as one argument.
func (db *DB) hasColumnArrays() bool { return db.dialect.columnArrays }
func (tx *Tx) hasColumnArrays() bool { return tx.db.hasColumnArrays() }

// wrapError adds the database's name to an error, and the error of ctx if that was the cause: the error of a connection that
// was not made in time names only the driver's own limit.
func (db *DB) wrapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := contextError(ctx); ctxErr != nil && !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	if db.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", db.name, err)
}

// contextError is why ctx ended. The deadline may have passed a moment before ctx.Err says so.
func contextError(ctx context.Context) error {
	if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// Tx is a running transaction that writes. Its reads see what it wrote.
type Tx struct {
	db    *DB
	sqlTx *sql.Tx
}

// Exec runs a statement that writes, and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := tx.sqlTx.ExecContext(ctx, tx.db.rewriteStatement(statement), sanitizeArgs(args)...)
	if err != nil {
		return 0, tx.db.wrapError(ctx, err)
	}
	return result.RowsAffected()
}

// Query runs a statement that reads, and sees what the transaction wrote.
func (tx *Tx) Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	rows, err := tx.sqlTx.QueryContext(ctx, tx.db.rewriteStatement(statement), sanitizeArgs(args)...)
	return rows, tx.db.wrapError(ctx, err)
}

// QueryRow runs a statement that reads one row.
func (tx *Tx) QueryRow(ctx context.Context, statement string, args ...any) *sql.Row {
	return tx.sqlTx.QueryRowContext(ctx, tx.db.rewriteStatement(statement), sanitizeArgs(args)...)
}

// Lock makes transactions of the same purpose wait for each other, in all processes. On SQLite every transaction that writes
// waits for the one before it anyway.
func (tx *Tx) Lock(ctx context.Context, purpose string) error {
	if !tx.db.dialect.advisoryLocks {
		return nil
	}
	_, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext(?))", "lieudit "+strings.ToLower(purpose))
	return err
}
