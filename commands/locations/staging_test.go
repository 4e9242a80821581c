package locations

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// hookedStore calls hooks before and after each append to a log.
type hookedStore struct {
	eventstore.Store
	before func(stream string) error // its error is returned, and the append is not made
	after  func(stream string) error // its error is returned in place of the reply
}

func (s *hookedStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if s.before != nil {
		if err := s.before(stream); err != nil {
			return eventstore.AppendResult{}, err
		}
	}
	done, err := s.Store.Append(ctx, stream, expected, events)
	if s.after != nil && err == nil {
		err = s.after(stream)
	}
	return done, err
}

// stagingStreams returns the staging streams of a log, in the order in which they began.
func (s *fixture) stagingStreams(t testing.TB) (names []string) {
	t.Helper()
	for signal, err := range s.store.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"sync"}) {
		if err != nil {
			t.Fatal(err)
		}
		if signal.Kind == eventstore.EventAppeared && signal.Event.Revision == 0 {
			names = append(names, signal.Event.Stream)
		}
	}
	return names
}

func TestLargeChangeIsStagedInEventsAndAppendsThatFit(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	appends := 0
	l := s.newInstance(&hookedStore{Store: s.store, before: func(stream string) error {
		if strings.HasPrefix(stream, "sync-") {
			appends++
		}
		return nil
	}})
	mustOpen(t, l, "magasins")
	rows := manyRows(2_000)
	huge := []byte(`{"texte":"` + strings.Repeat("<é>", 16<<10) + `"}`)
	for i := 0; i < len(rows); i += 400 {
		rows[i].Content.Properties = huge // more than an event of several rows may have
	}
	o := mustWrite(t, l, "magasins", Batch{Rows: rows, IsSync: true})
	if o.Created != len(rows) || o.ActiveAfter != len(rows) {
		t.Errorf("got %+v", o.SiteWriteSummary)
	}
	total, over := 0, 0
	for r, err := range s.store.ReadStream(t.Context(), s.stagingStreams(t)[0], 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		total += len(r.Data)
		if len(r.Data) > DefaultEventLimits.Event {
			over++
			e, err := event.Decode(r.Type, r.Data)
			if rows := rowsOf(e); err != nil || len(rows) != 1 {
				t.Errorf("an event of %d bytes holds %d rows", len(r.Data), len(rows))
			}
		}
	}
	if over != 5 || appends > total/eventstore.MaxAppendBytes*5/4+2 {
		t.Errorf("got %d events above the limit, want 5; %d appends for %d bytes", over, appends, total)
	}
	for _, i := range []int{0, 1, 1_000, 1_600, 1_999} {
		got, err := s.newInstance(s.store).readSite(t.Context(), "a", "magasins", rows[i].ExternalID)
		if err != nil || locations.DigestOf(locations.StoredSite{Content: got.Content}) != locations.DigestOf(locations.StoredSite{Content: rows[i].Content}) {
			t.Errorf("row %d: got %+v, %v", i, got, err)
		}
	}
}

func TestSmallChangeIsOneEvent(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(60), IsSync: true})
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(60), IsSync: true})
	if got := s.events(t, "locations-a"); len(got) != 2 || got[1] != changedType || len(s.stagingStreams(t)) != 0 {
		t.Errorf("got %v and %d syncs, want one change in one event", got, len(s.stagingStreams(t)))
	}
}

func TestInterruptedSyncChangesNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	mustOpen(t, s.newInstance(s.store), "magasins")
	cut := errors.New("the power is gone")
	for appends := 0; ; appends++ {
		left := appends
		l := s.newInstance(&hookedStore{Store: s.store, before: func(string) error {
			if left--; left < 0 {
				return cut
			}
			return nil
		}})
		_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: manyRows(2_500), IsSync: true})
		f, seen := s.newInstance(s.store).CountLocations(t.Context(), "a")
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
		unstaged int // rows that the other write made unnecessary
	}{
		{"another site", func(t *testing.T, l *Locations) { mustPut(t, l, rowAt("other", "A", 44)) }, 1, 0},
		{"one of the sites", func(t *testing.T, l *Locations) { mustPut(t, l, manyRows(2)[1]) }, 2, 1},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			mustOpen(t, s.newInstance(s.store), "magasins")
			raced := false
			l := s.newInstance(&hookedStore{Store: s.store, before: func(stream string) error {
				if stream == "locations-a" && !raced {
					raced = true
					c.other(t, s.newInstance(s.store))
				}
				return nil
			}})
			o := mustWrite(t, l, "magasins", Batch{Rows: manyRows(1_000)})
			if o.Created != 1_000-c.unstaged || o.Unchanged != c.unstaged || o.AccountActive != 1 {
				t.Errorf("got %+v", o.SiteWriteSummary)
			}
			if got := len(s.stagingStreams(t)); got != c.syncs {
				t.Errorf("got %d stagings, want %d", got, c.syncs)
			}
			if f, err := s.newInstance(s.store).CountLocations(t.Context(), "a"); err != nil || f.Sites != 1_001-c.unstaged {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func mustPut(t testing.TB, l *Locations, r Row) {
	t.Helper()
	if _, _, _, err := l.PutSite(t.Context(), "a", shopMeta, "magasins", r); err != nil {
		t.Error(err)
	}
}

func TestArchivingManySitesIsOneAppend(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(2_000), IsSync: true})
	commits := 0
	l = s.newInstance(&hookedStore{Store: s.store, before: func(stream string) error {
		if stream == "locations-a" {
			commits++
		}
		return nil
	}})
	for range 2 {
		r, _, err := l.ArchiveReferential(t.Context(), "a", shopMeta, "magasins")
		if err != nil || r.Archived.IsZero() || r.Active != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	got := s.events(t, "locations-a")
	if commits != 1 || len(got) != 4 || got[2] != committedType || got[3] != (event.ReferentialArchived{}).EventType() {
		t.Errorf("got %v in %d appends", got, commits)
	}
	if f, err := s.newInstance(s.store).CountLocations(t.Context(), "a"); err != nil || f != (Counts{}) {
		t.Errorf("got %+v, %v, want none", f, err)
	}
	if _, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{}); !errors.Is(err, refusal.ReferentialArchived) {
		t.Errorf("got %v, want refusal.ReferentialArchived", err)
	}
}
