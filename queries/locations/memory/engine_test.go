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
	"lieudit/queries/worker/workertest"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// fixture is a read model that the test itself writes, and an engine on it.
type fixture struct {
	engine     *memory.Engine
	registry   *sqldb.Registry
	generation sqldb.Generation // the one that serves

	writing     sync.Mutex // held by one writer at a time, as events are in one order in the log
	mu          sync.Mutex
	position    int64
	lastChanges map[string]int64 // change of each account
	clockOffset time.Duration
}

func openFixture(t testing.TB, address string, maxSites int) *fixture {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	s := &fixture{registry: registry, lastChanges: map[string]int64{}}
	s.engine = memory.New(registry, s.lastChange, s.now, maxSites)
	s.buildGeneration(t)
	return s
}

// buildGeneration lets an empty generation serve.
func (s *fixture) buildGeneration(t testing.TB) {
	t.Helper()
	var err error
	if s.generation, err = s.registry.BuildGeneration(t.Context(), table.LocationsModel, false); err != nil {
		t.Fatal(err)
	}
	if err := s.registry.PromoteGeneration(t.Context(), table.LocationsModel, s.generation); err != nil {
		t.Fatal(err)
	}
}

func (s *fixture) lastChange(account string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.lastChanges[account])
}

// now is the engine's clock: the time plus what advanceClock added to it.
func (s *fixture) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.clockOffset)
}

func (s *fixture) advanceClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clockOffset += d
}

// notifyChange notifies the engine that accounts changed, and returns the position of the change.
func (s *fixture) notifyChange(accounts ...string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position++
	for _, a := range accounts {
		s.lastChanges[a] = s.position
	}
	return s.position
}

// write runs f in a transaction that moves the checkpoint to a position.
func (s *fixture) write(t testing.TB, position int64, f func(*sqldb.Tx) error) {
	t.Helper()
	db, release, err := s.registry.OpenGeneration(t.Context(), s.generation)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	err = db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "update {checkpoint} set position = ? where position < ?", position, position)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *fixture) writeRows(t testing.TB, rows ...table.Site) {
	t.Helper()
	accounts := make([]string, len(rows))
	for i := range rows {
		accounts[i] = rows[i].Account
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	position := s.notifyChange(accounts...)
	for i := range rows {
		rows[i].Position = position
	}
	s.write(t, position, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, rows) })
}

func (s *fixture) WriteSites(t *testing.T, rows ...table.Site) { s.writeRows(t, rows...) }
func (s *fixture) Engine() search.Engine                       { return s.engine }

func TestContract(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		searchtest.Run(t, func(t *testing.T) searchtest.Fixture {
			return openFixture(t, newAddress(t, address), memory.DefaultMaxSites)
		})
	})
}

// newAddress is a new address for each test on SQLite. On Postgres a new generation in the one database is enough.
func newAddress(t *testing.T, address string) string {
	if len(address) > 8 && address[:8] == "postgres" {
		return address
	}
	return t.TempDir()
}

func namedRow(account, externalID, name string) table.Site {
	return searchtest.NewSiteRow(account, "shops", externalID, locations.StoredSite{Content: locations.Content{Name: name}})
}

// siteNames are the names of an account's sites, active or not, in the order of the search.
func (s *fixture) siteNames(t testing.TB, account string) (all []string) {
	t.Helper()
	for _, h := range s.searchPage(t, search.Query{Account: account, Status: search.All, Limit: 100_000}).Hits {
		all = append(all, h.Site.Name)
	}
	return all
}

