package locations

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

// tapped is a log that something happens on before each append.
type tapped struct {
	eventstore.Store
	before func(stream string) error // an error: the append is not made
	after  func(stream string) error // an error: what is heard of it
}

func (s *tapped) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if s.before != nil {
		if err := s.before(stream); err != nil {
			return eventstore.Committed{}, err
		}
	}
	done, err := s.Store.Append(ctx, stream, expected, events)
	if s.after != nil && err == nil {
		err = s.after(stream)
	}
	return done, err
}

// syncs are the staging streams of a log, in the order in which they began.
func (s *stage) syncs(t testing.TB) (names []string) {
	t.Helper()
	for signal, err := range s.store.ReadAll(t.Context(), eventstore.Mark{}, eventstore.Filter{"sync"}) {
		if err != nil {
			t.Fatal(err)
		}
		if signal.Kind == eventstore.Event && signal.Event.Revision == 0 {
			names = append(names, signal.Event.Stream)
		}
	}
	return names
}

func TestLargeChangeIsStagedInEventsAndAppendsThatFit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	appends := 0
	l := s.desk(&tapped{Store: s.store, before: func(stream string) error {
		if strings.HasPrefix(stream, "sync-") {
			appends++
		}
		return nil
	}})
	opened(t, l, "magasins")
	rows := many(2_000)
	huge := []byte(`{"texte":"` + strings.Repeat("<é>", 16<<10) + `"}`)
	for i := 0; i < len(rows); i += 400 {
		rows[i].Content.Properties = huge // more than an event of several rows holds
	}
	o := written(t, l, "magasins", Batch{Rows: rows, Whole: true})
	if o.Created != len(rows) || o.After != len(rows) {
		t.Errorf("got %+v", o.SitesWritten)
	}
	total, over := 0, 0
	for r, err := range s.store.ReadStream(t.Context(), s.syncs(t)[0], 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		total += len(r.Data)
		if len(r.Data) > maxData {
			over++
			e, err := event.Decode(r.Type, r.Data)
			if rows := rowsOf(e); err != nil || len(rows) != 1 {
				t.Errorf("an event of %d bytes holds %d rows", len(r.Data), len(rows))
			}
		}
	}
	if over != 5 || appends > total/eventstore.MaxAppend*5/4+2 {
		t.Errorf("got %d events above the limit, want 5; %d appends for %d bytes", over, appends, total)
	}
	for _, i := range []int{0, 1, 1_000, 1_600, 1_999} {
		got, err := s.desk(s.store).show(t.Context(), "a", "magasins", rows[i].ExternalID)
		if err != nil || site.DigestOf(site.Stored{Content: got.Content}) != site.DigestOf(site.Stored{Content: rows[i].Content}) {
			t.Errorf("row %d: got %+v, %v", i, got, err)
		}
	}
}

func TestSmallChangeIsOneEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	written(t, l, "magasins", Batch{Rows: many(60), Whole: true})
	written(t, l, "magasins", Batch{Rows: many(60), Whole: true})
	if got := s.events(t, "locations-a"); len(got) != 2 || got[1] != changedType || len(s.syncs(t)) != 0 {
		t.Errorf("got %v and %d syncs, want one change in one event", got, len(s.syncs(t)))
	}
}

func TestSyncThatIsCutNeverHappened(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opened(t, s.desk(s.store), "magasins")
	cut := errors.New("the power is gone")
	for appends := 0; ; appends++ {
		left := appends
		l := s.desk(&tapped{Store: s.store, before: func(string) error {
			if left--; left < 0 {
				return cut
			}
			return nil
		}})
		_, _, err := l.Write(t.Context(), "a", shop, "magasins", Batch{Rows: many(2_500), Whole: true})
		f, seen := s.desk(s.store).Figures(t.Context(), "a")
		if seen != nil {
			t.Fatal(seen)
		}
		if err == nil {
			if f.Sites != 2_500 || appends < 3 {
				t.Errorf("got %d sites after %d appends, want 2500 after some", f.Sites, appends)
			}
			break
		}
		if !errors.Is(err, cut) || f.Sites != 0 {
			t.Fatalf("cut after %d appends: got %v and %d sites, want none", appends, err, f.Sites)
		}
	}
	if got := s.events(t, "locations-a"); len(got) != 2 {
		t.Errorf("got %v, want the opening and one commit", got)
	}
}

func TestRowsAreStagedAgainOnlyIfTheirDifferenceChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		other    func(t *testing.T, l *Locations)
		syncs    int
		unstaged int // rows that need no writing any more
	}{
		{"another site", func(t *testing.T, l *Locations) { put(t, l, at("other", "A", 44)) }, 1, 0},
		{"one of the sites", func(t *testing.T, l *Locations) { put(t, l, many(2)[1]) }, 2, 1},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			opened(t, s.desk(s.store), "magasins")
			raced := false
			l := s.desk(&tapped{Store: s.store, before: func(stream string) error {
				if stream == "locations-a" && !raced {
					raced = true
					c.other(t, s.desk(s.store))
				}
				return nil
			}})
			o := written(t, l, "magasins", Batch{Rows: many(1_000)})
			if o.Created != 1_000-c.unstaged || o.Unchanged != c.unstaged || o.Active != 1 {
				t.Errorf("got %+v", o.SitesWritten)
			}
			if got := len(s.syncs(t)); got != c.syncs {
				t.Errorf("got %d stagings, want %d", got, c.syncs)
			}
			if f, err := s.desk(s.store).Figures(t.Context(), "a"); err != nil || f.Sites != 1_001-c.unstaged {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func put(t testing.TB, l *Locations, r Row) {
	t.Helper()
	if _, _, _, err := l.Put(t.Context(), "a", shop, "magasins", r); err != nil {
		t.Error(err)
	}
}

func TestArchivingManySitesIsOneAppend(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	written(t, l, "magasins", Batch{Rows: many(2_000), Whole: true})
	commits := 0
	l = s.desk(&tapped{Store: s.store, before: func(stream string) error {
		if stream == "locations-a" {
			commits++
		}
		return nil
	}})
	for range 2 {
		r, _, err := l.Archive(t.Context(), "a", shop, "magasins")
		if err != nil || r.Archived.IsZero() || r.Active != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	got := s.events(t, "locations-a")
	if commits != 1 || len(got) != 4 || got[2] != committedType || got[3] != (event.ReferentialArchived{}).EventType() {
		t.Errorf("got %v in %d appends", got, commits)
	}
	if f, err := s.desk(s.store).Figures(t.Context(), "a"); err != nil || f != (Figures{}) {
		t.Errorf("got %+v, %v, want none", f, err)
	}
	if _, _, err := l.Write(t.Context(), "a", shop, "magasins", Batch{}); !errors.Is(err, ErrArchived) {
		t.Errorf("got %v, want ErrArchived", err)
	}
}
