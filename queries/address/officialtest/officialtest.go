// Package officialtest finds the official data that tests read: in LIEUDIT_TEST_DATA, else in the folder shared/data beside
// the project. Without it a test is skipped, but under cmd/check, which skips nothing, it fails.
package officialtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Folder is where the data is, or would be.
func Folder() string {
	if dir := os.Getenv("LIEUDIT_TEST_DATA"); dir != "" {
		return dir
	}
	for root := "."; ; root = filepath.Join(root, "..") {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil || len(root) > 64 {
			return filepath.Join(root, "..", "shared", "data")
		}
	}
}

// Open opens a file of the data, such as ban/adresses-48.csv.gz.
func Open(t testing.TB, name string) *os.File {
	t.Helper()
	file, err := os.Open(filepath.Join(Folder(), filepath.FromSlash(name)))
	if err != nil {
		Missing(t, err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// Missing ends a test that needs data which is not there.
func Missing(t testing.TB, why any) {
	t.Helper()
	if os.Getenv("LIEUDIT_CHECK") == "1" {
		t.Fatalf("no official data: name its folder in LIEUDIT_TEST_DATA: %v", why)
	}
	t.Skipf("no official data: name its folder in LIEUDIT_TEST_DATA: %v", why)
}
