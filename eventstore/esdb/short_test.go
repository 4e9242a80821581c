package esdb_test

import (
	"os"
	"testing"
)

// shortTempDir is a folder whose path leaves room for the name of a socket, which t.TempDir does not promise.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "es")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
