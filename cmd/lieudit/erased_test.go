package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

func TestAnErasedNameIsInNoFileOfTheDataFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	st := raise(t, func(c *service.Config) { c.Data = data })
	st.run(t, `account open "Zébulon Retiré" --id zeb --plan STARTER`)
	st.run(t, `projections rebuild register`)
	st.await(t, "a retired copy that knows the name", func() bool {
		return strings.Contains(st.run(t, "projections status"), "retired")
	})
	if !holds(t, data, "Zébulon") {
		t.Fatal("the name is in no file while it is in use")
	}
	st.run(t, "account close zeb")
	st.run(t, "account erase zeb")
	if holds(t, data, "Zébulon") {
		t.Error("a file still holds the name")
	}
}

// holds says whether a text is in a file below a folder.
func holds(t *testing.T, folder, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
