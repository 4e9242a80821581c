package sqldbtest

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// FilesHolding returns the files of a Postgres database that hold one of some texts, by text, after a checkpoint: the heaps,
// indexes and TOAST tables, those of the catalog among them. Without the right to read the server's folder the test is skipped.
func FilesHolding(t testing.TB, address string, texts ...string) map[string][]string {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var folder, database string
	if err := db.QueryRowContext(t.Context(), "select current_setting('data_directory'), oid::text from pg_database where datname = current_database()").Scan(&folder, &database); err != nil {
		t.Skipf("the folder of Postgres is not known: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), "checkpoint"); err != nil {
		t.Skipf("Postgres cannot be told to write its files: %v", err)
	}
	files, err := os.ReadDir(filepath.Join(folder, "base", database))
	if err != nil {
		t.Skipf("the files of Postgres cannot be read: %v", err)
	}
	found := map[string][]string{}
	for _, f := range files {
		path := filepath.Join(folder, "base", database, f.Name())
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) { // a file that was dropped is gone after the checkpoint
			t.Fatal(err)
		}
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				found[text] = append(found[text], path)
			}
		}
	}
	return found
}
