package locations

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
)

// keepSnapshots makes an instance keep snapshots in a folder.
func keepSnapshots(l *Locations, folder string) *Locations {
	l.KeepSnapshots(folder, commands.DefaultSnapshotThreshold, osfile.Disk{}, slog.New(slog.DiscardHandler))
	return l
}

// countingStore counts the events that are read from a log.
type countingStore struct {
	eventstore.Store
	events int
}

func (s *countingStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for r, err := range s.Store.ReadStream(ctx, stream, from, dir) {
			if s.events++; !yield(r, err) {
				return
			}
		}
	}
}

// newFixtureWithSnapshot returns a log with an account that has a snapshot, and the snapshot's file.
func newFixtureWithSnapshot(t *testing.T) (s *fixture, folder, file string) {
	t.Helper()
	s, folder = newFixture(t), t.TempDir()
	l := keepSnapshots(s.newInstance(s.store), folder)
	mustOpen(t, l, "magasins")
	mustOpen(t, l, "depots")
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(3_000), IdempotencyKey: "k", RequestDigest: []byte("1")})
	if _, _, err := l.ArchiveReferential(t.Context(), "a", shopMeta, "depots"); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "locations-a.fold")
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	return s, folder, file
}

// loadState returns the account's state on a new instance, and how many events that read.
func loadState(t *testing.T, s *fixture, store eventstore.Store, folder string) (state *State, events int) {
	t.Helper()
	log := &countingStore{Store: store}
	l := s.newInstance(log)
	if folder != "" {
		keepSnapshots(l, folder)
	}
	if err := l.handler.View(t.Context(), "a", func(now *State) { state = now }); err != nil {
		t.Fatal(err)
	}
	return state, log.events
}

func TestStateIsReadFromItsSnapshot(t *testing.T) {
	t.Parallel()
	s, folder, _ := newFixtureWithSnapshot(t)
	mustPut(t, s.newInstance(s.store), rowAt("new", "N", 44))
	want, all := loadState(t, s, s.store, "")
	got, some := loadState(t, s, s.store, folder)
	if some > 4 || all < 20 {
		t.Errorf("read %d events, and %d without the file", some, all)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the fold in the file is another")
	}
}

func TestUnusableSnapshotIsIgnoredAndReplaced(t *testing.T) {
	t.Parallel()
	for rule, spoil := range map[string]func([]byte) []byte{
		"damaged":         func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":             func(b []byte) []byte { return b[:len(b)/3] },
		"empty":           func([]byte) []byte { return nil },
		"of another form": func(b []byte) []byte { return bytes.Replace(b, []byte(snapshotFormat), []byte("places.0"), 1) },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s, folder, file := newFixtureWithSnapshot(t)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, spoil(bytes.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			want, _ := loadState(t, s, s.store, "")
			if got, _ := loadState(t, s, s.store, folder); !reflect.DeepEqual(got, want) {
				t.Error("the fold is another")
			}
			if _, events := loadState(t, s, s.store, folder); events > 4 {
				t.Errorf("the file was not replaced: %d events read", events)
			}
		})
	}
}

func TestSnapshotOfAnotherLogIsIgnored(t *testing.T) {
	t.Parallel()
	_, folder, _ := newFixtureWithSnapshot(t)
	other := newFixture(t)
	mustOpen(t, other.newInstance(other.store), "magasins")
	for i := range 10 {
		mustPut(t, other.newInstance(other.store), rowAt("x", "X", float64(i)))
	}
	want, _ := loadState(t, other, other.store, "")
	if got, _ := loadState(t, other, other.store, folder); !reflect.DeepEqual(got, want) || got.totalSites != 1 {
		t.Error("the fold is of another log")
	}
}

func TestSnapshotFolderThatCannotBeWrittenIsNoError(t *testing.T) {
	t.Parallel()
	s, folder := newFixture(t), filepath.Join(t.TempDir(), "folds")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file is in the folder's place
		t.Fatal(err)
	}
	l := keepSnapshots(s.newInstance(s.store), folder)
	mustOpen(t, l, "magasins")
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(2_000)})
	if f, err := l.CountLocations(t.Context(), "a"); err != nil || f.Sites != 2_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestSnapshotRoundTripsOrIsRefused(t *testing.T) {
	t.Parallel()
	s := given(createdSites(3), sitesChanged(deactivatedRow("s01", 2)), event.ReferentialOpened{Code: "o"}, event.ReferentialArchived{Code: "o"})
	for n, key := range []string{"k", "l", "k"} {
		w := event.SiteWriteSummary{Referential: "r", IdempotencyKeyHash: key, RequestHash: "q", Action: "sync"}
		Evolve(s, commands.Record{Event: event.UnchangedWriteRecorded{SiteWriteSummary: w}, At: now.Add(time.Duration(n)), Revision: eventstore.Revision(n)})
	}
	text := marshalSnapshot(s)
	got, err := unmarshalSnapshot(text)
	if err != nil || !reflect.DeepEqual(&got, s) {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := range text {
		if _, err := unmarshalSnapshot(text[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a state", n, len(text))
		}
	}
	if _, err := unmarshalSnapshot(append(text, 0)); err == nil {
		t.Error("a state with more behind it is one")
	}
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	f.Add(marshalSnapshot(given(createdSites(2))))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := unmarshalSnapshot(text)
		if err != nil {
			return
		}
		again, err := unmarshalSnapshot(marshalSnapshot(&s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("got %+v, %v, want %+v", again, err, s)
		}
	})
}
