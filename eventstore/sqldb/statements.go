package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

// This file keeps prepared statements of SQLite's connections. Otherwise SQLite would parse each statement every time, which
// takes longer than most of the statements here, which read or write a few rows. Postgres has a cache of its own in pgx.

// preparingConnector makes connections that keep their statements.
type preparingConnector struct{ driver.Connector }

// SQLiteConn is what a connection to SQLite implements, and what one that Simulated.Connector wraps must implement too.
type SQLiteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// Connect implements driver.Connector.
func (p preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{SQLiteConn: c.(SQLiteConn), statements: map[string]*statement{}}, nil
}

const (
	// maxStatements is how many statements a connection keeps. With one more it begins anew.
	maxStatements = 64
	// maxStatementLength is that of statements which are kept, in bytes. Longer ones hold the rows of one batch, and do not come again.
	maxStatementLength = 2000
)

// preparingConn is a connection that keeps its statements. database/sql calls it from one goroutine at a time.
type preparingConn struct {
	SQLiteConn
	statements map[string]*statement // by text
}

// statement is a prepared statement. While its rows are being read it cannot be used again.
type statement struct {
	driver.Stmt
	isInUse bool
}

// statementOf returns the statement of a text, or nil if the text is not one to keep.
func (c *preparingConn) statementOf(ctx context.Context, text string) (*statement, error) {
	if s := c.statements[text]; s != nil {
		if s.isInUse {
			return nil, nil
		}
		return s, nil
	}
	if len(text) > maxStatementLength || !isRepeated(text) {
		return nil, nil
	}
	if len(c.statements) >= maxStatements {
		if err := c.forgetAll(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s := &statement{Stmt: made}
	c.statements[text] = s
	return s, nil
}

// isRepeated reports whether a statement reads or writes rows. Others change what there is, and are made once.
func isRepeated(text string) bool {
	verb, _, _ := strings.Cut(text, " ")
	switch strings.ToLower(verb) {
	case "select", "with", "insert", "update", "delete":
		return true
	}
	return false
}

// forgetAll closes all statements but those whose rows are being read.
func (c *preparingConn) forgetAll() (err error) {
	for text, s := range c.statements {
		if !s.isInUse {
			err = errors.Join(err, s.Close())
			delete(c.statements, text)
		}
	}
	return err
}

// ExecContext implements driver.ExecerContext.
func (c *preparingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.exec(ctx, text, args)
	if changed, ok := ctx.Value(rowCountKey{}).(*rowCount); ok && err == nil {
		changed.rows, err = result.RowsAffected()
		changed.isKnown = err == nil
	}
	return result, err
}

func (c *preparingConn) exec(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statementOf(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.SQLiteConn.ExecContext(ctx, text, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *preparingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statementOf(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.SQLiteConn.QueryContext(ctx, text, args)
	}
	found, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.isInUse = true
	return &statementRows{found, s}, nil
}

// statementRows are rows of a statement that is kept.
type statementRows struct {
	driver.Rows
	of *statement
}

func (r *statementRows) Close() error {
	r.of.isInUse = false
	return r.Rows.Close()
}

// Close closes the connection with its statements.
func (c *preparingConn) Close() error {
	for _, s := range c.statements {
		s.isInUse = false
	}
	return errors.Join(c.forgetAll(), c.SQLiteConn.Close())
}
