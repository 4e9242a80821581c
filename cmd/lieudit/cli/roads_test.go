package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// generateMapFile writes a map of invented roads into a file of a folder and returns its name.
func generateMapFile(t *testing.T, dir, name, flags string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	mustRun(t, "lieudit roads generate --segments 1000 "+flags+" --out "+file)
	return file
}

func TestRoadsImportAndStatusShowTheNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := generateMapFile(t, dir, "roads-2026-10-02.osm.pbf", "")
	code, out, stderr := runCommand(t, nil, "lieudit roads import --data "+dir+" "+file)
	if code != 0 || !strings.Contains(stderr, "warning: the map says no date; 2026-10-02") {
		t.Fatalf("exit %d, %q", code, stderr)
	}
	for _, word := range []string{"2026-10-02", "car", "segments", "turn restrictions", "SYNTHETIC", "No service runs"} {
		if !strings.Contains(out, word) {
			t.Errorf("import prints no %q: %s", word, out)
		}
	}
	code, out, _ = runCommand(t, nil, "lieudit roads status --data "+dir)
	if code != 0 || !strings.Contains(out, "SYNTHETIC") || !strings.Contains(out, "2026-10-02") || strings.Contains(out, "OpenStreetMap") {
		t.Errorf("status: exit %d, %q; want an invented network of the date in the file's name, of nobody's map", code, out)
	}
	code, out, _ = runCommand(t, nil, "lieudit roads status --json --sha256 --data "+dir)
	var status struct {
		Fichier, SHA256 string
		Troncons        int
		Synthetique     bool
	}
	if err := json.Unmarshal([]byte(out), &status); code != 0 || err != nil || len(status.SHA256) != 64 || status.Troncons == 0 || !status.Synthetique {
		t.Errorf("exit %d, %v: %+v", code, err, status)
	}
	if code, _, stderr := runCommand(t, nil, "lieudit roads import --data "+t.TempDir()+" --sha256 "+status.SHA256+" "+status.Fichier); code != 0 {
		t.Errorf("taken over by its sum: exit %d, %q", code, stderr)
	}
}

func TestRoadsImportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := generateMapFile(t, dir, "good.osm.pbf", "")
	if code, _, stderr := runCommand(t, nil, "lieudit roads import --data "+dir+" "+good); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	networks, err := filepath.Glob(filepath.Join(dir, "networks", "*.network"))
	if err != nil || len(networks) != 1 {
		t.Fatalf("%v, %v", networks, err)
	}
	cut, gzipped := filepath.Join(dir, "cut.osm.pbf"), filepath.Join(dir, "map.osm.gz")
	content := readFile(t, good)
	writeFile(t, cut, string(content[:len(content)-100]))
	writeFile(t, gzipped, "\x1f\x8b\x08 and so on")
	for arguments, want := range map[string]string{
		"":                            "FILE.osm.pbf",
		"missing.osm.pbf":             "no such file",
		cut:                           "lieudit: cut.osm.pbf: the PBF is cut",
		gzipped:                       "lieudit: map.osm.gz: not OSM PBF: ",
		dir:                           "is a folder",
		good + " " + good:             "unexpected argument",
		networks[0]:                   "--sha256 SUM",
		"--sha256 00 " + networks[0]:  "is not the road network that was meant",
		"--sha256 00 " + good:         "this is none",
		"http://127.0.0.1:1/map.pbf":  "refused",
		"http://127.0.0.1:1/a?token=": "refused",
	} {
		if code, _, stderr := runCommand(t, nil, "lieudit roads import --data "+dir+" "+arguments); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("roads import %s: exit %d, %q, want %q", arguments, code, stderr, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "networks", "*.network")); err != nil || len(left) != 1 || left[0] != networks[0] {
		t.Errorf("there is %v, %v; want the network from before", left, err)
	}
	if code, _, stderr := runCommand(t, nil, "lieudit roads status --data "+t.TempDir()); code != 1 || !strings.Contains(stderr, "lieudit roads import FILE.osm.pbf") {
		t.Errorf("status without a network: exit %d, %q", code, stderr)
	}
}

func TestRoadsImportSaysWhereTheDateIsFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named, unnamed := generateMapFile(t, dir, "bondy_2023.osm.pbf", ""), generateMapFile(t, dir, "bondy.osm.pbf", "")
	changed := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(unnamed, changed, changed); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		named:                          "warning: the map says no date; 2023-01-01 is the one in the file's name; --date DATE sets it\n",
		unnamed:                        "warning: the map says no date, nor does its name; 2026-03-04 is the file's own; --date DATE sets it\n",
		"--date 2023-06-01 " + unnamed: "",
	} {
		code, _, stderr := runCommand(t, nil, "lieudit roads import --data "+t.TempDir()+" "+arguments)
		if code != 0 || stderr != want {
			t.Errorf("%s: exit %d, %q, want %q", arguments, code, stderr, want)
		}
	}
	if code, _, stderr := runCommand(t, nil, "lieudit roads import --date 2023 "+named); code != 2 || !strings.Contains(stderr, "2026-11-21") {
		t.Errorf("a date that is none: exit %d, %q", code, stderr)
	}
}

func TestRoadsStatusSaysHowADamagedNetworkIsRepaired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustRun(t, "lieudit roads import --data "+dir+" "+generateMapFile(t, dir, "roads-2026-10-02.osm.pbf", ""))
	networks, err := filepath.Glob(filepath.Join(dir, "networks", "*.network"))
	if err != nil || len(networks) != 1 {
		t.Fatalf("%v, %v", networks, err)
	}
	if err := os.Truncate(networks[0], 1000); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runCommand(t, nil, "lieudit roads status --data "+dir)
	for _, want := range []string{"road network 2026-10-02", "put it back from a backup", "lieudit roads import FILE.osm.pbf"} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %q, want %q", code, stderr, want)
		}
	}
}

func TestRoadsGenerateGivesTheSameBytesForASeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var made [3][]byte
	for i, flags := range []string{"--seed 7", "--seed 7", "--seed 8"} {
		made[i] = readFile(t, generateMapFile(t, dir, "a.osm.pbf", flags))
	}
	if !bytes.Equal(made[0], made[1]) || bytes.Equal(made[0], made[2]) {
		t.Error("the bytes do not follow the seed alone")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
