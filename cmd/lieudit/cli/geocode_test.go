package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGeocodeWritesResultsBesideTheRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rows := generateAddressFile(t, dir, "a.csv", "--addresses 50")
	mustRun(t, "lieudit ban import --data "+dir+" "+rows)
	line := "lieudit geocode " + rows + " --columns numero,rep,nom_voie,code_postal,nom_commune --data " + dir
	code, out, stderr := runCommand(t, nil, line)
	if code != 0 || !strings.Contains(out, "a.geocoded.csv") || !strings.Contains(stderr, "SYNTHETIC") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	text := string(readFile(t, filepath.Join(dir, "a.geocoded.csv")))
	if strings.Count(text, "\n") != 51 || strings.Count(text, ";ok\n") != 50 {
		t.Errorf("not every row is found:\n%s", text)
	}
	for args, want := range map[string]string{
		line:                           "there is a result already",
		line + " --out b --columns zz": "there is no column \"zz\"",
		line + " --separator no":       "--separator",
		"lieudit geocode " + filepath.Join(dir, "none.csv") + " --data " + dir:   "none.csv",
		"lieudit geocode " + rows + " --data " + filepath.Join(dir, "elsewhere"): "lieudit ban import FILE",
	} {
		if code, _, stderr := runCommand(t, nil, args); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, err := os.Stat("b"); err == nil {
		t.Error("a refused run left a file")
	}
}
