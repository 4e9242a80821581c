package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/table"
)

// The files of read models can be lost and damaged like any other. They are derived from the log, so nothing is repaired: a
// damaged file is moved aside, and a new generation replaces it. Damage is found when a file is opened (inspectFile,
// verifyGeneration), when it is read or written (noteDamage), and when it is changed under the service (CheckFiles):
//
//	damage ──► recordDamage ──► Damaged ──► PutAside ──► BuildGeneration ──► PromoteGeneration removes what was put aside
//	               └─ reads fail from here on
//
// SQLite keeps no checksums: a bit that flips within a value, and breaks no structure, is not noticed. On Postgres all this
// does nothing.

// DamagedError: the file of a generation is lost or damaged. Nothing is answered from it.
type DamagedError struct{ Generation, Reason string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s.db %s: it is made again from the log", e.Generation, e.Reason)
}

// registryFile is the name of the registry's own database.
const registryFile = "registry"

// maxCheckedSize is the largest file whose structure is checked when it is opened. A larger one would delay the start.
const maxCheckedSize = 64 << 20

// putAsideSuffix follows the name of a file that was put aside.
const putAsideSuffix = ".damaged"

// damage is a generation whose file is lost or damaged.
type damage struct {
	model      string
	reason     string
	isPutAside bool
	isReplaced bool // another generation of the model serves
}

// damages are the damages that this instance has found, by the generation's name.
type damages map[string]*damage

// IsDamage reports whether an error of a SQLite database comes from a file that is truncated, overwritten, replaced or lost.
func IsDamage(err error) bool {
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		return true
	}
	var sqliteErr *driver.Error
	if !errors.As(err, &sqliteErr) {
		return false
	}
	switch sqliteErr.Code() {
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_READONLY_DBMOVED:
		return true
	}
	primary := sqliteErr.Code() & 0xff
	return primary == sqlite3.SQLITE_CORRUPT || primary == sqlite3.SQLITE_NOTADB
}

// inspectFile returns the file of a generation that is about to be opened, nil if it need not exist yet. It returns a
// *DamagedError if the file is missing or empty: opening it would make an empty database.
func (s *Registry) inspectFile(g Generation) (os.FileInfo, error) {
	if isPostgresAddress(s.address) || g.State == Creating {
		return nil, nil
	}
	found, err := os.Stat(s.databaseAddress(g.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DamagedError{g.Name, "is missing"}
	case err == nil && found.Size() == 0:
		return nil, &DamagedError{g.Name, "is empty"}
	}
	return found, err
}

// verifyGeneration checks the structure of an opened file, unless it is large, and that it holds this generation. If file is
// nil there is nothing to check.
func (db *DB) verifyGeneration(ctx context.Context, g Generation, file os.FileInfo) error {
	if file == nil {
		return nil
	}
	if file.Size() <= maxCheckedSize {
		if err := db.checkStructure(ctx, g.Name); err != nil {
			return err
		}
	}
	var found string
	err := db.QueryRow(ctx, "select coalesce(max(copy), '') from {checkpoint}").Scan(&found)
	switch {
	case IsMissingTable(err):
		return &DamagedError{g.Name, "has lost its tables"}
	case err != nil:
		return db.wrapError(ctx, err)
	case found != g.Name:
		return &DamagedError{g.Name, fmt.Sprintf("holds %q", found)}
	}
	return nil
}

// checkStructure returns a *DamagedError if SQLite finds the structure of the file broken.
func (db *DB) checkStructure(ctx context.Context, name string) error {
	if !db.dialect.hasWAL {
		return nil
	}
	var found string
	if err := db.QueryRow(ctx, "pragma quick_check(1)").Scan(&found); err != nil {
		return db.wrapError(ctx, err)
	}
	if found != "ok" {
		return &DamagedError{name, "is damaged: " + found}
	}
	return nil
}

// noteDamage returns an error of a generation. If it is damage, it is recorded and the error is a *DamagedError.
func (s *Registry) noteDamage(g Generation, err error) error {
	if err == nil || isPostgresAddress(s.address) || g.State == Creating || !IsDamage(err) {
		return err
	}
	damaged, ok := errors.AsType[*DamagedError](err)
	if !ok {
		damaged = &DamagedError{g.Name, "is damaged: " + err.Error()}
	}
	s.recordDamage(g.Model, damaged)
	return damaged
}

// NoteDamage records an error of a generation's database if it is damage. Users of a database from OpenGeneration call it;
// Read does so itself.
func (s *Registry) NoteDamage(g Generation, err error) { s.noteDamage(g, err) }

// recordDamage records a damage, and logs it once.
func (s *Registry) recordDamage(model string, e *DamagedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isRegistry := e.Generation == registryFile // it is made anew at once, and may be damaged again
	if s.damages[e.Generation] != nil && !isRegistry {
		return
	}
	s.damages[e.Generation] = &damage{model: model, reason: e.Error(), isPutAside: isRegistry}
	s.Log.Error("a file of a read model is lost or damaged", "file", e.Generation+".db", "reason", e)
}

// checkUndamaged returns a *DamagedError for a generation that was found damaged.
func (s *Registry) checkUndamaged(g Generation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damages[g.Name] != nil {
		return &DamagedError{g.Name, "was found damaged"}
	}
	return nil
}

// Damaged are the generations that were found damaged and not moved aside yet.
func (s *Registry) Damaged() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range s.damages {
		if !d.isPutAside {
			names = append(names, name)
		}
	}
	return names
}

