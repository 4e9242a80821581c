package cli_test

import (
	"encoding/json"
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

func TestGeocodeSaysWhichColumnsHoldWhat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rows := generateAddressFile(t, dir, "a.csv", "--addresses 20")
	mustRun(t, "lieudit ban import --data "+dir+" "+rows)
	code, out, stderr := runCommand(t, nil, "lieudit geocode "+rows+" --json --data "+dir)
	var got struct {
		Exact  int    `json:"exactes"`
		Out    string `json:"fichier"`
		Layout struct {
			Encoding string `json:"codage"`
			Prefix   string `json:"prefixe"`
			Columns  []struct {
				Name string `json:"nom"`
				Use  string `json:"usage"`
			} `json:"colonnes"`
		} `json:"trouve"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d: %v: %s%s", code, err, out, stderr)
	}
	if got.Exact != 20 || got.Layout.Encoding != "utf-8" || got.Layout.Prefix != "result_" || len(got.Layout.Columns) == 0 || got.Layout.Columns[0].Use != "numero" {
		t.Errorf("got %+v", got)
	}
	for _, want := range []string{"numero (house number)", "nom_voie (street)", "code_postal (postcode)", "utf-8"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in %q", want, stderr)
		}
	}
	_, _, stderr = runCommand(t, nil, "lieudit geocode "+got.Out+" --data "+dir)
	if !strings.Contains(stderr, "begin with result2_") {
		t.Errorf("a file with results: %q", stderr)
	}
	for text, want := range map[string]string{
		"nom;telephone\nA;0466000001\n":                 "--columns",
		`{"type": "FeatureCollection", "features": []}`: "lieudit sites import",
	} {
		path := filepath.Join(t.TempDir(), "b.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runCommand(t, nil, "lieudit geocode "+path+" --data "+dir); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %q, want %q", text, code, stderr, want)
		}
	}
}
