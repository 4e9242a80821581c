package networks

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/releases"
	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route/network"
	"lieudit/queries/route/osmpbf"
)

// writeTestMap writes a map of three streets around a square into a file and returns its path.
func writeTestMap(t *testing.T, name string, date time.Time) string {
	t.Helper()
	var out bytes.Buffer
	w := osmpbf.NewWriter(&out, osmpbf.Header{Date: date, Generator: "test"})
	for i, at := range [][2]int32{{0, 0}, {20_000, 0}, {20_000, 20_000}, {0, 20_000}} {
		if err := w.WriteNode(osmpbf.Node{ID: int64(i + 1), Lon: 35_000_000 + at[0], Lat: 445_000_000 + at[1]}); err != nil {
			t.Fatal(err)
		}
	}
	for i, nodes := range [][]int64{{1, 2}, {2, 3}, {3, 4, 1}} {
		way := osmpbf.Way{ID: int64(i + 1), Nodes: nodes, Tags: osmpbf.Tags{{Key: "highway", Value: "residential"}, {Key: "name", Value: "Rue Basse"}}}
		if err := w.WriteWay(way); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mapDate is the date of the maps of the tests.
func mapDate() time.Time { return time.Date(2026, 11, 20, 20, 21, 30, 0, time.UTC) }

// importMap imports files or URLs into a folder.
func importMap(t *testing.T, f Folder, sum string, names ...string) (string, Summary, error) {
	t.Helper()
	sources, err := releases.OpenSources(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	defer sources.Close()
	i := Import{Folder: f, Sources: sources, SHA256: sum, Progress: func(string, int64, int64) {}, Now: time.UnixMilli(7)}
	return i.Run(t.Context())
}

func TestAMapBecomesTheCurrentNetworkNamedByItsDate(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	name, summary, err := importMap(t, f, "", writeTestMap(t, "lozere.osm.pbf", mapDate()))
	if err != nil || name != "2026-11-20-7" {
		t.Fatalf("%q, %v", name, err)
	}
	if got, err := f.Current(); err != nil || got != name {
		t.Errorf("current is %q, %v", got, err)
	}
	n, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if !n.Meta.Date.Equal(mapDate()) || n.Meta.Roads != summary.Roads || summary.Roads == 0 || n.Size() != summary.Bytes || summary.DateSource != DateOfMap {
		t.Errorf("opened %+v of %d bytes, built %+v", n.Meta, n.Size(), summary)
	}
}

func TestAMapWithoutADateHasThatOfTheCallerOfItsNameOrOfItsFile(t *testing.T) {
	t.Parallel()
	changed := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		file, date, want string
		from             DateSource
	}{
		{"france-2026-11-21.osm.pbf", "", "2026-11-21-7", DateInName},
		{"bondy_2023.osm.pbf", "", "2023-01-01-7", DateInName},
		{"bretagne-2024-05.osm.pbf", "", "2024-05-01-7", DateInName},
		{"bondy_2023.osm.pbf", "2023-06-01", "2023-06-01-7", DateOfCaller},
		{"france.osm.pbf", "", "2026-03-04-7", DateOfFile},
	} {
		file := writeTestMap(t, c.file, time.Time{})
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
		sources, err := releases.OpenSources(t.Context(), []string{file})
		if err != nil {
			t.Fatal(err)
		}
		defer sources.Close()
		i := Import{Folder: FolderIn(t.TempDir()), Sources: sources, Date: c.date, Progress: func(string, int64, int64) {}, Now: time.UnixMilli(7)}
		name, s, err := i.Run(t.Context())
		if err != nil || name != c.want || s.DateSource != c.from {
			t.Errorf("%s: %q, from %v, %v, want %q from %v", c.file, name, s.DateSource, err, c.want, c.from)
		}
	}
}

func TestAMapIsFetchedFromAURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(writeTestMap(t, "m.osm.pbf", mapDate())))))
	defer server.Close()
	data := t.TempDir()
	name, _, err := importMap(t, FolderIn(data), "", server.URL+"/m.osm.pbf")
	if err != nil || name != "2026-11-20-7" {
		t.Fatalf("%q, %v", name, err)
	}
	left, err := filepath.Glob(filepath.Join(data, "networks", ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAFinishedNetworkIsTakenOverByItsSum(t *testing.T) {
	t.Parallel()
	there, here := FolderIn(t.TempDir()), FolderIn(t.TempDir())
	name, _, err := importMap(t, there, "", writeTestMap(t, "m.osm.pbf", mapDate()))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := there.Checksum(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "00"} {
		_, _, err = importMap(t, here, wrong, there.Path(name))
		if _, ok := errors.AsType[*releases.ChecksumError](err); !ok {
			t.Errorf("sum %q: %v, want a *ChecksumError", wrong, err)
		}
	}
	if got, s, err := importMap(t, here, sum, there.Path(name)); err != nil || got != name || s.Roads == 0 {
		t.Errorf("taken over as %q with %+v, %v", got, s, err)
	}
	_, _, err = importMap(t, here, sum, writeTestMap(t, "m.osm.pbf", mapDate()))
	if _, ok := errors.AsType[*releases.UnfinishedError](err); !ok {
		t.Errorf("a map with a sum: %v, want an *UnfinishedError", err)
	}
}

func TestWhatIsNoMapIsRefusedAndNothingChanges(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	good := writeTestMap(t, "m.osm.pbf", mapDate())
	before, _, err := importMap(t, f, "", good)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"gzip":    {[]byte("\x1f\x8b\x08\x00 and so on, and on, and on"), "gzip"},
		"XML":     {[]byte("<?xml version='1.0'?><osm version='0.6'></osm>"), "XML"},
		"a page":  {[]byte("<!DOCTYPE html><html>not found</html>"), "web page"},
		"nothing": {nil, "not OSM PBF"},
		"a cut":   {whole[:len(whole)-10], "is cut"},
	} {
		path := filepath.Join(t.TempDir(), "wrong.osm.pbf")
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := importMap(t, f, "", path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "wrong.osm.pbf") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, _, err := importMap(t, f, "", good, good); err == nil || !strings.Contains(err.Error(), "one map") {
		t.Errorf("two maps: %v", err)
	}
	if got, err := f.Current(); got != before || err != nil {
		t.Errorf("current is %q, %v, want %q", got, err, before)
	}
}

// TestARunningServiceTakesOverANetwork passes one network after the other to swap.
func TestARunningServiceTakesOverANetwork(t *testing.T) {
	t.Parallel()
	f := FolderIn(t.TempDir())
	swapped := make(chan *network.Network, 2)
	log, swap := slog.New(slog.NewTextHandler(t.Output(), nil)), func(_ context.Context, n *network.Network) { swapped <- n }
	watcher := releases.NewWatcher(f, log, swap, func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(time.Millisecond) {
		if _, running, err := f.ServedName(); err != nil || running {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the watcher does not announce that it runs")
		}
	}
	name, _, err := importMap(t, f, "", writeTestMap(t, "m.osm.pbf", mapDate()))
	if err != nil {
		t.Fatal(err)
	}
	if running, err := f.AwaitServed(t.Context(), name); err != nil || !running {
		t.Errorf("awaited: %v, %v", running, err)
	}
	n := <-swapped
	defer n.Close()
	if !n.Meta.Date.Equal(mapDate()) {
		t.Errorf("passed the network of %v", n.Meta.Date)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
