package sqldb

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// openDatabase is an open copy and how many use it.
type openDatabase struct {
	db       *DB
	refCount int
}

const (
	leaseRenewInterval = 2 * time.Second
	leaseDuration      = 10 * time.Second
)

// OpenGeneration opens a copy, which stays there until release is called.
func (s *Registry) OpenGeneration(ctx context.Context, c Generation) (db *DB, release func(), err error) {
	if db := s.acquireOpenDatabase(c.Name); db != nil {
		return db, s.releaseFunc(c.Name), nil
	}
	s.addPendingOpen(c.Name, 1)
	defer s.addPendingOpen(c.Name, -1)
	if err := s.acquireLease(ctx, c.Name); err != nil {
		return nil, nil, err
	}
	db, err = Open(ctx, s.databaseAddress(c.Name), Options{Name: c.Name, Schema: c.schemaName()})
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.openDatabases[c.Name]; ok { // somebody was faster
		h.refCount++
		return h.db, s.releaseFunc(c.Name), db.Close()
	}
	s.openDatabases[c.Name] = &openDatabase{db, 1}
	return db, s.releaseFunc(c.Name), nil
}

// addPendingOpen counts who is about to open a copy, so that who closes it meanwhile does not let go of it for all.
func (s *Registry) addPendingOpen(name string, delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pendingOpens[name] += delta; s.pendingOpens[name] == 0 {
		delete(s.pendingOpens, name)
	}
}

// isInUse says whether a copy is open or about to be.
func (s *Registry) isInUse(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openDatabases[name] != nil || s.pendingOpens[name] > 0
}

func (s *Registry) acquireOpenDatabase(name string) *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.openDatabases[name]
	if !ok {
		return nil
	}
	h.refCount++
	return h.db
}

func (s *Registry) releaseFunc(name string) func() {
	return sync.OnceFunc(func() {
		if h := s.releaseReference(name); h != nil {
			h.db.Close() // nothing was written that was not committed
			s.releaseLease(name)
		}
	})
}

func (s *Registry) releaseReference(name string) *openDatabase {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.openDatabases[name]
	h.refCount--
	if h.refCount > 0 {
		return nil
	}
	delete(s.openDatabases, name)
	return h
}

// acquireLease tells the others that this instance uses a copy.
func (s *Registry) acquireLease(ctx context.Context, name string) error {
	return s.updateRegistry(ctx, func(tx *Tx) error {
		var state GenerationState
		if err := tx.QueryRow(ctx, "select state from copy where name = ?", name).Scan(&state); err != nil {
			return tx.db.wrapError(ctx, fmt.Errorf("%s: %w", name, err))
		}
		if state == Dropped {
			return fmt.Errorf("%s was dropped", name)
		}
		return s.writeLease(ctx, tx, name)
	})
}

func (s *Registry) writeLease(ctx context.Context, tx *Tx, name string) error {
	_, err := tx.Exec(ctx, "insert into holder (copy, instance, until) values (?, ?, "+tx.db.Now()+" + ?)"+onConflictClause(leaseTable),
		name, s.InstanceID, leaseDuration.Microseconds())
	return err
}

// ActiveInstances are those that use a copy at the moment, by their names.
func (s *Registry) ActiveInstances(ctx context.Context) (map[string]bool, error) {
	db, err := s.database(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, "select distinct instance from holder where until > "+db.Now())
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

// releaseLease is hold's opposite, unless the copy is needed again. Where it fails the hold runs out.
func (s *Registry) releaseLease(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.updateRegistry(ctx, func(tx *Tx) error {
		if s.isInUse(name) {
			return nil
		}
		_, err := tx.Exec(ctx, "delete from holder where copy = ? and instance = ?", name, s.InstanceID)
		return err
	})
}

// renewLeases says again what this instance uses, now and then.
func (s *Registry) renewLeases(ctx context.Context) error {
	names := s.leasesToRenew()
	if len(names) == 0 {
		return nil
	}
	return s.updateRegistry(ctx, func(tx *Tx) error {
		for _, name := range names {
			if err := s.writeLease(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Registry) leasesToRenew() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.leasesRenewedAt) < leaseRenewInterval {
		return nil
	}
	s.leasesRenewedAt = time.Now()
	names := make([]string, 0, len(s.openDatabases))
	for name := range s.openDatabases {
		names = append(names, name)
	}
	return names
}
