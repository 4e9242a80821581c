// Package officialtest opens the official data files that tests read: in the folder LIEUDIT_TEST_DATA, otherwise in the
// folder shared/data next to the project. A test without the data is skipped on a laptop and fails
// from the usual level of cmd/check on.
package officialtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lieudit/eventstore/leveltest"
)

// Folder is the folder of the data, whether it exists or not.
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

// Open opens a file of the data, such as ban/adresses-48.csv.gz, until the test ends.
func Open(t testing.TB, name string) *os.File {
	t.Helper()
	file, err := os.Open(filepath.Join(Folder(), filepath.FromSlash(name)))
	if err != nil {
		SkipOrFail(t, err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// SkipOrFail ends a test whose data is missing. From the usual level of the check on the test fails.
func SkipOrFail(t testing.TB, why any) {
	t.Helper()
	leveltest.Need(t, leveltest.Usual, fmt.Sprintf("no official data: name its folder in LIEUDIT_TEST_DATA: %v", why))
}
