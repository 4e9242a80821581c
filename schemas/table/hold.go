package table

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// held is an open copy and how many use it.
type held struct {
	db   *DB
	uses int
}

const (
	renewEvery = 2 * time.Second
	holdFor    = 10 * time.Second
)

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
			return tx.db.failed(ctx, fmt.Errorf("%s: %w", name, err))
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

// Instances are those that use a copy at the moment, by their names.
func (s *Shelf) Instances(ctx context.Context) (map[string]bool, error) {
	registry, err := s.registry(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := registry.Query(ctx, "select distinct instance from holder where until > "+registry.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var instance string
		if err := rows.Scan(&instance); err != nil {
			return nil, err
		}
		found[instance] = true
	}
	return found, rows.Err()
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
