package projectortest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FolderContains says whether a text is in a file of a folder.
func FolderContains(t testing.TB, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := false
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, []byte(text))
	}
	return found
}
