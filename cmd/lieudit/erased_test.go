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
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.runCommand(t, `account open "Zébulon Retiré" --id zeb --plan STARTER`)
	svc.runCommand(t, `projections rebuild register`)
	waitUntil(t, "a retired copy that knows the name", func() bool {
		return strings.Contains(svc.runCommand(t, "projections status"), "retired")
	})
	if !folderContains(t, data, "Zébulon") {
		t.Fatal("the name is in no file while it is in use")
	}
	svc.runCommand(t, "account close zeb")
	svc.runCommand(t, "account erase zeb")
	if folderContains(t, data, "Zébulon") {
		t.Error("a file still holds the name")
	}
}

func TestErasedSitesAreInNoFileOfTheDataFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.runCommand(t, `account open Mende --id zeb --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue zeb`))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"m"}`)
	svc.mustSend(t, key, "POST /locations/referentiels/m/sites:sync", `{"sites":[{"external_id":"1","nom":"Zébulon","lat":44.5,"lon":3.5,"proprietes":{"long":"`+
		strings.Repeat("Zébulon, ", 1500)+`"}},{"external_id":"2","nom":"Zébulon aussi","lat":44.5,"lon":3.5}]}`)
	svc.runCommand(t, `projections rebuild places`)
	waitUntil(t, "a retired copy that knows the sites", func() bool {
		return strings.Contains(svc.runCommand(t, "projections status"), "retired")
	})
	if !folderContains(t, data, "Zébulon") {
		t.Fatal("the sites are in no file while they are in use")
	}
	svc.runCommand(t, "account close zeb")
	svc.runCommand(t, "account erase zeb")
	if folderContains(t, data, "Zébulon") {
		t.Error("a file still holds what was said of a site")
	}
	if told := svc.runCommand(t, "audit log zeb --kind sites --subject m/1"); !strings.Contains(told, "created site 1 of m") {
		t.Errorf("the history of the site is %q", told)
	}
}

// folderContains says whether a text is in a file below a folder.
func folderContains(t *testing.T, folder, text string) bool {
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
