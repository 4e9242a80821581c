package vintages

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/hold"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/deadlinetest"
)

const rows = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.5;44.5\n"

// add imports rows of a file into a folder.
func add(t *testing.T, f Folder, now time.Time) string {
	t.Helper()
	name, err := tryAdd(t, f, now, false)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func tryAdd(t *testing.T, f Folder, now time.Time, fresh bool) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := OpenSources(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	defer sources.Close()
	name, _, err := Import{Folder: f, Sources: sources, Millesime: sources.Millesime(), Fresh: fresh, Now: now}.Run(t.Context())
	return name, err
}

// following runs a follower until the test ends and returns what it was handed.
func following(t *testing.T, f Folder) <-chan *vintage.Vintage {
	t.Helper()
	handed := make(chan *vintage.Vintage, 8)
	ctx, cancel := context.WithCancel(context.Background())
	follower := NewFollower(f, slog.New(slog.NewTextHandler(t.Output(), nil)), func(_ context.Context, v *vintage.Vintage) { handed <- v }, func(error) {})
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(handed)
		for v := range handed {
			v.Close()
		}
	})
	for deadline := time.Now().Add(deadlinetest.Limit(deadlinetest.Hang)); ; time.Sleep(time.Millisecond) {
		if _, running, err := f.Served(); err != nil || running {
			return handed
		}
		if time.Now().After(deadline) {
			t.Fatal("the follower does not follow")
		}
	}
}

func TestMillesimeIsTheDateInAName(t *testing.T) {
	t.Parallel()
	if got := add(t, In(t.TempDir()), time.UnixMilli(7)); got != "2026-01-02-7" {
		t.Errorf("got %s", got)
	}
}

func TestImportsAreFollowedAndAwaited(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	handed := following(t, f)
	name := add(t, f, time.UnixMilli(1))
	if running, err := f.Await(t.Context(), name); err != nil || !running {
		t.Fatalf("awaited: %v, %v", running, err)
	}
	v := <-handed
	defer v.Close()
	if v.Millesime != "2026-01-02" {
		t.Errorf("handed %s", v.Millesime)
	}
}

func TestAVintageThatCannotBeOpenedIsRefusedByName(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	handed := following(t, f)
	bad, _, err := f.Add(t.Context(), time.UnixMilli(1), func(path, _ string) (vintage.Summary, error) {
		return vintage.Summary{}, os.WriteFile(path, []byte(strings.Repeat("x", 100)), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	var refused *RefusedError
	if _, err := f.Await(t.Context(), bad); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "not a vintage") {
		t.Errorf("got %v, want a *RefusedError", err)
	}
	if len(handed) > 0 {
		t.Error("it was handed on all the same")
	}
}

func TestImportsTakeTurns(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	_, _, err := f.Add(t.Context(), time.UnixMilli(1), func(string, string) (vintage.Summary, error) {
		_, _, err := f.Add(t.Context(), time.UnixMilli(2), nil)
		return vintage.Summary{}, err
	})
	var held *hold.HeldError
	if !errors.As(err, &held) {
		t.Errorf("got %v, want a *hold.HeldError", err)
	}
}

func TestLeavingsOfKilledImportsAreRemoved(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	if err := f.Clean(time.UnixMilli(1)); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	name := add(t, f, time.UnixMilli(1))
	for _, left := range []string{".draft", "older" + extension} {
		if err := os.WriteFile(filepath.Join(f.dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.dir, ".vintage-123"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Clean(time.UnixMilli(2)); err != nil {
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
	if want := []string{name + extension, pointer, "lock"}; !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

func TestTwoServicesOnOneFolderBothFollow(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	first, second := following(t, f), following(t, f)
	add(t, f, time.UnixMilli(1))
	for _, handed := range []<-chan *vintage.Vintage{first, second} {
		select {
		case v := <-handed:
			v.Close()
		case <-time.After(deadlinetest.Limit(deadlinetest.Hang)):
			t.Fatal("one does not follow")
		}
	}
}
