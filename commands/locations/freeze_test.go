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
	"lieudit/schemas/event"
)

// kept has an instance keep its folds in a folder.
func kept(l *Locations, folder string) *Locations {
	l.Keep(folder, slog.New(slog.DiscardHandler))
	return l
}

// counted is a log that counts the events that are read of it.
type counted struct {
	eventstore.Store
	events int
}

func (s *counted) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		for r, err := range s.Store.ReadStream(ctx, stream, from, dir) {
			if s.events++; !yield(r, err) {
				return
			}
		}
	}
}

// longAgo is an account with a history that is worth a file, and the file.
func longAgo(t *testing.T) (s *stage, folder, file string) {
	t.Helper()
	s, folder = newStage(t), t.TempDir()
	l := kept(s.desk(s.store), folder)
	opened(t, l, "magasins")
	opened(t, l, "depots")
	written(t, l, "magasins", Batch{Rows: many(3_000), Key: "k", Request: []byte("1")})
	if _, _, err := l.Archive(t.Context(), "a", shop, "depots"); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "locations-a.fold")
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	return s, folder, file
}

// look is what an instance makes of the account, and how many events it read.
func look(t *testing.T, s *stage, store eventstore.Store, folder string) (state *State, events int) {
	t.Helper()
	log := &counted{Store: store}
	l := s.desk(log)
	if folder != "" {
		kept(l, folder)
	}
	if err := l.desk.View(t.Context(), "a", func(now *State) { state = now }); err != nil {
		t.Fatal(err)
	}
	return state, log.events
}

func TestFoldIsTakenFromItsFile(t *testing.T) {
	t.Parallel()
	s, folder, _ := longAgo(t)
	put(t, s.desk(s.store), at("new", "N", 44))
	want, all := look(t, s, s.store, "")
	got, some := look(t, s, s.store, folder)
	if some > 4 || all < 20 {
		t.Errorf("read %d events, and %d without the file", some, all)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the fold in the file is another")
	}
}

func TestFileThatIsOfNoUseIsIgnoredAndReplaced(t *testing.T) {
	t.Parallel()
	for rule, spoil := range map[string]func([]byte) []byte{
		"damaged":         func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":             func(b []byte) []byte { return b[:len(b)/3] },
		"empty":           func([]byte) []byte { return nil },
		"of another form": func(b []byte) []byte { return bytes.Replace(b, []byte(freezing), []byte("places.0"), 1) },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s, folder, file := longAgo(t)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, spoil(bytes.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			want, _ := look(t, s, s.store, "")
			if got, _ := look(t, s, s.store, folder); !reflect.DeepEqual(got, want) {
				t.Error("the fold is another")
			}
			if _, events := look(t, s, s.store, folder); events > 4 {
				t.Errorf("the file was not replaced: %d events read", events)
			}
		})
	}
}

func TestFileOfAnotherLogIsIgnored(t *testing.T) {
	t.Parallel()
	_, folder, _ := longAgo(t)
	other := newStage(t)
	opened(t, other.desk(other.store), "magasins")
	for i := range 10 {
		put(t, other.desk(other.store), at("x", "X", float64(i)))
	}
	want, _ := look(t, other, other.store, "")
	if got, _ := look(t, other, other.store, folder); !reflect.DeepEqual(got, want) || got.held != 1 {
		t.Error("the fold is of another log")
	}
}

func TestFolderThatCannotBeWrittenIsNotMissed(t *testing.T) {
	t.Parallel()
	s, folder := newStage(t), filepath.Join(t.TempDir(), "folds")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	l := kept(s.desk(s.store), folder)
	opened(t, l, "magasins")
	written(t, l, "magasins", Batch{Rows: many(2_000)})
	if f, err := l.Figures(t.Context(), "a"); err != nil || f.Sites != 2_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestThawIsWhatWasFrozenOrNothing(t *testing.T) {
	t.Parallel()
	s := given(some(3), had(deactivated("s01", 2)), event.ReferentialOpened{Code: "o"}, event.ReferentialArchived{Code: "o"})
	for n, key := range []string{"k", "l", "k"} {
		w := event.SitesWritten{Referential: "r", Key: key, Request: "q", Action: "sync"}
		Evolve(s, commands.Fact{Event: event.RequestKept{SitesWritten: w}, At: now.Add(time.Duration(n)), Revision: eventstore.Revision(n)})
	}
	text := freeze(s)
	got, err := thaw(text)
	if err != nil || !reflect.DeepEqual(&got, s) {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := range text {
		if _, err := thaw(text[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a state", n, len(text))
		}
	}
	if _, err := thaw(append(text, 0)); err == nil {
		t.Error("a state with more behind it is one")
	}
}

func FuzzThaw(f *testing.F) {
	f.Add(freeze(given(some(2))))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := thaw(text)
		if err != nil {
			return
		}
		again, err := thaw(freeze(&s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("got %+v, %v, want %+v", again, err, s)
		}
	})
}
