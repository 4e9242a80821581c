package local_test

import (
	"sync"
	"testing"
	"time"

	"lieudit/queries/places/finder"
	"lieudit/queries/places/finder/findertest"
	"lieudit/queries/places/local"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// stage is a read model that is written by the test itself, and the search of it.
type stage struct {
	engine *local.Engine
	shelf  *table.Shelf
	copy   table.Copy

	turn     sync.Mutex // writers come one after the other, as their events do in the log
	mu       sync.Mutex
	position int64
	last     map[string]int64 // change of each account
	later    time.Duration
}

func open(t testing.TB, address string, bound int) *stage {
	t.Helper()
	shelf, err := table.OpenShelf(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	s := &stage{shelf: shelf, last: map[string]int64{}}
	s.engine = local.New(shelf, s.changed, s.now, bound)
	s.build(t)
	return s
}

// build makes an empty copy serve.
func (s *stage) build(t testing.TB) {
	t.Helper()
	var err error
	if s.copy, err = s.shelf.Build(t.Context(), table.Places, false); err != nil {
		t.Fatal(err)
	}
	if err := s.shelf.Serve(t.Context(), table.Places, s.copy); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) changed(account string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.last[account])
}

// now is the time, and what was added to it.
func (s *stage) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.later)
}

func (s *stage) wait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later += d
}

// tell says that an account changed, and gives the position.
func (s *stage) tell(accounts ...string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position++
	for _, a := range accounts {
		s.last[a] = s.position
	}
	return s.position
}

// write runs f in a transaction that brings the copy to a position.
func (s *stage) write(t testing.TB, position int64, f func(*table.Tx) error) {
	t.Helper()
	db, release, err := s.shelf.Use(t.Context(), s.copy)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	err = db.Tx(t.Context(), func(tx *table.Tx) error {
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

func (s *stage) put(t testing.TB, rows ...table.Site) {
	t.Helper()
	accounts := make([]string, len(rows))
	for i := range rows {
		accounts[i] = rows[i].Account
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	position := s.tell(accounts...)
	for i := range rows {
		rows[i].Position = position
	}
	s.write(t, position, func(tx *table.Tx) error { return table.Upsert(t.Context(), tx, table.Sites, rows) })
}

func (s *stage) Put(t *testing.T, rows ...table.Site) { s.put(t, rows...) }
func (s *stage) Engine() finder.Engine                { return s.engine }

func TestContract(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		findertest.Run(t, func(t *testing.T) findertest.Stage { return open(t, fresh(t, address), local.Held) })
	})
}

// fresh is an address of its own for each test on SQLite; on Postgres a fresh copy in the one database does.
func fresh(t *testing.T, address string) string {
	if len(address) > 8 && address[:8] == "postgres" {
		return address
	}
	return t.TempDir()
}
