package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"lieudit/schemas/table"
)

// dialect holds everything that differs between the two databases. All other statements use what both have: "on conflict",
// row values such as (a, b) > (?, ?), and times as 64-bit integers.
type dialect struct {
	numberedPlaceholders bool // placeholders are $1, $2… and not "?"
	columnArrays         bool // a whole column of rows can be passed as one array
	namedSchemas         bool // one database holds many schemas; otherwise each generation is a file of its own
	advisoryLocks        bool // transactions take turns by a named lock; otherwise each one that writes waits for the one before
	hasWAL               bool // overwritten data stays in a log of writes until TruncateWAL; otherwise it stays in the tables' files
	samplesValues        bool // statistics for the planner hold values of columns

	columnTypes   map[table.ColumnType]string
	arrayTypes    map[table.ColumnType]string
	nowExpr       string // the database's clock, in microseconds
	createView    string // how a view is made, also in the place of one with the same columns
	timestampExpr string // a table.Instant as people read it
}

// postgres compares texts by their bytes (collate "C"), as SQLite does: cursors are made of the last row's key, and
// both databases must page in the same order.
var postgres = dialect{
	numberedPlaceholders: true,
	columnArrays:         true,
	namedSchemas:         true,
	advisoryLocks:        true,
	samplesValues:        true,
	columnTypes: map[table.ColumnType]string{
		table.Text: `text collate "C"`, table.Integer: "bigint", table.Boolean: "boolean", table.Timestamp: "bigint", table.Bytes: "bytea",
	},
	arrayTypes: map[table.ColumnType]string{
		table.Text: "text[]", table.Integer: "bigint[]", table.Boolean: "boolean[]", table.Timestamp: "bigint[]", table.Bytes: "bytea[]",
	},
	nowExpr:       "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
	createView:    "create or replace view ",
	timestampExpr: "case when %[1]s <> 0 then to_timestamp(%[1]s / 1000000.0) end",
}

var sqlite = dialect{
	hasWAL: true,
	columnTypes: map[table.ColumnType]string{
		table.Text: "text", table.Integer: "integer", table.Boolean: "boolean", table.Timestamp: "integer", table.Bytes: "blob",
	},
	nowExpr:       "cast(unixepoch('subsec') * 1000000 as integer)",
	createView:    "create view ",
	timestampExpr: "case when %[1]s <> 0 then strftime('%%Y-%%m-%%d %%H:%%M:%%fZ', %[1]s / 1000000.0, 'unixepoch') end",
}

// rewriteStatement turns each {name} of a statement into the name of that table, with the prefix of its schema, and each "?"
// into the dialect's placeholder: $1, $2… on Postgres. Quoted text stays unchanged. Tables are named with their schema,
// because a pooler may run each transaction in another session, and a session's search path would be lost.
func (l dialect) rewriteStatement(statement, prefix string) string {
	if strings.IndexByte(statement, '{') < 0 && (!l.numberedPlaceholders || strings.IndexByte(statement, '?') < 0) {
		return statement
	}
	var out strings.Builder
	n, quoted := 0, false
	for i := range len(statement) {
		switch c := statement[i]; {
		case c == '\'':
			quoted = !quoted
			out.WriteByte(c)
		case quoted:
			out.WriteByte(c)
		case c == '{':
			out.WriteString(prefix)
		case c == '}':
		case c == '?' && l.numberedPlaceholders:
			n++
			out.WriteByte('$')
			out.WriteString(strconv.Itoa(n))
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// sanitizeArgs replaces the zero bytes and the broken UTF-8 that Postgres refuses in texts. SQLite would keep them, but
// both databases must hold the same. It changes the arguments in place.
func sanitizeArgs(args []any) []any {
	for i, arg := range args {
		switch a := arg.(type) {
		case string:
			args[i] = sanitizeText(a)
		case *string:
			args[i] = sanitizeText(*a)
		case []string:
			for j := range a {
				a[j] = sanitizeText(a[j])
			}
		}
	}
	return args
}

// sanitizeText replaces a zero byte, and each run of bytes that is not UTF-8, by U+FFFD.
func sanitizeText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// openSQLite makes the pool for writing, of one connection, and the one for reading, which cannot write. It does not open the
// file yet. secure_delete overwrites deleted data: an erased name must not stay in the file.
func openSQLite(path string, o Options) (write, read *sql.DB, err error) {
	synchronous, journalMode := "normal", "wal"
	if o.Durable {
		synchronous = "full"
	}
	if o.SingleFile {
		journalMode = "truncate"
	}
	pragmas := []string{"busy_timeout(5000)", "journal_mode(" + journalMode + ")", "synchronous(" + synchronous + ")", "secure_delete(on)", "cache_size(-16384)"}
	writing, err := driver.NewConnector(sqliteDSN(path, "immediate", pragmas))
	if err != nil {
		return nil, nil, err
	}
	reading, err := driver.NewConnector(sqliteDSN(path, "deferred", []string{"busy_timeout(5000)", "query_only(1)"}))
	if err != nil {
		return nil, nil, err
	}
	writing, reading = preparingConnector{writing}, preparingConnector{reading}
	if wrap := o.Simulated.Connector; wrap != nil {
		writing, reading = wrap(writing), wrap(reading)
	}
	return limitConnections(sql.OpenDB(writing), 1), limitConnections(sql.OpenDB(reading), 4), nil
}

// sqliteDSN is the address of a file with the kind of lock that a transaction begins with. A transaction that writes
// takes its lock at once ("immediate"): one that read first and then had to wait would fail.
func sqliteDSN(path, txLock string, pragmas []string) string {
	query := url.Values{"_txlock": {txLock}, "_pragma": pragmas}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}).String()
}

// limitConnections sets the size of a pool. Idle connections stay open, so that they are not made again for each call.
func limitConnections(db *sql.DB, connections int) *sql.DB {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// openFirstConnection makes the first connection. The first ones to a new SQLite file switch it to WAL, and fail at
// once with SQLITE_BUSY instead of waiting for each other, whatever the busy timeout; so they are tried again.
func openFirstConnection(ctx context.Context, db *sql.DB) error {
	for {
		err := db.PingContext(ctx)
		var sqliteErr *driver.Error
		if !errors.As(err, &sqliteErr) || sqliteErr.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// IsMissingTable reports whether an error is that a table, or its schema, does not exist.
func IsMissingTable(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code == "42P01" || pgErr.Code == "3F000"
	}
	var sqliteErr *driver.Error
	return errors.As(err, &sqliteErr) && strings.Contains(sqliteErr.Error(), "no such table")
}
