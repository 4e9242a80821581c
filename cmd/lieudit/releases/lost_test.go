package releases

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/queries/mappedfile"
)

// watchedService records the calls of a watcher: swap and withdraw.
type watchedService struct {
	*Watcher[note]
	current          *note
	withdrawnBecause error
	checks           atomic.Int64
}

// newWatchedService returns a service whose watcher polls when the test says so; its checks of whole files are counted.
func newWatchedService(t *testing.T, f Folder[note]) *watchedService {
	t.Helper()
	s := &watchedService{}
	swap := func(_ context.Context, n note) { s.closeCurrent(); s.current, s.withdrawnBecause = &n, nil }
	s.Watcher = NewWatcher(f, slog.New(slog.NewTextHandler(t.Output(), nil)), swap, func(why error) { s.closeCurrent(); s.withdrawnBecause = why })
	t.Cleanup(s.closeCurrent)
	return s
}

func (s *watchedService) closeCurrent() {
	if s.current != nil {
		s.current.Close()
		s.current = nil
	}
}

// pollOnce has the watcher poll once and returns the problem it reports.
func (s *watchedService) pollOnce(t *testing.T) string {
	t.Helper()
	s.recordProblem(s.loadCurrent(t.Context(), func(file *mappedfile.File, ctx context.Context) error {
		s.checks.Add(1)
		return file.Verify(ctx)
	}))
	if err := s.Problem(); err != nil {
		return err.Error()
	}
	return ""
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAnyTraceOfRealDataIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left func(t *testing.T, f Folder[note], name string)
		want bool
	}{
		"nothing":         {func(*testing.T, Folder[note], string) {}, false},
		"a demonstration": {func(t *testing.T, f Folder[note], _ string) { writeFile(t, f.Path("demo-1"), nil) }, false},
		"a file":          {func(t *testing.T, f Folder[note], name string) { writeFile(t, f.Path(name), nil) }, true},
		"a name": {func(t *testing.T, f Folder[note], name string) {
			writeFile(t, filepath.Join(f.dir, currentFile), []byte(name))
		}, true},
		"what was served": {func(t *testing.T, f Folder[note], name string) {
			writeFile(t, filepath.Join(f.dir, servingFolder, servedNameFile), []byte(name))
		}, true},
		"a note":              {func(t *testing.T, f Folder[note], name string) { f.recordReal(name) }, true},
		"a name out of reach": {func(t *testing.T, f Folder[note], _ string) { os.Mkdir(filepath.Join(f.dir, currentFile), 0o700) }, true},
		"a note, and no folder": {func(t *testing.T, f Folder[note], name string) {
			if err := errors.Join(f.recordReal(name), os.RemoveAll(f.dir)); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		f := notesIn(t.TempDir())
		if err := os.MkdirAll(filepath.Join(f.dir, servingFolder), 0o700); err != nil {
			t.Fatal(err)
		}
		c.left(t, f, "2026-01-02-7")
		if got := f.LastReal(); (got != "") != c.want {
			t.Errorf("%s: held %q, want any: %v", name, got, c.want)
		}
		if err := f.RemoveLeftovers(time.UnixMilli(9)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := f.LastReal(); (got != "") != c.want {
			t.Errorf("%s, after RemoveLeftovers: held %q, want any: %v", name, got, c.want)
		}
	}
}

func TestAnImportOfRealDataIsNoted(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	if got := f.LastReal(); got != name {
		t.Errorf("held %q, want %q", got, name)
	}
}

func TestTheOnlyReleaseIsCurrentWhenTheNameIsGone(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	writeFile(t, f.Path("demo-1"), []byte("x")) // an invented one does not count
	removeFile(t, filepath.Join(f.dir, currentFile))
	s := newWatchedService(t, f)
	if problem := s.pollOnce(t); problem != "" || s.current == nil {
		t.Errorf("served %v, problem %q", s.current != nil, problem)
	}
	if got, err := f.Current(); got != name || err != nil {
		t.Errorf("current is %q, %v, want %q", got, err, name)
	}
	removeFile(t, filepath.Join(f.dir, currentFile)) // while it is served
	if problem := s.pollOnce(t); problem != "" || s.checks.Load() != 1 {
		t.Errorf("problem %q after %d checks", problem, s.checks.Load())
	}
	if got, err := f.Current(); got != name || err != nil {
		t.Errorf("current is %q, %v, want %q", got, err, name)
	}
}

func TestALostReleaseIsNamedWithItsRepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(t *testing.T, f Folder[note], name string)
		words []string
	}{
		"the name and the file": {func(t *testing.T, f Folder[note], name string) {
			removeFile(t, filepath.Join(f.dir, currentFile))
			removeFile(t, f.Path(name))
		}, []string{"names no note", "2026-01-02-7", "is gone"}},
		"the name and the file, beside the demonstration": {func(t *testing.T, f Folder[note], name string) {
			writeFile(t, f.Path("demo-1"), readFile(t, f.Path(name)))
			removeFile(t, filepath.Join(f.dir, currentFile))
			removeFile(t, f.Path(name))
		}, []string{"names no note", "2026-01-02-7", "is gone"}},
		"the name and the file, beside an older one": {func(t *testing.T, f Folder[note], name string) {
			writeFile(t, f.Path("2025-01-02-1"), readFile(t, f.Path(name)))
			removeFile(t, filepath.Join(f.dir, currentFile))
			removeFile(t, f.Path(name))
		}, []string{"names no note", "2026-01-02-7", "is gone"}},
		"the file": {func(t *testing.T, f Folder[note], name string) { removeFile(t, f.Path(name)) }, []string{"2026-01-02-7", "whose file is gone"}},
		"the name, for another": {func(t *testing.T, f Folder[note], _ string) {
			writeFile(t, filepath.Join(f.dir, currentFile), []byte("2020-01-01-1"))
		}, []string{"2020-01-01-1", "whose file is gone"}},
		"the name, of two": {func(t *testing.T, f Folder[note], name string) {
			writeFile(t, f.Path("2026-02-03-8"), readFile(t, f.Path(name)))
			removeFile(t, filepath.Join(f.dir, currentFile))
		}, []string{"any of 2026-01-02-7, 2026-02-03-8"}},
		"the name, into a folder": {func(t *testing.T, f Folder[note], _ string) {
			removeFile(t, filepath.Join(f.dir, currentFile))
			os.Mkdir(filepath.Join(f.dir, currentFile), 0o700)
		}, []string{"notes/current cannot be read"}},
		"half the file": {func(t *testing.T, f Folder[note], name string) {
			data := readFile(t, f.Path(name))
			writeFile(t, f.Path(name), data[:len(data)/2])
		}, []string{"note 2026-01-02-7", "is damaged"}},
	} {
		f := notesIn(t.TempDir())
		c.lose(t, f, mustImport(t, f, time.UnixMilli(7)))
		s := newWatchedService(t, f)
		problem := s.pollOnce(t)
		for _, word := range append(c.words, "write it again") {
			if !strings.Contains(problem, word) {
				t.Errorf("%s: %q does not say %q", name, problem, word)
			}
		}
		if s.current != nil {
			t.Errorf("%s: it is served", name)
		}
		mustImport(t, f, time.UnixMilli(9))
		if problem := s.pollOnce(t); problem != "" || s.current == nil {
			t.Errorf("%s: an import does not mend it: %q", name, problem)
		}
	}
}

