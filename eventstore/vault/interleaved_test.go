package vault_test

import (
	"context"
	"database/sql/driver"
	"testing"

	"lieudit/eventstore/sqldb"
)

// observedConnector calls beforeQuery before each query that its connections run outside a transaction.
type observedConnector struct {
	driver.Connector
	beforeQuery func()
}

func (c observedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &observedConn{SQLiteConn: inner.(sqldb.SQLiteConn), beforeQuery: c.beforeQuery}, nil
}

// observedConn is a connection of an observedConnector.
type observedConn struct {
	sqldb.SQLiteConn
	beforeQuery func()
	inTx        bool
}

func (c *observedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if !c.inTx {
		c.beforeQuery()
	}
	return c.SQLiteConn.QueryContext(ctx, text, args)
}

func (c *observedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.SQLiteConn.BeginTx(ctx, o)
	c.inTx = err == nil
	return observedTx{tx, c}, err
}

// observedTx is a transaction of an observedConn.
type observedTx struct {
	driver.Tx
	conn *observedConn
}

func (t observedTx) Commit() error {
	t.conn.inTx = false
	return t.Tx.Commit()
}

func (t observedTx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}

// While an instance checks an empty vault for the first time, another one may start between any two queries of the check, bind the
// vault, and create a key whose first event it has not appended yet.
func TestAnotherInstanceMayStartAnywhereInAFirstCheck(t *testing.T) {
	t.Parallel()
	queries := 0
	for n, other := 1, (*instance)(nil); n == 1 || other != nil; n++ {
		f := newFixture(t, t.TempDir())
		other, queries = nil, 0
		startOther := func() {
			if queries++; queries != n {
				return
			}
			other = f.startChecked(t)
			if _, err := other.Key(t.Context(), "account-a", true); err != nil {
				t.Error(err)
			}
		}
		first := f.startUnchecked(t, sqldb.Simulated{Connector: func(c driver.Connector) driver.Connector { return observedConnector{c, startOther} }})
		if err := first.Check(t.Context()); err != nil {
			t.Errorf("another one started before query %d: %v", n, err)
		}
		if other != nil {
			other.openAccounts(t, "a")
			first.requireReadable(t, "a")
		}
	}
	if queries < 3 {
		t.Errorf("a check runs %d queries: where are the others?", queries)
	}
}
