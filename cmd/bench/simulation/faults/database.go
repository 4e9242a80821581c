package faults

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
)

// Database makes the connections of one instance to one database, struck by an Injector.
type Database struct {
	driver.Connector
	part     string // ReadModels or Vault
	injector *Injector
}

// NewDatabase puts faults in front of a connector. Its connections must implement what SQLite's do: statements and transactions with a context.
func NewDatabase(inner driver.Connector, part string, injector *Injector) *Database {
	return &Database{inner, part, injector}
}

// The texts are SQLite's, for people who read the log of a history.
var (
	errAway   = errors.New("unable to open database file (14)")
	errFull   = errors.New("database or disk is full (13)") // also of other files
	errCommit = errors.New("disk I/O error (10)")
)

// Connect implements driver.Connector.
func (d *Database) Connect(ctx context.Context) (driver.Conn, error) {
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	inner, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{SQLiteConn: inner.(sqldb.SQLiteConn), database: d}, nil
}

// begin starts each call on the database.
func (d *Database) begin(ctx context.Context) error {
	if err := d.injector.awaitTurn(ctx); err != nil {
		return err
	}
	if err := d.injector.awaitPause(ctx); err != nil {
		return err
	}
	if d.injector.strikes(DatabaseSlow, d.part) {
		if err := d.injector.sleep(ctx, d.injector.randomDuration(2*time.Second)); err != nil {
			return err
		}
	}
	if d.injector.strikes(DatabaseAway, d.part) {
		return errAway
	}
	return nil
}

// beginWrite starts each call that writes.
func (d *Database) beginWrite(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	if d.injector.strikes(DatabaseFull, d.part) {
		return errFull
	}
	return nil
}

// connection is a connection with faults. Closing and rolling back are never struck: the end of a process does both.
type connection struct {
	sqldb.SQLiteConn
	database   *Database
	hasWritten bool // since its transaction began; database/sql calls a connection from one goroutine at a time
}

func (c *connection) Ping(ctx context.Context) error {
	if err := c.database.begin(ctx); err != nil {
		return err
	}
	return c.SQLiteConn.Ping(ctx)
}

func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.begin(ctx, query); err != nil {
		return nil, err
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

// begin starts each statement, and notes whether the transaction has written.
func (c *connection) begin(ctx context.Context, query string) error {
	if !writes(query) {
		return c.database.begin(ctx)
	}
	c.hasWritten = true
	return c.database.beginWrite(ctx)
}

// writes reports whether a statement may need more disk space.
func writes(query string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToLower(first) {
	case "select", "with", "explain":
		return false
	case "pragma":
		return strings.Contains(query, "wal_checkpoint")
	}
	return true
}

func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.begin(ctx, query); err != nil {
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c *connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.begin(ctx, query); err != nil {
		return nil, err
	}
	return c.SQLiteConn.PrepareContext(ctx, query)
}

func (c *connection) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.database.begin(ctx); err != nil {
		return nil, err
	}
	inner, err := c.SQLiteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.hasWritten = false
	return &transaction{inner, c}, nil
}

// transaction is a transaction whose commit faults may strike.
type transaction struct {
	driver.Tx
	conn *connection
}

// Commit ends the transaction. The commit of one that has written nothing can be prevented, but does not fail by itself.
func (t *transaction) Commit() error {
	d, begin := t.conn.database, t.conn.database.begin
	if t.conn.hasWritten {
		begin = d.beginWrite
	}
	switch err := begin(context.Background()); {
	case err != nil:
		return errors.Join(err, t.Rollback())
	case !t.conn.hasWritten:
	case d.injector.strikes(CommitUnknownLost, d.part):
		return errors.Join(errCommit, t.Rollback())
	case d.injector.strikes(CommitUnknownMade, d.part):
		return errors.Join(t.Tx.Commit(), errCommit)
	}
	return t.Tx.Commit()
}
