package sqldb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/schemas/table"
)

// Registry is where the copies of the read models are: a Postgres database or a folder of SQLite files. Its
// registry says which copy serves and which instance uses which. The database may be away when the shelf is opened,
// and come and go later. It is safe for concurrent use.
//
// People read the views accounts, keys, tokens, history, referentials and sites, and those of usage, where times are readable:
// on Postgres in the schema lieudit, on SQLite in the files register.db, history.db, places.db and usage.db. These names stay
// while copies come and go.
type Registry struct {
	InstanceID string // this instance's name, new at each start; it may be given another before anything is used

	address         string
	opening         *semaphore.Weighted // held by the one caller that opens the registry's own database
	mu              sync.Mutex
	db              *DB // the registry, once it was reached
	openDatabases   map[string]*openDatabase
	pendingOpens    map[string]int // by copy, how many are about to open it
	servingCaches   map[string]*servingCache
	leasesRenewedAt time.Time
	divergences     divergences
}

// OpenRegistry is the shelf at an address: postgres://… or a folder, which is made when missing.
func OpenRegistry(address string) (*Registry, error) {
	if !isPostgresAddress(address) {
		if err := os.MkdirAll(address, 0o700); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
	}
	return &Registry{InstanceID: uuid.NewString(), address: address, opening: semaphore.NewWeighted(1),
		openDatabases: map[string]*openDatabase{}, pendingOpens: map[string]int{}, servingCaches: map[string]*servingCache{}}, nil
}

// Close frees everything. Copies must not be in use any more.
func (s *Registry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, h := range s.openDatabases {
		err = errors.Join(err, h.db.Close())
	}
	if s.db != nil {
		s.db.Exec(ctx, "delete from holder where instance = ?", s.InstanceID) // else it runs out
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// database is the database that tells which copies there are.
func (s *Registry) database(ctx context.Context) (*DB, error) {
	if db := s.openedDatabase(); db != nil {
		return db, nil
	}
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.opening.Release(1)
	if db := s.openedDatabase(); db != nil {
		return db, nil
	}
	db, err := Open(ctx, s.databaseAddress("registry"), Options{Name: "registry", Schema: "lieudit", Durable: true})
	if err != nil {
		return nil, err
	}
	if err := db.Create(ctx, generationTable.Def, leaseTable); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
	return db, nil
}

func (s *Registry) openedDatabase() *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db
}

// updateRegistry runs f alone among all who updateRegistry the registry.
func (s *Registry) updateRegistry(ctx context.Context, f func(*Tx) error) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *Tx) error {
		if err := tx.Lock(ctx, "registry"); err != nil {
			return err
		}
		return f(tx)
	})
}

func (s *Registry) databaseAddress(name string) string {
	if isPostgresAddress(s.address) {
		return s.address
	}
	return filepath.Join(s.address, name+".db")
}

// linkServingFile gives people a stable file name for the copy that serves. Where links cannot be made they look for it.
func (s *Registry) linkServingFile(c Generation) {
	if isPostgresAddress(s.address) {
		return
	}
	temporary := s.databaseAddress(c.Name + "-link")
	if os.Symlink(filepath.Base(s.databaseAddress(c.Name)), temporary) == nil {
		os.Rename(temporary, s.databaseAddress(c.Model))
	}
}

// ErrNotReady: no copy of the read model is ready to answer.
var ErrNotReady = errors.New("not ready yet")

// ErrDiverged: the copy holds what is not on the log, because an older copy of the log was restored. Nothing is answered
// from it.
var ErrDiverged = errors.New("the read model holds what is not on the log")

// divergences are what this instance knows of copies that are not of the log any more.
type divergences struct {
	diverged map[string]bool   // by name
	counts   map[string]uint64 // by model, how often one was found to be
}

// SetDiverged notes whether a copy holds what is not on the log: reads of one that does fail with ErrAstray at once.
func (s *Registry) SetDiverged(c Generation, isDiverged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.divergences.diverged[c.Name] == isDiverged {
		return
	}
	if s.divergences.diverged == nil {
		s.divergences = divergences{map[string]bool{}, map[string]uint64{}}
	}
	s.divergences.diverged[c.Name] = isDiverged
	if isDiverged {
		s.divergences.counts[c.Model]++
	}
}

// IsDiverged says whether a copy holds what is not on the log.
func (s *Registry) IsDiverged(c Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.diverged[c.Name]
}

// CountDivergences counts how often a copy of a model was found to hold what is not on the log. What was read before the count
// changed is not to be shown after it.
func (s *Registry) CountDivergences(m table.ReadModel) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.counts[m.Name]
}

func (s *Registry) checkNotDiverged(c Generation) error {
	if s.IsDiverged(c) {
		return fmt.Errorf("%s: %w", c.Name, ErrDiverged)
	}
	return nil
}
