package table

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Shelf is where the copies of the read models are: a Postgres database or a folder of SQLite files. Its
// registry says which copy serves and which instance uses which. The database may be away when the shelf is opened,
// and come and go later. It is safe for concurrent use.
type Shelf struct {
	Instance string // this instance's name, new at each start

	address string
	mu      sync.Mutex
	books   *DB // the registry, once it was reached
	open    map[string]*held
	reading map[string]*reading
	renewed time.Time
}

// held is an open copy and how many use it.
type held struct {
	db   *DB
	uses int
}

const (
	renewEvery = 2 * time.Second
	holdFor    = 10 * time.Second
)

// OpenShelf is the shelf at an address: postgres://… or a folder, which is made when missing.
func OpenShelf(address string) (*Shelf, error) {
	if !isPostgres(address) {
		if err := os.MkdirAll(address, 0o700); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
	}
	return &Shelf{Instance: uuid.NewString(), address: address, open: map[string]*held{}, reading: map[string]*reading{}}, nil
}

// Close frees everything. Copies must not be in use any more.
func (s *Shelf) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, h := range s.open {
		err = errors.Join(err, h.db.Close())
	}
	if s.books != nil {
		s.books.Exec(ctx, "delete from holder where instance = ?", s.Instance) // else it runs out
		err = errors.Join(err, s.books.Close())
	}
	return err
}

// registry is the database that tells which copies there are.
func (s *Shelf) registry(ctx context.Context) (*DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books != nil {
		return s.books, nil
	}
	db, err := Open(ctx, s.place("registry"), Options{Name: "registry", Schema: "lieudit"})
	if err != nil {
		return nil, err
	}
	if err := db.Create(ctx, copies.Def, holders); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.books = db
	return db, nil
}

// change runs f alone among all who change the registry.
func (s *Shelf) change(ctx context.Context, f func(*Tx) error) error {
	registry, err := s.registry(ctx)
	if err != nil {
		return err
	}
	return registry.Tx(ctx, func(tx *Tx) error {
		if err := tx.Lock(ctx, "registry"); err != nil {
			return err
		}
		return f(tx)
	})
}

func (s *Shelf) place(name string) string {
	if isPostgres(s.address) {
		return s.address
	}
	return filepath.Join(s.address, name+".db")
}

// link gives people a stable file name for the copy that serves. Where links cannot be made they look for it.
func (s *Shelf) link(c Copy) {
	if isPostgres(s.address) {
		return
	}
	fresh := s.place(c.Name + "-link")
	if os.Symlink(filepath.Base(s.place(c.Name)), fresh) == nil {
		os.Rename(fresh, s.place(c.Model))
	}
}

// Use opens a copy, which stays there until release is called.
func (s *Shelf) Use(ctx context.Context, c Copy) (db *DB, release func(), err error) {
	if db := s.reuse(c.Name); db != nil {
		return db, s.releaser(c.Name), nil
	}
	if err := s.hold(ctx, c.Name); err != nil {
		return nil, nil, err
	}
	db, err = Open(ctx, s.place(c.Name), Options{Name: c.Name, Schema: c.schema()})
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.open[c.Name]; ok { // somebody was faster
		h.uses++
		return h.db, s.releaser(c.Name), db.Close()
	}
	s.open[c.Name] = &held{db, 1}
	return db, s.releaser(c.Name), nil
}

func (s *Shelf) reuse(name string) *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.open[name]
	if !ok {
		return nil
	}
	h.uses++
	return h.db
}

func (s *Shelf) releaser(name string) func() {
	return sync.OnceFunc(func() {
		if h := s.drop(name); h != nil {
			h.db.Close() // nothing was written that was not committed
			s.letGo(name)
		}
	})
}

func (s *Shelf) drop(name string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[name]
	h.uses--
	if h.uses > 0 {
		return nil
	}
	delete(s.open, name)
	return h
}

// hold tells the others that this instance uses a copy.
func (s *Shelf) hold(ctx context.Context, name string) error {
	return s.change(ctx, func(tx *Tx) error {
		var state State
		if err := tx.QueryRow(ctx, "select state from copy where name = ?", name).Scan(&state); err != nil {
			return tx.db.named(fmt.Errorf("%s: %w", name, err))
		}
		if state == Dropped {
			return fmt.Errorf("%s was dropped", name)
		}
		return s.note(ctx, tx, name)
	})
}

func (s *Shelf) note(ctx context.Context, tx *Tx, name string) error {
	_, err := tx.Exec(ctx, "insert into holder (copy, instance, until) values (?, ?, "+tx.db.Now()+" + ?)"+holders.upserted(),
		name, s.Instance, holdFor.Microseconds())
	return err
}

// letGo is hold's opposite. Where it fails the hold runs out.
func (s *Shelf) letGo(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.change(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "delete from holder where copy = ? and instance = ?", name, s.Instance)
		return err
	})
}

// renew says again what this instance uses, now and then.
func (s *Shelf) renew(ctx context.Context) error {
	names := s.due()
	if len(names) == 0 {
		return nil
	}
	return s.change(ctx, func(tx *Tx) error {
		for _, name := range names {
			if err := s.note(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Shelf) due() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.renewed) < renewEvery {
		return nil
	}
	s.renewed = time.Now()
	names := make([]string, 0, len(s.open))
	for name := range s.open {
		names = append(names, name)
	}
	return names
}

// Prune drops the copies that no one uses: retired ones, and those of versions before the models'. It gives
// their names.
func (s *Shelf) Prune(ctx context.Context, models ...Model) ([]string, error) {
	var unused []Copy
	err := s.change(ctx, func(tx *Tx) error {
		all, err := Select(ctx, tx, copies, "where state <> 'dropped' and not exists (select 1 from holder where copy = name and until > "+tx.db.Now()+") order by name")
		if err != nil {
			return err
		}
		for _, c := range all {
			if !outdated(c, models) {
				continue
			}
			if _, err := tx.Exec(ctx, "update copy set state = 'dropped' where name = ?", c.Name); err != nil {
				return err
			}
			unused = append(unused, c)
		}
		return s.erase(ctx, tx, unused)
	})
	names := make([]string, len(unused))
	for i, c := range unused {
		names[i] = c.Name
	}
	return names, err
}

func outdated(c Copy, models []Model) bool {
	for _, m := range models {
		if c.Model == m.Name {
			return c.Version < int64(m.Version) ||
				c.Version == int64(m.Version) && (c.State == Retired || c.State == Fresh)
		}
	}
	return false
}

func (s *Shelf) erase(ctx context.Context, tx *Tx, unused []Copy) error {
	for _, c := range unused {
		if tx.db.dialect.numbered {
			if _, err := tx.Exec(ctx, "drop schema if exists "+c.schema()+" cascade"); err != nil {
				return err
			}
			continue
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(s.place(c.Name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// ErrNone: no copy of the read model is ready to answer.
var ErrNone = errors.New("not ready yet")
