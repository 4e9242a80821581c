package releases

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/queries/mappedfile"
)

// note is a release of the tests: a date, and enough bytes to damage.
type note struct {
	*mappedfile.File
	Label
}

// errDamagedNote says that a note is damaged.
var errDamagedNote = errors.New("the note is damaged")

func noteFormat() mappedfile.Format {
	return mappedfile.Format{
		Magic: "releases-notes-\n", FirstVersion: 1, SectionCounts: []int{2}, CheckedAtOpen: 8 << 20,
		ErrOther: errors.New("not a note"), ErrDamaged: errDamagedNote,
	}
}

// notesIn is the folder of notes in a data folder.
func notesIn(data string) Folder[note] {
	return FolderIn(data, Kind[note]{
		Noun: "note", Contents: "words", FolderName: "notes", Extension: ".note", LastRealFile: "last-note", RepairAdvice: "write it again",
		HasMagic: func(head []byte) bool { return strings.HasPrefix(string(head), "releases-notes-") },
		Versions: func() (first, last int) { return 1, 1 },
		Open: func(path string) (note, error) {
			file, err := mappedfile.Open(path, noteFormat())
			if err != nil {
				return note{}, err
			}
			date := string(file.Section(1))
			return note{file, Label{date, date == DemoDate}}, nil
		},
		File:     func(n note) *mappedfile.File { return n.File },
		Describe: func(n note) Label { return n.Label },
	})
}

// noteBytes is the length of the second section of a note.
const noteBytes = 4000

// writeNote writes a note to a path.
func writeNote(path, date string) (Label, error) {
	_, err := mappedfile.Build(path, noteFormat(), func(_ string, w *mappedfile.Writer) error {
		w.Append(1, []byte(date))
		w.Append(2, make([]byte, noteBytes))
		return w.Err()
	})
	return Label{date, date == DemoDate}, err
}

// mustImport imports a note of 2026-01-02 into a folder.
func mustImport(t *testing.T, f Folder[note], now time.Time) string {
	t.Helper()
	name, err := f.Add(t.Context(), now, func(path, _ string) (Label, error) { return writeNote(path, "2026-01-02") })
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// startWatcher runs a watcher until the test ends and returns the notes that it passes to swap.
func startWatcher(t *testing.T, f Folder[note]) <-chan note {
	t.Helper()
	return startWatcherWhile(t, f, func() bool { return true })
}

// startWatcherWhile is startWatcher with what AnnounceWhile is given.
func startWatcherWhile(t *testing.T, f Folder[note], isAnswering func() bool) <-chan note {
	t.Helper()
	swapped := make(chan note, 8)
	ctx, cancel := context.WithCancel(context.Background())
	watcher := NewWatcher(f, slog.New(slog.NewTextHandler(t.Output(), nil)), func(_ context.Context, v note) { swapped <- v }, func(error) {})
	watcher.AnnounceWhile(isAnswering)
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(swapped)
		for v := range swapped {
			v.Close()
		}
	})
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(time.Millisecond) {
		if _, running, err := f.ServedName(); err != nil || running {
			return swapped
		}
		if time.Now().After(deadline) {
			t.Fatal("the watcher does not announce that it runs")
		}
	}
}

func TestAReleaseIsNamedByItsDateAndTime(t *testing.T) {
	t.Parallel()
	if got := mustImport(t, notesIn(t.TempDir()), time.UnixMilli(7)); got != "2026-01-02-7" {
		t.Errorf("got %s", got)
	}
}

func TestDateSaysWhetherItIsTheDateOfAFile(t *testing.T) {
	t.Parallel()
	dir, changed := t.TempDir(), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		names      []string
		want       string
		isFileDate bool
	}{
		{[]string{"adresses-2026-01-02.csv"}, "2026-01-02", false},
		{[]string{"adresses-48.csv"}, "2026-03-04", true},
		{[]string{"adresses-2026-13-45.csv"}, "2026-03-04", true},
		{[]string{"adresses-2026-01-02.csv", "lieux-dits.csv"}, "2026-03-04", true},
		{[]string{"lieux-dits.csv", "adresses-20260304.csv"}, "2026-03-04", false},
		{[]string{"lieux-dits.csv", "adresses-2026-05-06.csv"}, "2026-05-06", false},
	} {
		var paths []string
		for _, name := range c.names {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, changed, changed)); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		sources, err := OpenSources(t.Context(), paths)
		if err != nil {
			t.Fatal(err)
		}
		if got, isFileDate := sources.Date(); got != c.want || isFileDate != c.isFileDate {
			t.Errorf("%v: %s, of the file %v, want %s, %v", c.names, got, isFileDate, c.want, c.isFileDate)
		}
		sources.Close()
	}
}

