package sqldb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"lieudit/schemas/table"
)

// openDatabase is a generation's database that is open, and how many callers use it.
type openDatabase struct {
	db       *DB
	refCount int
	model    string
	file     *openFile
}

const (
	// A lease survives four failed renewals. Its end is by the database's clock, the interval by this instance's.
	leaseRenewInterval = 2 * time.Second
	leaseDuration      = 10 * time.Second
)

// OpenGeneration opens a generation's database, or returns the one that is open. While one of its callers has not
// called release, this instance holds a lease and no instance drops the generation. It fails for a generation that was
// dropped, and with a *DamagedError for one whose file is lost or damaged.
func (s *Registry) OpenGeneration(ctx context.Context, g Generation) (db *DB, release func(), err error) {
	if err := s.checkUndamaged(g); err != nil {
		return nil, nil, err
	}
	if db := s.acquireOpenDatabase(g.Name); db != nil {
		return db, s.releaseFunc(g.Name), nil
	}
	s.addPendingOpen(g.Name, 1)
	defer s.addPendingOpen(g.Name, -1)
	if err := s.acquireLease(ctx, g.Name); err != nil {
		return nil, nil, err
	}
	db, file, err := s.openDatabase(ctx, g)
	if err != nil {
		return nil, nil, s.noteDamage(g, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if opened, ok := s.openDatabases[g.Name]; ok { // another caller was faster
		opened.refCount++
		return opened.db, s.releaseFunc(g.Name), db.Close()
	}
	s.openDatabases[g.Name] = &openDatabase{db, 1, g.Model, file}
	return db, s.releaseFunc(g.Name), nil
}

// openDatabase opens a generation's database and checks its file.
func (s *Registry) openDatabase(ctx context.Context, g Generation) (*DB, *openFile, error) {
	file, err := s.inspectFile(g)
	if err != nil {
		return nil, nil, err
	}
	db, err := Open(ctx, s.databaseAddress(g.Name), Options{Name: g.Name, Schema: g.schemaName(), Observe: s.Observe, Simulated: s.Simulated})
	if err != nil {
		return nil, nil, err
	}
	if err := db.verifyGeneration(ctx, g, file); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, newOpenFile(file), nil
}

// listOpen are the generations that are open, by name.
func (s *Registry) listOpen() map[string]*openDatabase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.openDatabases)
}

// addPendingOpen counts the callers that are about to open a generation. Another caller that closes it meanwhile does
// not give up the lease that they rely on.
func (s *Registry) addPendingOpen(name string, delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pendingOpens[name] += delta; s.pendingOpens[name] == 0 {
		delete(s.pendingOpens, name)
	}
}

// isInUse reports whether a generation is open or about to be.
func (s *Registry) isInUse(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openDatabases[name] != nil || s.pendingOpens[name] > 0
}

// acquireOpenDatabase is the database of a generation that is open, with one more reference, or nil.
func (s *Registry) acquireOpenDatabase(name string) *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened, ok := s.openDatabases[name]
	if !ok {
		return nil
	}
	opened.refCount++
	return opened.db
}

// releaseFunc gives back one reference, once. The last one closes the database and gives up the lease.
func (s *Registry) releaseFunc(name string) func() {
	return sync.OnceFunc(func() {
		if last := s.releaseReference(name); last != nil {
			last.db.Close() // nothing was written that was not committed
			s.releaseLease(name)
		}
	})
}

// releaseReference takes one reference back. It returns the database when that was the last one.
func (s *Registry) releaseReference(name string) *openDatabase {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := s.openDatabases[name]
	opened.refCount--
	if opened.refCount > 0 {
		return nil
	}
	delete(s.openDatabases, name)
	return opened
}

// acquireLease writes this instance's lease on a generation, unless that was dropped.
func (s *Registry) acquireLease(ctx context.Context, name string) error {
	return s.updateRegistry(ctx, func(tx *Tx) error {
		var state GenerationState
		if err := tx.QueryRow(ctx, "select state from {copy} where name = ?", name).Scan(&state); err != nil {
			return tx.db.wrapError(ctx, fmt.Errorf("%s: %w", name, err))
		}
		if state == Dropped {
			return fmt.Errorf("%s was dropped", name)
		}
		if err := s.writeLease(ctx, tx, name); err != nil {
			return err
		}
		return s.writeInstance(ctx, tx)
	})
}

// writeLease writes or extends this instance's lease. Its end is by the clock of the database.
func (s *Registry) writeLease(ctx context.Context, tx *Tx, name string) error {
	_, err := tx.Exec(ctx, "insert into {holder} (copy, instance, until) values (?, ?, "+tx.db.Now()+" + ?)"+onConflictClause(leaseTable),
		name, s.InstanceID, leaseDuration.Microseconds())
	return err
}

// ShortenLeases moves the ends of leases that lie further away than duration to that time from now. The table has the end of
// a lease in its column "until", by the database's clock. A lease with an impossibly late end was taken before that clock was
// set back, and would block for as long. It does not end at once: if its holder is alive it renews the lease, otherwise the
// lease expires.
func (tx *Tx) ShortenLeases(ctx context.Context, leases table.Def, duration time.Duration) error {
	latest := tx.db.Now() + " + ?"
	statement := "update {" + leases.Name + "} set until = " + latest + " where until > " + latest
	_, err := tx.Exec(ctx, statement, duration.Microseconds(), duration.Microseconds())
	return err
}

// releaseLease deletes this instance's lease, unless the generation is needed again. Where that fails the lease
// expires.
func (s *Registry) releaseLease(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.updateRegistry(ctx, func(tx *Tx) error {
		if s.isInUse(name) {
			return nil
		}
		_, err := tx.Exec(ctx, "delete from {holder} where copy = ? and instance = ?", name, s.InstanceID)
		return err
	})
}

// renewLeases extends the leases of this instance, at most every leaseRenewInterval.
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
		return s.writeInstance(ctx, tx)
	})
}

// leasesToRenew are the generations that are open, or none when the leases were renewed a moment ago.
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
