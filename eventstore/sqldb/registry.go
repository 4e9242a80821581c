package sqldb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/schemas/table"
)

// Registry holds the generations of the read models: in a Postgres database, or in a folder of SQLite files. Its own tables
// record which generation serves, which instance uses which, and which program each instance runs. The database may be down
// when the Registry is made, and come and go later: every call tries again. It is safe for concurrent use.
//
// People read the views accounts, keys, tokens, history, referentials and sites, and those of usage, where times are
// readable: on Postgres in the schema lieudit, on SQLite in the files register.db, history.db, places.db and usage.db.
// These names stay while generations come and go.
type Registry struct {
	InstanceID string                                                // new at each start; it may be set before first use
	Program    string                                                // version of this instance's program; it may be set before first use
	Format     int                                                   // the highest format of the log that this instance's program knows; it may be set before first use
	Log        *slog.Logger                                          // gets a line for each file that is lost or damaged; slog.Default() unless set before first use
	Observe    func(operation string, took time.Duration, err error) // see Options; it may be set before first use
	Simulated  Simulated                                             // see Options; it may be set before first use
	// ScrubInterval is the least time between two scrubs of a generation on Postgres; an hour unless set before first use.
	ScrubInterval time.Duration

	address         string
	opening         *semaphore.Weighted // held by the one caller that opens the registry's own database
	mu              sync.Mutex
	db              *DB // the registry's own tables; nil until they were reached
	openDatabases   map[string]*openDatabase
	pendingOpens    map[string]int        // by generation, how many callers are about to open it
	unfinished      map[string]Generation // begun here, will not be built, not dropped yet
	servingCaches   map[string]*servingCache
	leasesRenewedAt time.Time
	divergences     divergences
	damages         damages
	file            *openFile // of db
}

// OpenRegistry makes the Registry of an address: postgres://…, or a folder, which is made when it is missing. It does
// not connect yet.
func OpenRegistry(address string) (*Registry, error) {
	if err := makeFolder(address); err != nil {
		return nil, err
	}
	return &Registry{InstanceID: uuid.NewString(), Log: slog.Default(), address: address, damages: damages{}, opening: semaphore.NewWeighted(1),
		openDatabases: map[string]*openDatabase{}, pendingOpens: map[string]int{}, unfinished: map[string]Generation{}, servingCaches: map[string]*servingCache{}}, nil
}

// makeFolder makes the folder of an address that is one, where it is missing.
func makeFolder(address string) error {
	if isPostgresAddress(address) {
		return nil
	}
	if err := os.MkdirAll(address, 0o700); err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	return nil
}

