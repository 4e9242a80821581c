package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// isPostgresAddress reports whether an address is a Postgres server's and not a path.
func isPostgresAddress(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// Transactions set what they need themselves, in the message that begins them: a pooler such as PgBouncer refuses settings at the
// start of a session, and may run the next transaction in another session.
//
// A Postgres session that does nothing within a transaction for 2 s is ended by the server. It would hold its locks against the
// instance that takes over. Without Durable a commit does not wait for the disk: a read model can lose its last transactions; its
// checkpoint is lost with them, and they are projected again.
const (
	beginDurable = "begin; set local idle_in_transaction_session_timeout = 2000"
	beginFast    = beginDurable + "; set local synchronous_commit = off"
)

// openPostgres makes two pools, as SQLite needs two: a slow read never takes the connection that a write waits for. It
// does not connect yet.
func openPostgres(address string, o Options) (write, read *sql.DB, err error) {
	c, err := newPostgresConnector(address, o)
	if err != nil {
		return nil, nil, err
	}
	write, read = limitConnections(sql.OpenDB(c), 2), limitConnections(sql.OpenDB(c), 6)
	for _, db := range []*sql.DB{write, read} {
		db.SetConnMaxIdleTime(time.Minute)
	}
	return write, read, nil
}

// postgresConnector connects to Postgres, directly or through a pooler. It notices a pooler by itself, and then prepares no
// statements: the session that prepared one need not be the one that runs it.
type postgresConnector struct {
	direct, pooled driver.Connector
	begin          string // how a transaction begins
	isPooled       atomic.Bool
}

// newPostgresConnector reads the address. Where that names default_query_exec_mode itself, statements are run in that mode with
// and without a pooler.
//
// Behind a pooler the types of a statement are asked for once in each connection and kept (QueryExecModeCacheDescribe): every run
// after that is one message to the server, which needs nothing of the session that it comes to.
func newPostgresConnector(address string, o Options) (*postgresConnector, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("postgres address: %w", err)
	}
	config.RuntimeParams["application_name"] = "lieudit"
	// A database or a role may have others by default. Poolers take these for each client.
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.RuntimeParams["standard_conforming_strings"] = "on"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	c := &postgresConnector{direct: stdlib.GetConnector(*config), begin: beginFast}
	if o.Durable {
		c.begin = beginDurable
	}
	if u, err := url.Parse(address); err != nil || !u.Query().Has("default_query_exec_mode") {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	c.pooled = stdlib.GetConnector(*config)
	return c, nil
}

// Driver is pgx's.
func (c *postgresConnector) Driver() driver.Driver { return c.direct.Driver() }

// Connect makes a connection. The first one through a pooler is made twice, as it shows that there is one.
func (c *postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.isPooled.Load() {
		return c.connect(ctx, c.pooled)
	}
	conn, err := c.connect(ctx, c.direct)
	if err != nil {
		return nil, err
	}
	isPooled, err := conn.isPooled(ctx)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if !isPooled {
		return conn, nil
	}
	c.isPooled.Store(true)
	conn.Close() // nothing was done in it
	return c.connect(ctx, c.pooled)
}

// connect makes one connection whose transactions begin as they should.
func (c *postgresConnector) connect(ctx context.Context, by driver.Connector) (*postgresConn, error) {
	made, err := by.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &postgresConn{made.(*stdlib.Conn), c.begin}
	if encoding := conn.Conn.Conn().PgConn().ParameterStatus("server_encoding"); encoding != "" && encoding != "UTF8" {
		return nil, errors.Join(&EncodingError{conn.Conn.Conn().Config().Database, encoding}, conn.Close())
	}
	return conn, nil
}

// EncodingError says that a Postgres database cannot hold every text. It stays so until there is another database.
type EncodingError struct{ Database, Encoding string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("the Postgres database %q holds texts in %s, and lieudit needs one in UTF8: createdb --encoding=UTF8 --template=template0 NAME makes it",
		e.Database, e.Encoding)
}

// postgresConn is pgx's connection, but for how transactions begin.
type postgresConn struct {
	*stdlib.Conn
	begin string
}

// isPooled reports whether another process stands between this one and the server's session: the session has another number then
// than the one that was told when the connection was made. A pooler cannot tell the session's number, as sessions change.
func (c *postgresConn) isPooled(ctx context.Context) (bool, error) {
	var session uint32
	err := c.Conn.Conn().QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&session)
	return err == nil && session != c.Conn.Conn().PgConn().PID(), err
}

// BeginTx begins a transaction and sets what it needs, in one message.
func (c *postgresConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	tx, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: c.begin})
	if err != nil {
		return nil, err
	}
	return postgresTx{ctx, tx}, nil
}

// postgresTx is a transaction of pgx as database/sql takes it. Package sqldb asks for transactions of no other kind.
type postgresTx struct {
	ctx context.Context
	tx  pgx.Tx
}

func (t postgresTx) Commit() error   { return t.tx.Commit(t.ctx) }
func (t postgresTx) Rollback() error { return t.tx.Rollback(t.ctx) }
