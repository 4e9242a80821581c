package memory_test

import (
	"sync"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/table"
)

// fixture is a read model that is written by the test itself, and the search of it.
type fixture struct {
	engine *memory.Engine
	shelf  *sqldb.Registry
	copy   sqldb.Generation

	turn     sync.Mutex // writers come one after the other, as their events do in the log
	mu       sync.Mutex
	position int64
	last     map[string]int64 // change of each account
	later    time.Duration
}

func open(t testing.TB, address string, bound int) *fixture {
	t.Helper()
	shelf, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	s := &fixture{shelf: shelf, last: map[string]int64{}}
	s.engine = memory.New(shelf, s.changed, s.now, bound)
	s.build(t)
	return s
}

// build makes an empty copy serve.
func (s *fixture) build(t testing.TB) {
	t.Helper()
	var err error
	if s.copy, err = s.shelf.BuildGeneration(t.Context(), table.LocationsModel, false); err != nil {
		t.Fatal(err)
	}
	if err := s.shelf.PromoteGeneration(t.Context(), table.LocationsModel, s.copy); err != nil {
		t.Fatal(err)
	}
}

func (s *fixture) changed(account string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.last[account])
}

// now is the time, and what was added to it.
func (s *fixture) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.later)
}

func (s *fixture) wait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later += d
}

// notifyChange says that an account changed, and gives the position.
func (s *fixture) notifyChange(accounts ...string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position++
	for _, a := range accounts {
		s.last[a] = s.position
	}
	return s.position
}

// write runs f in a transaction that brings the copy to a position.
func (s *fixture) write(t testing.TB, position int64, f func(*sqldb.Tx) error) {
	t.Helper()
	db, release, err := s.shelf.OpenGeneration(t.Context(), s.copy)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	err = db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "update checkpoint set position = ? where position < ?", position, position)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *fixture) put(t testing.TB, rows ...table.Site) {
	t.Helper()
	accounts := make([]string, len(rows))
	for i := range rows {
		accounts[i] = rows[i].Account
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	position := s.notifyChange(accounts...)
	for i := range rows {
		rows[i].Position = position
	}
	s.write(t, position, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Sites, rows) })
}

func (s *fixture) WriteSites(t *testing.T, rows ...table.Site) { s.put(t, rows...) }
func (s *fixture) Engine() search.Engine                       { return s.engine }

func TestContract(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		searchtest.Run(t, func(t *testing.T) searchtest.Fixture { return open(t, fresh(t, address), memory.DefaultMaxSites) })
	})
}

// fresh is an address of its own for each test on SQLite; on Postgres a fresh copy in the one database does.
func fresh(t *testing.T, address string) string {
	if len(address) > 8 && address[:8] == "postgres" {
		return address
	}
	return t.TempDir()
}