// Close closes all databases and gives up this instance's leases. No generation may be in use any more.
func (s *Registry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, opened := range s.openDatabases {
		err = errors.Join(err, opened.db.Close())
	}
	if s.db != nil {
		for _, list := range []string{leaseTable.Name, instanceTable.Name} {
			s.db.Exec(ctx, "delete from {"+list+"} where instance = ?", s.InstanceID) // where this fails the leases expire
		}
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// checkEncodingTimeout is how long CheckEncoding waits for a server.
const checkEncodingTimeout = 3 * time.Second

// CheckEncoding returns an *EncodingError for a Postgres database that cannot hold every text. What cannot be reached now is not an error.
func (s *Registry) CheckEncoding(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkEncodingTimeout)
	defer cancel()
	_, err := s.database(ctx)
	if unfit, ok := errors.AsType[*EncodingError](err); ok {
		return unfit
	}
	return nil
}

// database is the registry's own database, opened at first use.
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
	s.noteLostRegistry()
	db, err := s.openRegistryDatabase(ctx)
	if IsDamage(err) && !isPostgresAddress(s.address) {
		s.recordDamage("", &DamagedError{registryFile, "is damaged: " + err.Error()})
		if err := s.renameFiles(registryFile); err != nil {
			return nil, err
		}
		db, err = s.openRegistryDatabase(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
	return db, nil
}

// registrySchema is the Postgres schema of the registry's own tables, and of the views for people.
const registrySchema = "lieudit"

// openRegistryDatabase opens the registry's own database, which lists the generations, and removes the files that it does not
// list. The folder is made again where it was removed under the service.
func (s *Registry) openRegistryDatabase(ctx context.Context) (*DB, error) {
	if err := makeFolder(s.address); err != nil {
		return nil, err
	}
	db, err := Open(ctx, s.databaseAddress(registryFile), Options{Name: registryFile, Schema: registrySchema, Durable: true, Observe: s.Observe, Simulated: s.Simulated})
	if err != nil {
		return nil, err
	}
	err = db.checkStructure(ctx, registryFile)
	if err == nil {
		err = db.Create(ctx, generationTable.Def, leaseTable, instanceTable.Def)
	}
	if err == nil {
		err = s.removeOrphans(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.watchRegistryFile()
	return db, nil
}

func (s *Registry) openedDatabase() *DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db
}

// updateRegistry runs f in a transaction on the registry's tables. All instances take turns.
func (s *Registry) updateRegistry(ctx context.Context, f func(*Tx) error) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	return s.noteRegistryDamage(db.RunInTx(ctx, func(tx *Tx) error {
		if err := tx.Lock(ctx, "registry"); err != nil {
			return err
		}
		return f(tx)
	}))
}

// databaseAddress is where a generation's database is: the one Postgres database, or a file of its own.
func (s *Registry) databaseAddress(name string) string {
	if isPostgresAddress(s.address) {
		return s.address
	}
	return filepath.Join(s.address, name+".db")
}

// linkServingFile gives people a stable name for the file of the generation that serves. Where links cannot be made
// they have to look for the file, so errors are ignored.
func (s *Registry) linkServingFile(g Generation) {
	if isPostgresAddress(s.address) {
		return
	}
	if linked, err := os.Readlink(s.databaseAddress(g.Model)); err == nil && linked == filepath.Base(s.databaseAddress(g.Name)) {
		return
	}
	temporary := s.databaseAddress(g.Name + "-link")
	if os.Symlink(filepath.Base(s.databaseAddress(g.Name)), temporary) == nil {
		os.Rename(temporary, s.databaseAddress(g.Model))
	}
}

// ErrNotReady: no generation of the read model serves yet.
var ErrNotReady = errors.New("not ready yet")

// ErrDiverged: the generation holds events that are not on the log, because an older backup of the log was restored. Nothing
// is answered from it.
var ErrDiverged = errors.New("the read model holds what is not on the log")

// divergences are the generations that this instance has found to hold events that are not on the log.
type divergences struct {
	diverged map[string]bool   // by name
	counts   map[string]uint64 // by model, how often one was found to be
}

// SetDiverged records whether a generation holds events that are not on the log. If it does, reads of it fail at once with
// ErrDiverged, in this instance.
func (s *Registry) SetDiverged(g Generation, isDiverged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.divergences.diverged[g.Name] == isDiverged {
		return
	}
	if s.divergences.diverged == nil {
		s.divergences = divergences{map[string]bool{}, map[string]uint64{}}
	}
	s.divergences.diverged[g.Name] = isDiverged
	if isDiverged {
		s.divergences.counts[g.Model]++
	}
}

// IsDiverged is what SetDiverged recorded last, or false.
func (s *Registry) IsDiverged(g Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.diverged[g.Name]
}

// CountDivergences counts how often a generation of a model was found diverged. A caller that keeps rows in memory must drop
// those read before the count changed.
func (s *Registry) CountDivergences(m table.ReadModel) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.divergences.counts[m.Name]
}

// checkNotDiverged is ErrDiverged for a generation that was recorded as diverged.
func (s *Registry) checkNotDiverged(g Generation) error {
	if s.IsDiverged(g) {
		return fmt.Errorf("%s: %w", g.Name, ErrDiverged)
	}
	return nil
}
