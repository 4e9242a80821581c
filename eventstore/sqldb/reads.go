package sqldb

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lieudit/schemas/table"
)

// servingCheckInterval is how long a copy is read before the registry is asked again which one serves.
const servingCheckInterval = 200 * time.Millisecond

// servingCache is the copy this instance answers from.
type servingCache struct {
	checking   *semaphore.Weighted // held by the one caller that reads or changes the rest
	generation Generation
	release    func()
	checkedAt  time.Time
	isStale    atomic.Bool // this instance made another copy serve since
}

// Read runs f on the copy of a model that serves. f only reads; it may run twice when the copy is replaced under it,
// and begins anew then. Where no copy has ever been ready the error is ErrNone, and ErrAstray where the one that serves is
// known to hold what is not on the log.
func (s *Registry) Read(ctx context.Context, m table.ReadModel, f func(*DB) error) error {
	return s.ReadGeneration(ctx, m, func(_ Generation, db *DB) error { return f(db) })
}

// ReadGeneration is Read for those who want to know which copy it is.
func (s *Registry) ReadGeneration(ctx context.Context, m table.ReadModel, f func(Generation, *DB) error) error {
	c, err := s.resolveServing(ctx, m, servingCheckInterval)
	if err != nil {
		return err
	}
	err = s.readFromGeneration(ctx, c, f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	latest, lookErr := s.resolveServing(ctx, m, 0)
	if lookErr != nil || latest.Name == c.Name {
		return err
	}
	return s.readFromGeneration(ctx, latest, f)
}

// LogID is the UUID of the log that the serving generation is of, "" while nothing of a log was written.
func (s *Registry) LogID(ctx context.Context, m table.ReadModel) (log string, err error) {
	err = s.Read(ctx, m, func(db *DB) error { return db.QueryRow(ctx, "select log from checkpoint").Scan(&log) })
	return log, err
}

// ServingGeneration is the copy this instance answers from, as the registry says now.
func (s *Registry) ServingGeneration(ctx context.Context, m table.ReadModel) (Generation, error) {
	return s.resolveServing(ctx, m, 0)
}

func (s *Registry) readFromGeneration(ctx context.Context, c Generation, f func(Generation, *DB) error) error {
	if err := s.checkNotDiverged(c); err != nil {
		return err
	}
	db, release, err := s.OpenGeneration(ctx, c)
	if err != nil {
		return err
	}
	defer release()
	return f(c, db)
}

// resolveServing is the copy that served at most age ago.
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
	for _, c := range all {
		if c.IsOf(m) && c.State == Serving {
			return c, r.switchTo(ctx, s, c, checkedAt)
		}
	}
	return Generation{}, fmt.Errorf("%s: %w", m.Name, ErrNotReady)
}

// switchTo makes c the copy that is read from now on. The one before is let go when its last reader is done.
func (r *servingCache) switchTo(ctx context.Context, s *Registry, c Generation, checkedAt time.Time) error {
	if r.release == nil || r.generation.Name != c.Name {
		_, release, err := s.OpenGeneration(ctx, c)
		if err != nil {
			return err
		}
		if r.release != nil {
			r.release()
		}
		r.release = release
	}
	r.generation, r.checkedAt = c, checkedAt
	return nil
}

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

// LoadAccountStatus is what a copy notes of an account: the zero AccountStatus where it notes nothing.
func LoadAccountStatus(ctx context.Context, a Querier, account string) (table.AccountStatus, error) {
	rows, err := Select(ctx, a, table.AccountStatuses, "where account = ?", account)
	if err != nil || len(rows) == 0 {
		return table.AccountStatus{Account: account}, err
	}
	return rows[0], nil
}

// CheckAccount is nil when the rows of an account may be shown, and a *StoppedError while they may not.
func CheckAccount(ctx context.Context, a Querier, account string) error {
	s, err := LoadAccountStatus(ctx, a, account)
	if err == nil && s.IsStopped() {
		err = &table.StoppedError{AccountStatus: s}
	}
	return err
}

// ExcludeStoppedAccounts is a condition of SQL that leaves out the rows of stopped accounts. column holds an account's id.
func ExcludeStoppedAccounts(column string) string {
	return column + " not in (select account from account_status where kind <> '')"
}

// ReadAccount is Read for a question about one account. It fails with a *StoppedError while the account's rows are not to
// be shown. The account is "" for a question about many; then rows of those that do not run are to be left out.
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
