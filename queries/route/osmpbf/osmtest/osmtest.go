// Package osmtest finds the real maps that tests read. A test without its map is skipped on a laptop, and fails from the usual
// level of cmd/check on.
package osmtest

import (
	"go/build"
	"os"
	"path/filepath"
	"testing"

	"lieudit/queries/address/officialtest"
)

// maps are the files of the folder of official data by name.
var maps = map[string]string{
	"bondy":  "osm/bondy_2023.osm.pbf",
	"monaco": "osm/monaco-and-french-coast_2016.osm.pbf",
}

// Path is the file of a map: "bondy" (62 KB, no relations), "monaco" (1.8 MB) or "delaware" (7.8 MB, of 2016). Delaware lies in
// the tests of the module paulmach/osm.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(officialtest.Folder(), filepath.FromSlash(maps[name]))
	if name == "delaware" {
		path = filepath.Join(moduleFolder(t, "github.com/paulmach/osm@v0.8.0"), "testdata", "delaware-latest.osm.pbf")
	} else if maps[name] == "" {
		t.Fatalf("no map is called %q", name)
	}
	if _, err := os.Stat(path); err != nil {
		officialtest.SkipOrFail(t, err)
	}
	return path
}

// moduleFolder is where the go command unpacks a module.
func moduleFolder(t testing.TB, module string) string {
	t.Helper()
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(filepath.SplitList(build.Default.GOPATH)[0], "pkg", "mod")
	}
	return filepath.Join(cache, filepath.FromSlash(module))
}
