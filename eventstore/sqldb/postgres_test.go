package sqldb_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// TestTransactionsSetWhatTheyNeed reads the settings within a transaction, and outside, where a pooler hands the session on to
// somebody else.
func TestTransactionsSetWhatTheyNeed(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres") {
			t.Skip("SQLite has no sessions")
		}
		for _, isDurable := range []bool{true, false} {
			db, err := sqldb.Open(t.Context(), address, sqldb.Options{Durable: isDurable})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			before := readSettings(t, db)
			var within []string
			err = db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
				within = readSettings(t, tx)
				return nil
			})
			want := map[bool]string{true: "on 2s", false: "off 2s"}[isDurable]
			if got := strings.Join(within, " "); err != nil || got != want {
				t.Errorf("durable %v: got %q, %v within a transaction, want %q", isDurable, got, err, want)
			}
			if got, want := strings.Join(readSettings(t, db), " "), strings.Join(before, " "); got != want || got != "on 0" {
				t.Errorf("durable %v: got %q after it, want %q as before", isDurable, got, want)
			}
		}
	})
}

// readSettings are synchronous_commit and idle_in_transaction_session_timeout.
func readSettings(t *testing.T, q sqldb.Querier) []string {
	t.Helper()
	rows, err := q.Query(t.Context(), "select setting from (select 1 as place, current_setting('synchronous_commit') as setting"+
		" union select 2, current_setting('idle_in_transaction_session_timeout')) as settings order by place")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var setting string
		if err := rows.Scan(&setting); err != nil {
			t.Fatal(err)
		}
		found = append(found, setting)
	}
	return found
}

// TestStatementsArePreparedOnlyWithoutAPooler counts what the session keeps after a statement was run often.
func TestStatementsArePreparedOnlyWithoutAPooler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		newAddress func(t *testing.T) string
		isPrepared bool
	}{
		"direct":      {func(t *testing.T) string { return sqldbtest.NewPostgresDatabase(t) }, true},
		"session":     {func(t *testing.T) string { return sqldbtest.NewPooledDatabase(t, sqldbtest.SessionPooling) }, false},
		"transaction": {func(t *testing.T) string { return sqldbtest.NewPooledDatabase(t, sqldbtest.TransactionPooling) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, c.newAddress(t))
			var prepared int
			err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
				return countPrepared(t.Context(), tx, &prepared)
			})
			if err != nil || (prepared > 0) != c.isPrepared {
				t.Errorf("got %d prepared statements, %v, want some: %v", prepared, err, c.isPrepared)
			}
		})
	}
}

// countPrepared counts the statements that are prepared in the session. It counts itself.
func countPrepared(ctx context.Context, tx *sqldb.Tx, prepared *int) error {
	return tx.QueryRow(ctx, "select count(*) from pg_prepared_statements where name <> ?", "").Scan(prepared)
}

// TestADatabaseThatCannotHoldEveryTextIsRefused: initdb without a locale makes such databases, and the first key whose hint has an
// ellipsis would stop its read model.
func TestADatabaseThatCannotHoldEveryTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			registry, err := sqldb.OpenRegistry(sqldbtest.NewEncodedDatabase(t, encoding))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { registry.Close() })
			err = registry.CheckEncoding(t.Context())
			if err == nil || !strings.Contains(err.Error(), encoding) || !strings.Contains(err.Error(), "createdb --encoding=UTF8") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSessionsHaveTheirEncodingWhateverTheDatabaseSets: a database may set other defaults for its clients.
func TestSessionsHaveTheirEncodingWhateverTheDatabaseSets(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres") {
			t.Skip("SQLite has one encoding")
		}
		for _, setting := range []string{"client_encoding = 'LATIN1'", "standard_conforming_strings = off"} {
			setDefault(t, address, setting)
		}
		db, err := sqldb.Open(t.Context(), address, sqldb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		var text string
		rows, err := db.Query(t.Context(), "select cast(? as text)", `lk_a\b…œ`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			err = rows.Scan(&text)
		}
		if err != nil || text != `lk_a\b…œ` {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

// setDefault sets a default of the database at an address, for sessions that begin later.
func setDefault(t *testing.T, address, setting string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "alter database "+strings.TrimPrefix(server.Path, "/")+" set "+setting); err != nil {
		t.Fatal(err)
	}
}