// Replacement is why a read model is being rebuilt: what was wrong with the file of the previous generation. It is "" at
// other times.
func (s *Registry) Replacement(m table.ReadModel) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range s.damages {
		if !d.isReplaced && (d.model == m.Name || name == registryFile) {
			return d.reason
		}
	}
	return ""
}

// markReplaced notes that a generation has replaced the damaged ones of its model.
func (s *Registry) markReplaced(g Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range s.damages {
		if d.model == g.Model && name != g.Name {
			d.isReplaced = true
		}
	}
}

// PutAside renames the files of a damaged generation and forgets the generation. By then nobody in this instance may write
// it.
func (s *Registry) PutAside(ctx context.Context, name string) error {
	err := s.updateRegistry(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "update {copy} set state = 'dropped' where name = ?", name)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.renameFiles(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damages[name].isPutAside = true
	return nil
}

// renameFiles moves the files of a database aside. Missing files are not an error.
func (s *Registry) renameFiles(name string) error {
	for _, suffix := range sqliteSuffixes() {
		path := s.databaseAddress(name) + suffix
		if err := osfile.Rename(path, s.databaseAddress(name)+putAsideSuffix+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sqliteSuffixes are what SQLite adds to the name of a database's file for the files next to it.
func sqliteSuffixes() []string { return []string{"", "-wal", "-shm"} }

// noteRegistryDamage returns an error of the registry's own database. If it is damage, a new database is made at the next
// use.
func (s *Registry) noteRegistryDamage(err error) error {
	if isPostgresAddress(s.address) || !IsDamage(err) {
		return err
	}
	damaged := &DamagedError{registryFile, "is damaged: " + err.Error()}
	s.resetDatabase(s.registryState(), damaged)
	return damaged
}

// noteLostRegistry records that the registry's own database is missing although there are files of generations.
func (s *Registry) noteLostRegistry() {
	if isPostgresAddress(s.address) || s.isRegistryDamaged() {
		return
	}
	entries, _ := os.ReadDir(s.address) // a folder that cannot be read fails the caller soon enough
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return generationFile.MatchString(e.Name()) }) {
		return
	}
	switch found, err := os.Stat(s.databaseAddress(registryFile)); {
	case errors.Is(err, fs.ErrNotExist):
		s.recordDamage("", &DamagedError{registryFile, "is missing"})
	case err == nil && found.Size() == 0:
		s.recordDamage("", &DamagedError{registryFile, "is empty"})
	}
}

// isRegistryDamaged reports whether damage of the registry's own database was recorded since the start.
func (s *Registry) isRegistryDamaged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damages[registryFile] != nil
}

// resetDatabase closes the registry's own database and moves its file aside. The next use makes a new one, which lists no
// generations: all are rebuilt. It does nothing if the database no longer is the one of the file: another caller was faster.
func (s *Registry) resetDatabase(file *openFile, why *DamagedError) {
	s.mu.Lock()
	db := s.db
	if db == nil || s.file != file {
		s.mu.Unlock()
		return
	}
	s.db, s.file = nil, nil
	s.mu.Unlock()
	s.recordDamage("", why)
	if err := errors.Join(s.renameFiles(registryFile), db.Close()); err != nil {
		s.Log.Warn("the damaged registry of read models could not be put aside", "reason", err)
	}
}

// CheckFiles checks the open files, and records those that were removed, replaced or truncated since: SQLite would go on writing to a file
// that has no name, and all of it would be lost when the file is closed. It costs one system call per file.
func (s *Registry) CheckFiles(ctx context.Context) {
	if isPostgresAddress(s.address) {
		return
	}
	for name, opened := range s.listOpen() {
		if reason := opened.file.compare(s.databaseAddress(name)); reason != "" {
			s.recordOpenDamage(opened, &DamagedError{name, reason})
		} else if opened.file.hasNewHoles() {
			s.checkHoles(ctx, name, opened)
		}
	}
	file := s.registryState()
	if reason := file.compare(s.databaseAddress(registryFile)); reason != "" {
		s.resetDatabase(file, &DamagedError{registryFile, reason})
	}
}

// recordOpenDamage is recordDamage for a generation that was open, unless it was closed meanwhile: its file may be dropped by now.
func (s *Registry) recordOpenDamage(opened *openDatabase, e *DamagedError) {
	if s.listOpen()[e.Generation] == opened {
		s.recordDamage(opened.model, e)
	}
}

// holesCheckTimeout bounds the check of one file. A check that did not end is repeated.
const holesCheckTimeout = 5 * time.Second

// checkHoles checks the structure of a file that has new holes, and records damage. It was truncated, and a checkpoint has made it as long
// again as the header of the write-ahead log says, with a hole for each page that the log does not hold. Only new connections see that:
// those that are open have read such pages before. A file that is too large to check is left until a page is missed.
func (s *Registry) checkHoles(ctx context.Context, name string, opened *openDatabase) {
	if opened.file.size <= maxCheckedSize {
		ctx, cancel := context.WithTimeout(ctx, holesCheckTimeout)
		defer cancel()
		err := s.checkAnew(ctx, name)
		if IsDamage(err) {
			s.recordOpenDamage(opened, &DamagedError{name, "was truncated while in use"})
		} else if err != nil {
			return
		}
	}
	opened.file.acceptHoles()
}

// checkAnew is checkStructure with new connections to the file of a generation.
func (s *Registry) checkAnew(ctx context.Context, name string) (err error) {
	db, err := Open(ctx, s.databaseAddress(name), Options{Name: name, Simulated: s.Simulated})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.checkStructure(ctx, name)
}

// watchRegistryFile remembers the file of the registry's own database for CheckFiles.
func (s *Registry) watchRegistryFile() {
	if isPostgresAddress(s.address) {
		return
	}
	info, err := os.Stat(s.databaseAddress(registryFile))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = newOpenFile(info)
}

func (s *Registry) registryState() *openFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file
}