func TestAServedReleaseIsKeptWhenItsFileIsRemoved(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	s := newWatchedService(t, f)
	s.pollOnce(t)
	data := readFile(t, f.Path(name))
	removeFile(t, f.Path(name))
	if problem := s.pollOnce(t); s.current == nil || !strings.Contains(problem, "whose file is gone") {
		t.Errorf("served %v, problem %q", s.current != nil, problem)
	}
	writeFile(t, f.Path(name), data)
	if problem := s.pollOnce(t); s.current == nil || problem != "" || s.checks.Load() != 2 {
		t.Errorf("put back: served %v, problem %q after %d checks", s.current != nil, problem, s.checks.Load())
	}
}

func TestATruncatedFileIsWithdrawnAndServedAgainOnceRestored(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	s := newWatchedService(t, f)
	s.pollOnce(t)
	data := readFile(t, f.Path(name))
	if err := os.Truncate(f.Path(name), 500); err != nil {
		t.Fatal(err)
	}
	if problem := s.pollOnce(t); s.current != nil || s.withdrawnBecause == nil || !strings.Contains(problem, "damaged") {
		t.Errorf("withdrawn with %v, problem %q", s.withdrawnBecause, problem)
	}
	writeFile(t, f.Path(name), data)
	if problem := s.pollOnce(t); s.current == nil || problem != "" {
		t.Errorf("put back: served %v, problem %q", s.current != nil, problem)
	}
}

// flipBit flips a bit in the middle of a file and keeps its size and time.
func flipBit(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at, b := info.Size()/2, make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 8
	if _, err := file.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsFoundWhileServingAndRepairedByAnImport(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	changes := make(chan error, 8) // nil: a release is served
	var last *note
	end := func() {
		if last != nil {
			last.Close()
		}
		last = nil
	}
	watcher := NewWatcher(f, slog.New(slog.NewTextHandler(t.Output(), nil)),
		func(_ context.Context, n note) { end(); last = &n; changes <- nil },
		func(why error) { end(); changes <- why })
	watcher.verifyInterval = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- watcher.Run(ctx) }()
	next := func() error {
		select {
		case change := <-changes:
			return change
		case <-time.After(time.Minute):
			t.Fatal("nothing happens")
			return nil
		}
	}
	if err := next(); err != nil {
		t.Fatal(err)
	}
	flipBit(t, f.Path(name))
	if why := next(); !errors.Is(why, errDamagedNote) {
		t.Errorf("withdrawn with %v, want %v", why, errDamagedNote)
	}
	mustImport(t, f, time.UnixMilli(9))
	if err := next(); err != nil {
		t.Errorf("the import is not served: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	end()
}

func TestAFileIsVerifiedOnceAndAgainAfterAChange(t *testing.T) {
	t.Parallel()
	f := notesIn(t.TempDir())
	name := mustImport(t, f, time.UnixMilli(7))
	starts := func() (checks int64, problem string) {
		s := newWatchedService(t, f)
		problem = s.pollOnce(t)
		return s.checks.Load(), problem
	}
	for start, want := range []int64{1, 0, 0} {
		if checks, problem := starts(); checks != want || problem != "" {
			t.Errorf("start %d: %d checks, want %d: %s", start, checks, want, problem)
		}
	}
	if err := os.Chtimes(f.Path(name), time.Time{}, time.UnixMilli(5)); err != nil { // somebody wrote to it
		t.Fatal(err)
	}
	if checks, problem := starts(); checks != 1 || problem != "" {
		t.Errorf("changed: %d checks, want 1: %s", checks, problem)
	}
	flipBit(t, f.Path(name))
	s := newWatchedService(t, f)
	if problem := s.pollOnce(t); s.current != nil || !strings.Contains(problem, "damaged") {
		t.Errorf("damaged: served %v, %q", s.current != nil, problem)
	}
}