func TestARoughDateMayBeAMonthOrAYear(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"bondy_2023.osm.pbf":            "2023-01-01",
		"2023":                          "2023-01-01",
		"bretagne-2024-05.osm.pbf":      "2024-05-01",
		"bretagne-202405-v2.osm.pbf":    "2024-05-01",
		"bretagne-2024-05-06.osm.pbf":   "2024-05-06",
		"bretagne-2024-13-45.osm.pbf":   "",
		"bretagne-2024-05-3.osm.pbf":    "",
		"bretagne-12024.osm.pbf":        "",
		"bretagne-20245.osm.pbf":        "",
		"bretagne-1999.osm.pbf":         "",
		"bretagne-latest.osm.pbf":       "",
		"bretagne_2024_extract.osm.pbf": "2024-01-01",
	} {
		s := &Sources{Files: []*Source{{Name: name}}}
		if got, isFileDate := s.RoughDate(); got != want || isFileDate {
			t.Errorf("%s: %q, of the file %v, want %q", name, got, isFileDate, want)
		}
	}
}

func TestARunningServiceTakesOverAnImport(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	swapped := startWatcher(t, f)
	name := mustImport(t, f, time.UnixMilli(1))
	if running, err := f.AwaitServed(t.Context(), name); err != nil || !running {
		t.Fatalf("awaited: %v, %v", running, err)
	}
	v := <-swapped
	defer v.Close()
	if v.Date != "2026-01-02" {
		t.Errorf("handed %s", v.Date)
	}
}

func TestAReleaseIsAnnouncedWhileTheServiceAnswersFromIt(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	var isAnswering atomic.Bool
	isAnswering.Store(true)
	startWatcherWhile(t, f, isAnswering.Load)
	waitForServed(t, f, name)
	isAnswering.Store(false)
	waitForServed(t, f, "")
	isAnswering.Store(true)
	waitForServed(t, f, name)
}

func TestADemoThatIsServedNoMoreIsNotAnnouncedAfterARestart(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	left := filepath.Join(f.dir, servingFolder, servedNameFile)
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, left, []byte("demo-1"))
	startWatcher(t, f)
	waitForServed(t, f, "")
}

// waitForServed waits until the running watcher announces a release; "": none.
func waitForServed(t *testing.T, f Folder[note], want string) {
	t.Helper()
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(time.Millisecond) {
		got, _, err := f.ServedName()
		if err == nil && got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("announces %q, %v, want %q", got, err, want)
		}
	}
}

func TestAReleaseThatCannotBeOpenedIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	swapped := startWatcher(t, f)
	bad, err := f.Add(t.Context(), time.UnixMilli(1), func(path, _ string) (Label, error) {
		return Label{}, os.WriteFile(path, []byte(strings.Repeat("x", 100)), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := f.AwaitServed(t.Context(), bad); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "not a note") {
		t.Errorf("got %v, want a *RefusedError", err)
	}
	if len(swapped) > 0 {
		t.Error("it was handed on all the same")
	}
}

func TestASecondImportAtATimeIsRefused(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	_, err := f.Add(t.Context(), time.UnixMilli(1), func(string, string) (Label, error) {
		_, err := f.Add(t.Context(), time.UnixMilli(2), nil)
		return Label{}, err
	})
	var held *dirlock.HeldError
	if !errors.As(err, &held) {
		t.Errorf("got %v, want a *dirlock.HeldError", err)
	}
}

func TestLeftoversOfKilledImportsAreRemoved(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	if err := f.RemoveLeftovers(time.UnixMilli(1)); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	name := mustImport(t, f, time.UnixMilli(1))
	for _, left := range []string{".draft", "older.note"} {
		if err := os.WriteFile(filepath.Join(f.dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.dir, ".building-123"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveLeftovers(time.UnixMilli(2)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{name + ".note", name + ".note.sum", currentFile, "lock"}; !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

func TestTwoServicesOnOneFolderBothTakeOverAnImport(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	first, second := startWatcher(t, f), startWatcher(t, f)
	mustImport(t, f, time.UnixMilli(1))
	for _, swapped := range []<-chan note{first, second} {
		select {
		case v := <-swapped:
			v.Close()
		case <-time.After(deadlinetest.Scale(deadlinetest.DefaultLimit)):
			t.Fatal("one of them does not take it over")
		}
	}
}