// openFile is a file as it was when it was opened, with its largest size so far. A nil one is compared with nothing. Only one goroutine at
// a time may use it.
type openFile struct {
	info       os.FileInfo
	size       int64
	holes      int64 // bytes of the file that take no room on the disk, as compare found them
	fewest     int64 // the fewest that holes was, or that are accepted
	acceptedAt time.Time
}

// newOpenFile remembers a file. It is nil for nil.
func newOpenFile(info os.FileInfo) *openFile {
	if info == nil {
		return nil
	}
	holes := osfile.Holes(info)
	return &openFile{info: info, size: info.Size(), holes: holes, fewest: holes}
}

// compare returns what has happened to the file at a path since, or "". An unknown change counts as none. Such a file never
// shrinks on its own, since nothing vacuums it.
func (f *openFile) compare(path string) string {
	if f == nil {
		return ""
	}
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "was removed while in use"
	case err != nil:
		return ""
	case !os.SameFile(now, f.info):
		return "was replaced while in use"
	case now.Size() < f.size:
		return "was truncated while in use"
	}
	f.size, f.holes = now.Size(), osfile.Holes(now)
	f.fewest = min(f.fewest, f.holes)
	return ""
}

// acceptInterval is the least time between two times that more holes are accepted.
const acceptInterval = 5 * time.Minute

// hasNewHoles reports whether the file has more holes than before. Some file systems make holes on their own, such as those that compress:
// there it reports that once in a while.
func (f *openFile) hasNewHoles() bool {
	return f != nil && f.holes > f.fewest && time.Since(f.acceptedAt) >= acceptInterval
}

// acceptHoles makes the holes that the file has now the ones to expect.
func (f *openFile) acceptHoles() { f.fewest, f.acceptedAt = f.holes, time.Now() }

// generationFile is the name of a file of a generation, whatever follows: places-v2-g1.db-wal.
var generationFile = regexp.MustCompile(`^((.+)-v(\d+)-g(\d+))\.db`)

// highestNumber is the highest number of a generation of the model among the files, now or earlier in this process. A lost
// registry does not know them.
func (s *Registry) highestNumber(m table.ReadModel) (highest int64) {
	if isPostgresAddress(s.address) {
		return 0
	}
	names := s.openNames()
	entries, _ := os.ReadDir(s.address) // a folder that cannot be read fails the caller soon enough
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range names {
		found := generationFile.FindStringSubmatch(name)
		if found == nil || found[2] != m.Name || found[3] != strconv.Itoa(m.Version) {
			continue
		}
		if number, err := strconv.ParseInt(found[4], 10, 64); err == nil {
			highest = max(highest, number)
		}
	}
	return highest
}

// openNames are the names of the files that this instance has open.
func (s *Registry) openNames() (names []string) {
	for name := range s.listOpen() {
		names = append(names, name+".db")
	}
	return names
}

// removeOrphans removes the files of generations that the registry does not list: they were moved aside, or the registry was
// lost. They may hold data of an account that was erased since. Files that this instance has open stay until the next call.
func (s *Registry) removeOrphans(ctx context.Context, db *DB) error {
	if isPostgresAddress(s.address) {
		return nil
	}
	entries, err := os.ReadDir(s.address) // before the registry is read: a generation is entered there before its file is made
	if err != nil {
		return err
	}
	listed, err := Select(ctx, db, generationTable, "where state <> 'dropped'")
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, g := range listed {
		kept[g.Name] = true
	}
	for name := range s.listOpen() {
		kept[name] = true
	}
	for _, e := range entries {
		found := generationFile.FindStringSubmatch(e.Name())
		if found != nil && (!kept[found[1]] || strings.Contains(e.Name(), putAsideSuffix)) {
			if removeErr := os.Remove(filepath.Join(s.address, e.Name())); !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}
