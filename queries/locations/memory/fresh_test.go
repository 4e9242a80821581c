package memory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

func named(account, externalID, name string) table.Site {
	return searchtest.NewSiteRow(account, "shops", externalID, locations.StoredSite{Content: locations.Content{Name: name}})
}

// names are what an account's sites are called.
func (s *fixture) names(t testing.TB, account string) (all []string) {
	t.Helper()
	for _, h := range s.searchPage(t, search.Query{Account: account, Status: search.All, Limit: 100_000}).Hits {
		all = append(all, h.Site.Name)
	}
	return all
}

func TestASearchWaitsForWhatIsKnownToBeWritten(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := open(t, address, memory.DefaultMaxSites)
		s.put(t, named("a", "x", "Avant"))
		s.names(t, "a")
		position := s.notifyChange("a")
		row := named("a", "x", "Après")
		row.Position = position
		asked := make(chan []string)
		go func() { asked <- s.names(t, "a") }()
		select {
		case early := <-asked:
			t.Errorf("got %v before the change was in the read model", early)
		case <-time.After(30 * time.Millisecond): // it may be slow to begin: then the test shows less
		}
		s.write(t, position, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{row}) })
		if got := <-asked; !slices.Equal(got, []string{"Après"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestASearchGivesUpOnAReadModelThatStandsStill(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Avant"), named("b", "x", "Ailleurs"))
	s.names(t, "a")
	s.notifyChange("a")
	began := time.Now()
	answers := make(chan error)
	for range 4 { // they do not wait one after the other
		go func() {
			_, err := s.engine.Search(t.Context(), search.Query{Account: "a", Limit: 1})
			answers <- err
		}()
	}
	for range 4 {
		if err := <-answers; !errors.Is(err, search.ErrStaleIndex) {
			t.Errorf("got %v, want %v", err, search.ErrStaleIndex)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := s.names(t, "b"); len(got) != 1 {
		t.Errorf("another account has %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.engine.Search(ctx, search.Query{Account: "a", Limit: 1}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, search.ErrStaleIndex) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestAnEventWithoutSitesLeavesThemAsTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Site"))
	for range 3 {
		s.write(t, s.notifyChange("a"), func(*sqldb.Tx) error { return nil })
		if got := s.names(t, "a"); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	}
}

func TestSitesOfAnErasedAccountAreGone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := open(t, address, memory.DefaultMaxSites)
		s.put(t, named("a", "x", "Site"), named("b", "x", "Reste"))
		s.names(t, "a")
		s.write(t, s.notifyChange("a"), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), "delete from site where account = ?", "a")
			return err
		})
		if got := s.names(t, "a"); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		if got := s.names(t, "b"); len(got) != 1 {
			t.Errorf("another account has %v", got)
		}
		s.put(t, named("a", "y", "Neuf"))
		if got := s.names(t, "a"); !slices.Equal(got, []string{"Neuf"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestASiteWhoseContentCannotBeReadAnyMoreHasNone(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	row := named("a", "x", "Site")
	row.Content = ""
	s.put(t, row, named("a", "y", "Reste"))
	if got := s.names(t, "a"); !slices.Equal(got, []string{"Reste", ""}) {
		t.Errorf("got %q", got)
	}
}

func TestACopyThatWasFilledAnewIsReadWhole(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Un"), named("a", "y", "Deux"))
	s.names(t, "a")
	s.build(t)
	s.put(t, named("a", "y", "Deux"), named("a", "z", "Trois"))
	if got := s.names(t, "a"); !slices.Equal(got, []string{"Deux", "Trois"}) {
		t.Errorf("got %v, want what the copy has that serves", got)
	}
}

func TestWhatIsNotAskedForLongestIsLetGoOf(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 25)
	for i := range 5 {
		for j := range 9 {
			s.put(t, named(account(i), fmt.Sprint(j), "Site"))
		}
	}
	for range 3 {
		for i := range 5 {
			if got := s.names(t, account(i)); len(got) != 9 {
				t.Errorf("%s has %d sites", account(i), len(got))
			}
		}
	}
	if accounts, sites := s.engine.CacheSize(); accounts != 2 || sites != 18 {
		t.Errorf("%d accounts with %d sites are held", accounts, sites)
	}
	for i := range 100 { // accounts without sites take room too
		s.names(t, fmt.Sprint("empty", i))
	}
	if accounts, sites := s.engine.CacheSize(); accounts > 25 || sites != 0 {
		t.Errorf("%d accounts with %d sites are held", accounts, sites)
	}
}

func TestWhatNobodyAsksForIsLetGoOf(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Site"), named("b", "x", "Site"))
	s.names(t, "a")
	s.wait(59 * time.Minute)
	s.names(t, "b")
	if accounts, _ := s.engine.CacheSize(); accounts != 2 {
		t.Errorf("%d accounts are held, want 2", accounts)
	}
	s.wait(2 * time.Minute)
	s.names(t, "b")
	if accounts, sites := s.engine.CacheSize(); accounts != 1 || sites != 1 {
		t.Errorf("%d accounts with %d sites are held, want one", accounts, sites)
	}
}

func TestAnAccountLargerThanAllRoomIsSearched(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 3)
	for j := range 9 {
		s.put(t, named("a", fmt.Sprint(j), "Site"))
	}
	for range 3 {
		if got := s.names(t, "a"); len(got) != 9 {
			t.Errorf("got %d sites", len(got))
		}
	}
}

func TestWhatIsHeldIsSearchedWhileTheTablesAreAway(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Site"))
	s.names(t, "a")
	if err := s.shelf.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.names(t, "a"); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestTheTablesAreLookedAtNowAndThenAlthoughNobodyToldOfAChange(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), memory.DefaultMaxSites)
	s.put(t, named("a", "x", "Avant"), named("b", "x", "Site"))
	s.names(t, "a")
	s.names(t, "b")
	quiet := named("a", "x", "Après")
	quiet.Position = 100
	s.write(t, 100, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), "delete from site where account = ?", "b")
		return errors.Join(err, sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{quiet}))
	})
	s.wait(time.Minute)
	if a, b := s.names(t, "a"), s.names(t, "b"); !slices.Equal(a, []string{"Après"}) || len(b) != 0 {
		t.Errorf("got %v and %v", a, b)
	}
}

// TestReadersAndWritersAtOnce has every writer look for what it wrote, while sites of all accounts are let go of and loaded again.
func TestReadersAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 60)
	rounds := 40
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		rounds = 1000
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("Site %d", round)
				row := named(account(i), fmt.Sprint(round%25), name)
				s.put(t, row)
				found := s.searchPage(t, search.Query{Account: account(i), Text: name, Sort: search.ByName, Limit: 100}).Hits
				if !slices.ContainsFunc(found, func(h search.Hit) bool { return h.Site.Name == name }) {
					t.Errorf("%s is not found", name)
				}
			}
		})
		all.Go(func() {
			for round := range rounds * 3 {
				if got := s.names(t, account((i+round)%4)); len(got) > 25 || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(search.FoldName(a), search.FoldName(b)) }) {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	all.Wait()
}
