package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// DB is one database: a SQLite file or a Postgres schema. Statements are written with "?" for either. Writes take
// their turn on SQLite; reads never wait for them. It is safe for concurrent use.
type DB struct {
	name        string
	schema      string
	dialect     dialect
	write, read *sql.DB
}

// Options say how a database is opened.
type Options struct {
	Name   string // what errors call it
	Schema string // Postgres only: the schema its tables are in, which Create makes when missing
	Full   bool   // what is committed survives a crash of the machine; else its last moments may be lost, whole transactions at a time
	Single bool   // SQLite only: the file alone holds all that is committed, so that it can be copied and put back; readers wait for writers
}

// Open opens a database: postgres://… or the path of a SQLite file, made when missing.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	db := &DB{name: o.Name, schema: o.Schema, dialect: sqlite}
	open := openSQLite
	if isPostgres(address) {
		db.dialect, open = postgres, openPostgres
	}
	var err error
	if db.write, db.read, err = open(address, o); err != nil {
		return nil, db.failed(ctx, err)
	}
	if err := begin(ctx, db.write); err != nil {
		return nil, errors.Join(db.failed(ctx, err), db.Close())
	}
	return db, nil
}

// Close frees the connections. Running statements end first.
func (db *DB) Close() error { return errors.Join(db.write.Close(), db.read.Close()) }

// Now is the database's own clock as an expression for statements: microseconds, like every Instant.
func (db *DB) Now() string { return db.dialect.now }

// Create makes tables that are not there yet.
func (db *DB) Create(ctx context.Context, tables ...Def) error {
	return db.Tx(ctx, func(tx *Tx) error {
		if err := tx.Lock(ctx, "create"); err != nil {
			return err
		}
		for _, statement := range db.creation(tables) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

func (db *DB) creation(tables []Def) []string {
	var statements []string
	if db.dialect.numbered && db.schema != "" {
		statements = append(statements, "create schema if not exists "+db.schema)
	}
	for _, d := range tables {
		statements = append(statements, d.create(db.dialect)...)
	}
	return statements
}

// Scrub leaves no copy of what was overwritten or deleted before in a SQLite file's log of writes. It fails when a
// reader keeps it from it for long. On Postgres that is the business of vacuum, and of who keeps its backups.
func (db *DB) Scrub(ctx context.Context) error {
	if db.dialect.numbered {
		return nil
	}
	var busy, pages, moved int
	err := db.write.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &pages, &moved)
	if err == nil && busy != 0 {
		err = errors.New("its log of writes could not be emptied: somebody reads from it")
	}
	return db.failed(ctx, err)
}

// Exec runs a statement that writes and says how many rows it touched.
func (db *DB) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := db.write.ExecContext(ctx, db.dialect.rewrite(statement), storable(args)...)
	if err != nil {
		return 0, db.failed(ctx, err)
	}
	return result.RowsAffected()
}

// Query runs a statement that reads.
func (db *DB) Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	rows, err := db.read.QueryContext(ctx, db.dialect.rewrite(statement), storable(args)...)
	return rows, db.failed(ctx, err)
}

// QueryRow runs a statement that reads one row.
func (db *DB) QueryRow(ctx context.Context, statement string, args ...any) *sql.Row {
	return db.read.QueryRowContext(ctx, db.dialect.rewrite(statement), storable(args)...)
}

// Tx runs f in one transaction, which is committed when f returns nil and undone otherwise. When Tx fails after f
// did not, the outcome is unknown: the database may have committed.
func (db *DB) Tx(ctx context.Context, f func(*Tx) error) error {
	inner, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return db.failed(ctx, err)
	}
	if err := f(&Tx{db, inner}); err != nil {
		inner.Rollback() // what failed is err; a transaction that cannot be undone was never committed
		return err
	}
	return db.failed(ctx, inner.Commit())
}

func (db *DB) arrays() bool { return db.dialect.numbered }
func (tx *Tx) arrays() bool { return tx.db.arrays() }

// failed is err with the database's name, and what ended ctx where that did: a connection that is being made says
// only that its time is up.
func (db *DB) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if over := over(ctx); over != nil && !errors.Is(err, over) {
		err = fmt.Errorf("%w: %w", over, err)
	}
	if db.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", db.name, err)
}

// over is why ctx has ended. Its deadline can have passed a moment before it says so.
func over(ctx context.Context) error {
	if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// Tx is a running transaction that writes.
type Tx struct {
	db *DB
	tx *sql.Tx
}

// Exec runs a statement that writes and says how many rows it touched.
func (tx *Tx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := tx.tx.ExecContext(ctx, tx.db.dialect.rewrite(statement), storable(args)...)
	if err != nil {
		return 0, tx.db.failed(ctx, err)
	}
	return result.RowsAffected()
}

// Query runs a statement that reads what the transaction sees.
func (tx *Tx) Query(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	rows, err := tx.tx.QueryContext(ctx, tx.db.dialect.rewrite(statement), storable(args)...)
	return rows, tx.db.failed(ctx, err)
}

// QueryRow runs a statement that reads one row.
func (tx *Tx) QueryRow(ctx context.Context, statement string, args ...any) *sql.Row {
	return tx.tx.QueryRowContext(ctx, tx.db.dialect.rewrite(statement), storable(args)...)
}

// Lock makes transactions of the same purpose wait for each other until they end, in all processes. On SQLite
// every transaction that writes does so anyway.
func (tx *Tx) Lock(ctx context.Context, purpose string) error {
	if !tx.db.dialect.numbered {
		return nil
	}
	_, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext(?))", "lieudit "+strings.ToLower(purpose))
	return err
}
