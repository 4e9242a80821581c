package sqldb

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lieudit/schemas/table"
)

// servingCheckInterval is how long an instance reads a generation before it checks the registry again for the serving one.
const servingCheckInterval = 200 * time.Millisecond

// servingCache is the generation of one model that this instance reads. It stays open while it is here.
type servingCache struct {
	checking   *semaphore.Weighted // held by the one caller that reads or changes the rest
	generation Generation
	release    func()
	checkedAt  time.Time
	isStale    atomic.Bool // this instance has promoted another generation since
}

// Read runs f on the serving generation of a model. f only reads, and must be repeatable: it runs twice if the generation was
// replaced and dropped under it. Read fails with ErrNotReady while no generation serves, and with ErrDiverged.
func (s *Registry) Read(ctx context.Context, m table.ReadModel, f func(*DB) error) error {
	return s.ReadGeneration(ctx, m, func(_ Generation, db *DB) error { return f(db) })
}

// ReadGeneration is Read for callers that need to know which generation it is. A failed read is repeated only if another
// generation serves by now: the old one may have been dropped, which is not the caller's error.
func (s *Registry) ReadGeneration(ctx context.Context, m table.ReadModel, f func(Generation, *DB) error) error {
	g, err := s.resolveServing(ctx, m, servingCheckInterval)
	if err != nil {
		return err
	}
	err = s.readFromGeneration(ctx, g, f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	latest, lookErr := s.resolveServing(ctx, m, 0)
	if lookErr != nil || latest.Name == g.Name {
		return err
	}
	return s.readFromGeneration(ctx, latest, f)
}

// LogID is the UUID of the log that the serving generation is of, "" while nothing of a log was written.
func (s *Registry) LogID(ctx context.Context, m table.ReadModel) (log string, err error) {
	err = s.Read(ctx, m, func(db *DB) error { return db.QueryRow(ctx, "select log from {checkpoint}").Scan(&log) })
	return log, err
}

// ServingGeneration is the generation that serves, as the registry says now.
func (s *Registry) ServingGeneration(ctx context.Context, m table.ReadModel) (Generation, error) {
	return s.resolveServing(ctx, m, 0)
}

// readFromGeneration runs f on a generation and holds a reference to its database meanwhile.
func (s *Registry) readFromGeneration(ctx context.Context, g Generation, f func(Generation, *DB) error) error {
	if err := errors.Join(s.checkNotDiverged(g), s.checkUndamaged(g)); err != nil {
		return err
	}
	db, release, err := s.OpenGeneration(ctx, g)
	if err != nil {
		return err
	}
	defer release()
	return s.noteDamage(g, f(g, db))
}

// resolveServing is the serving generation, as the registry had it at most maxAge ago. 0 asks the registry now. It fails with
// ErrNotReady if there is none.
func (s *Registry) resolveServing(ctx context.Context, m table.ReadModel, maxAge time.Duration) (Generation, error) {
	r := s.servingCacheOf(m)
	if err := r.checking.Acquire(ctx, 1); err != nil {
		return Generation{}, err
	}
	defer r.checking.Release(1)
	if r.isStale.Swap(false) {
		r.checkedAt = time.Time{}
	}
	if r.release != nil && time.Since(r.checkedAt) < maxAge {
		return r.generation, nil
	}
	checkedAt := time.Now()
	all, err := s.Generations(ctx)
	if err != nil {
		return Generation{}, err
	}
	for _, g := range all {
		if g.IsOf(m) && g.State == Serving {
			return g, r.switchTo(ctx, s, g, checkedAt)
		}
	}
	return Generation{}, fmt.Errorf("%s: %w", m.Name, ErrNotReady)
}

// switchTo makes g the generation that is read from now on. The one before is closed when its last reader is done.
func (r *servingCache) switchTo(ctx context.Context, s *Registry, g Generation, checkedAt time.Time) error {
	if r.release == nil || r.generation.Name != g.Name {
		_, release, err := s.OpenGeneration(ctx, g)
		if err != nil {
			return err
		}
		if r.release != nil {
			r.release()
		}
		r.release = release
		s.linkServingFile(g) // the link may be lost
	}
	r.generation, r.checkedAt = g, checkedAt
	return nil
}

// servingCacheOf is the cache of a model's version.
func (s *Registry) servingCacheOf(m table.ReadModel) *servingCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s-v%d", m.Name, m.Version)
	r, ok := s.servingCaches[key]
	if !ok {
		r = &servingCache{checking: semaphore.NewWeighted(1)}
		s.servingCaches[key] = r
	}
	return r
}

// LoadAccountStatus is the status of an account in a generation, with an empty Kind where there is no row.
func LoadAccountStatus(ctx context.Context, q Querier, account string) (table.AccountStatus, error) {
	rows, err := Select(ctx, q, table.AccountStatuses, "where account = ?", account)
	if err != nil || len(rows) == 0 {
		return table.AccountStatus{Account: account}, err
	}
	return rows[0], nil
}

// CheckAccount is nil if the rows of an account may be shown, and otherwise a *table.StoppedError.
func CheckAccount(ctx context.Context, q Querier, account string) error {
	s, err := LoadAccountStatus(ctx, q, account)
	if err == nil && s.IsStopped() {
		err = &table.StoppedError{AccountStatus: s}
	}
	return err
}

// ExcludeStoppedAccounts is an SQL condition that leaves out the rows of stopped accounts. column holds an account's
// id.
func ExcludeStoppedAccounts(column string) string {
	return column + " not in (select account from {account_status} where kind <> '')"
}

// ReadAccount is Read for a query about one account. It fails with a *table.StoppedError while the account's rows may
// not be shown. With account "" it is a query about many: f leaves stopped accounts out itself
// (ExcludeStoppedAccounts).
func (s *Registry) ReadAccount(ctx context.Context, m table.ReadModel, account string, f func(*DB) error) error {
	return s.Read(ctx, m, func(db *DB) error {
		if account != "" {
			if err := CheckAccount(ctx, db, account); err != nil {
				return err
			}
		}
		return f(db)
	})
}
