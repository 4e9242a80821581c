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
//
// People read the views accounts, keys, tokens, history, referentials and sites, and those of usage, where times are readable:
// on Postgres in the schema lieudit, on SQLite in the files register.db, history.db, places.db and usage.db. These names stay
// while copies come and go.
type Shelf struct {
	Instance string // this instance's name, new at each start; it may be given another before anything is used

	address string
	opening turn // the registry is opened by one at a time
	mu      sync.Mutex
	books   *DB // the registry, once it was reached
	open    map[string]*held
	wanted  map[string]int // by copy, how many are about to open it
	reading map[string]*reading
	renewed time.Time
	strays  strays
}

// turn is a mutex that can be waited for with a context.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) done() { <-t }

// OpenShelf is the shelf at an address: postgres://… or a folder, which is made when missing.
func OpenShelf(address string) (*Shelf, error) {
	if !isPostgres(address) {
		if err := os.MkdirAll(address, 0o700); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
	}
	return &Shelf{Instance: uuid.NewString(), address: address, opening: make(turn, 1),
		open: map[string]*held{}, wanted: map[string]int{}, reading: map[string]*reading{}}, nil
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
	if books := s.opened(); books != nil {
		return books, nil
	}
	if err := s.opening.take(ctx); err != nil {
		return nil, err
	}
	defer s.opening.done()
	if books := s.opened(); books != nil {
		return books, nil
	}
	db, err := Open(ctx, s.place("registry"), Options{Name: "registry", Schema: "lieudit", Full: true})
	if err != nil {
		return nil, err
	}
	if err := db.Create(ctx, copies.Def, holders); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books = db
	return db, nil
}

func (s *Shelf) opened() *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.books
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

// ErrNone: no copy of the read model is ready to answer.
var ErrNone = errors.New("not ready yet")