func TestASearchWaitsForTheReadModelToReachTheLastChange(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openFixture(t, address, memory.DefaultMaxSites)
		s.writeRows(t, namedRow("a", "x", "Avant"))
		s.siteNames(t, "a")
		position := s.notifyChange("a")
		row := namedRow("a", "x", "Après")
		row.Position = position
		asked := make(chan []string)
		go func() { asked <- s.siteNames(t, "a") }()
		select {
		case early := <-asked:
			t.Errorf("got %v before the change was in the read model", early)
		case <-time.After(30 * time.Millisecond): // a search that begins later than that makes the test weaker, not wrong
		}
		s.write(t, position, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{row}) })
		if got := <-asked; !slices.Equal(got, []string{"Après"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestASearchGivesUpOnAReadModelThatDoesNotMove(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Avant"), namedRow("b", "x", "Ailleurs"))
	s.siteNames(t, "a")
	s.notifyChange("a")
	began := time.Now()
	answers := make(chan error)
	for range 4 { // the waits do not add up
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
	if got := s.siteNames(t, "b"); len(got) != 1 {
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
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Site"))
	for range 3 {
		s.write(t, s.notifyChange("a"), func(*sqldb.Tx) error { return nil })
		if got := s.siteNames(t, "a"); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	}
}

func TestSitesOfAnErasedAccountAreGone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openFixture(t, address, memory.DefaultMaxSites)
		s.writeRows(t, namedRow("a", "x", "Site"), namedRow("b", "x", "Reste"))
		s.siteNames(t, "a")
		s.write(t, s.notifyChange("a"), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), "delete from {site} where account = ?", "a")
			return err
		})
		if got := s.siteNames(t, "a"); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		if got := s.siteNames(t, "b"); len(got) != 1 {
			t.Errorf("another account has %v", got)
		}
		s.writeRows(t, namedRow("a", "y", "Neuf"))
		if got := s.siteNames(t, "a"); !slices.Equal(got, []string{"Neuf"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestASiteWhoseKeyWasDestroyedHasNoContent(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	row := namedRow("a", "x", "Site")
	row.Content = ""
	s.writeRows(t, row, namedRow("a", "y", "Reste"))
	if got := s.siteNames(t, "a"); !slices.Equal(got, []string{"Reste", ""}) {
		t.Errorf("got %q", got)
	}
}

func TestARebuiltGenerationIsReadWhole(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Un"), namedRow("a", "y", "Deux"))
	s.siteNames(t, "a")
	s.buildGeneration(t)
	s.writeRows(t, namedRow("a", "y", "Deux"), namedRow("a", "z", "Trois"))
	if got := s.siteNames(t, "a"); !slices.Equal(got, []string{"Deux", "Trois"}) {
		t.Errorf("got %v, want the sites of the generation that serves", got)
	}
}

func TestTheIndexUsedLongestAgoIsEvicted(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), 25)
	for i := range 5 {
		for j := range 9 {
			s.writeRows(t, namedRow(accountID(i), fmt.Sprint(j), "Site"))
		}
	}
	for range 3 {
		for i := range 5 {
			if got := s.siteNames(t, accountID(i)); len(got) != 9 {
				t.Errorf("%s has %d sites", accountID(i), len(got))
			}
		}
	}
	if accounts, sites := s.engine.CacheSize(); accounts != 2 || sites != 18 {
		t.Errorf("%d accounts with %d sites are held", accounts, sites)
	}
	for i := range 100 { // accounts without sites have a weight too
		s.siteNames(t, fmt.Sprint("empty", i))
	}
	if accounts, sites := s.engine.CacheSize(); accounts > 25 || sites != 0 {
		t.Errorf("%d accounts with %d sites are held", accounts, sites)
	}
}

func TestIdleIndexesAreEvicted(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Site"), namedRow("b", "x", "Site"))
	s.siteNames(t, "a")
	s.advanceClock(59 * time.Minute)
	s.siteNames(t, "b")
	if accounts, _ := s.engine.CacheSize(); accounts != 2 {
		t.Errorf("%d accounts are held, want 2", accounts)
	}
	s.advanceClock(2 * time.Minute)
	s.siteNames(t, "b")
	if accounts, sites := s.engine.CacheSize(); accounts != 1 || sites != 1 {
		t.Errorf("%d accounts with %d sites are held, want one", accounts, sites)
	}
}

func TestAnAccountLargerThanTheCacheIsSearched(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), 3)
	for j := range 9 {
		s.writeRows(t, namedRow("a", fmt.Sprint(j), "Site"))
	}
	for range 3 {
		if got := s.siteNames(t, "a"); len(got) != 9 {
			t.Errorf("got %d sites", len(got))
		}
	}
}

func TestAnIndexInMemoryIsSearchedWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Site"))
	s.siteNames(t, "a")
	if err := s.registry.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.siteNames(t, "a"); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAnIndexIsCheckedNowAndThenWithoutANotification(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Avant"), namedRow("b", "x", "Site"))
	s.siteNames(t, "a")
	s.siteNames(t, "b")
	quiet := namedRow("a", "x", "Après")
	quiet.Position = 100
	s.write(t, 100, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), "delete from {site} where account = ?", "b")
		return errors.Join(err, sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{quiet}))
	})
	s.advanceClock(time.Minute)
	if a, b := s.siteNames(t, "a"), s.siteNames(t, "b"); !slices.Equal(a, []string{"Après"}) || len(b) != 0 {
		t.Errorf("got %v and %v", a, b)
	}
}

// TestReadersAndWritersAtOnce has every writer search for what it wrote, while sites of all accounts are evicted and
// loaded again.
func TestReadersAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), 60)
	rounds := 40
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		rounds = 1000
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("Site %d", round)
				row := namedRow(accountID(i), fmt.Sprint(round%25), name)
				s.writeRows(t, row)
				found := s.searchPage(t, search.Query{Account: accountID(i), Text: name, Sort: search.ByName, Limit: 100}).Hits
				if !slices.ContainsFunc(found, func(h search.Hit) bool { return h.Site.Name == name }) {
					t.Errorf("%s is not found", name)
				}
			}
		})
		all.Go(func() {
			for round := range rounds * 3 {
				if got := s.siteNames(t, accountID((i+round)%4)); len(got) > 25 || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(search.FoldName(a), search.FoldName(b)) }) {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	all.Wait()
}

// An index in memory is made of rows: when these turn out not to be on the log, the search fails as they do, and the
// index is read anew afterwards.
func TestASearchShowsNothingOfRowsThatAreNotOnTheLog(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Perdu"), namedRow("b", "x", "Perdu"))
	s.siteNames(t, "a")
	s.siteNames(t, "b")
	s.registry.SetDiverged(s.generation, true)
	if _, err := s.engine.Search(t.Context(), search.Query{Account: "a", Limit: 1}); !errors.Is(err, sqldb.ErrDiverged) {
		t.Errorf("got %v, want %v", err, sqldb.ErrDiverged)
	}
	s.buildGeneration(t) // another generation serves, whose checkpoint is not as far
	s.lastChanges = map[string]int64{}
	row := namedRow("a", "x", "Tenu")
	row.Position = 1
	s.write(t, 1, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{row}) })
	if a, b := s.siteNames(t, "a"), s.siteNames(t, "b"); !slices.Equal(a, []string{"Tenu"}) || len(b) != 0 {
		t.Errorf("after a rebuild: a has %v and b %v, want what the log holds", a, b)
	}
}

func TestASearchWorksAgainWhenTheRowsAreOnTheLogAgain(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, namedRow("a", "x", "Là"))
	s.siteNames(t, "a")
	s.registry.SetDiverged(s.generation, true)
	s.registry.SetDiverged(s.generation, false)
	if got := s.siteNames(t, "a"); !slices.Equal(got, []string{"Là"}) {
		t.Errorf("got %v", got)
	}
}

func TestQuestionsAboutManySitesTakeTurns(t *testing.T) {
	t.Parallel()
	s := openFixture(t, t.TempDir(), memory.DefaultMaxSites)
	s.writeRows(t, chainOfShops(t, "big", 3_000)...)
	for name, ask := range map[string]func(context.Context) error{
		"counts": func(ctx context.Context) error {
			_, err := s.engine.Count(ctx, search.Query{Account: "big", Limit: 1}, []search.Facet{search.TagFacet})
			return err
		},
		"a large page": func(ctx context.Context) error {
			_, err := s.engine.Search(ctx, search.Query{Account: "big", Limit: 2_000, Sort: search.ByName})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.searchPage(t, search.Query{Account: "big"}) // so that the sites are in memory
			workertest.CheckTurns(t, 1, ask)
		})
	}
	if workertest.NeedsWorker(t, func(ctx context.Context) error {
		_, err := s.engine.Search(ctx, search.Query{Account: "big", Limit: 100, Text: "pharmacie du centre"})
		return err
	}) {
		t.Error("a common search needs a worker")
	}
}
