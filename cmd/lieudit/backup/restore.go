package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/vault"
	"lieudit/schemas/token"
)

// Target is where a backup is restored. Data, TokenPrefixes, Program, Log and Now are required.
type Target struct {
	Data       string // data folder: empty, or absent
	Node       string // folder for the log of a node: empty, or absent; of a backup of a node's log
	EventStore string // esdb://… of EventStoreDB, whose own tools have restored the log; without effect beside Node
	Postgres   string // postgres://… that gets the vault; "": a file of the data folder
	VaultKey   []byte // master key of the vault, nil: none

	AcceptLostKeys bool // restore although the vault lacks keys that the log needs
	TokenPrefixes  token.Prefixes
	Program        string // version of this program
	Progress       Progress
	Log            *slog.Logger
	Now            func() time.Time
}

// Restored is what a restore has done.
type Restored struct {
	Manifest Manifest `json:"sauvegarde"`
	Applied  Applied  `json:"appliques"`
}

// restoringFolder is the folder within the restored ones where a backup is unpacked.
const restoringFolder = "restoring"

// NotEmptyError says that a folder holds something, so that nothing is restored into it.
type NotEmptyError struct {
	Folder        string
	IsInterrupted bool // a restore was cut off while it put its files in their places
}

func (e *NotEmptyError) Error() string {
	if e.IsInterrupted {
		return fmt.Sprintf("%s holds parts of a restore that was cut off: empty it and restore again", e.Folder)
	}
	return fmt.Sprintf("%s is not empty: restore into an empty folder, or an absent one", e.Folder)
}

// UnfinishedError says that a restore into a folder is under way, or was cut off.
type UnfinishedError struct{ Folder string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore into %s is under way or was cut off: lieudit restore begins it anew, once the folder is empty but for %q", e.Folder, restoringFolder)
}

// CheckFinished returns an *UnfinishedError for a folder that must not be opened, because a restore has not ended there.
func CheckFinished(folder string) error {
	if _, err := os.Lstat(filepath.Join(folder, restoringFolder)); err == nil {
		return &UnfinishedError{folder}
	}
	return nil
}

// Restore restores a backup, and repeats what was erased and revoked since it was taken before anything can serve it. It checks
// every sum first. After an error, and after a kill, there is nothing that a service would open: but once the vault went to Postgres
// it stays there.
func Restore(ctx context.Context, file string, t Target, since Since) (done Restored, err error) {
	r, err := openArchive(file)
	if err != nil {
		return done, err
	}
	defer r.close()
	if t.Node != "" {
		t.EventStore = "" // it names the node, which must not run yet
	}
	if err := t.checkKind(r.Manifest); err != nil {
		return done, err
	}
	p := &restoration{Target: t, archive: r}
	defer func() { err = errors.Join(err, p.release(err != nil)) }()
	if err := p.prepare(); err != nil {
		return done, err
	}
	if err := p.unpack(ctx); err != nil {
		return done, err
	}
	applied, err := p.applySince(ctx, since)
	if err != nil {
		return done, err
	}
	if err := p.moveVault(ctx); err != nil {
		return done, err
	}
	return Restored{r.Manifest, applied}, p.publish()
}

// checkKind checks that the flags fit where the log of the backup was.
func (t Target) checkKind(m Manifest) error {
	switch {
	case m.EventStore != (t.EventStore != ""):
		return kindError(m.EventStore, "the log of this backup is on EventStoreDB: restore it there with its own tools first, and name it with --eventstore",
			"the log is in this backup: --eventstore is for one whose log is on EventStoreDB")
	case m.HasNode() != (t.Node != ""):
		return kindError(m.HasNode(), "the log of this backup is that of a node: name an empty folder for it with --node",
			"the log of this backup is that of a data folder: leave --node out")
	}
	return nil
}

func kindError(holds bool, missing, needless string) error {
	if holds {
		return errors.New(missing)
	}
	return errors.New(needless)
}

// restoration is one call of Restore.
type restoration struct {
	Target
	archive *archiveReader
	roots   []*root // the node's folder first, the data folder last
}

// root is a folder that is restored. Its files are unpacked into staging, within it, so that renames put them in their places also
// where the folder is a disk of its own.
type root struct {
	dir, staging string
	lock         *dirlock.Lock
	isNew        bool // the folder was absent
	isPublished  bool // files were put in their places
}

// prepare checks that the folders are empty, locks them and makes the folders for unpacking.
func (p *restoration) prepare() error {
	for _, dir := range []string{p.Node, p.Data} {
		if dir == "" {
			continue
		}
		r := &root{dir: dir, staging: filepath.Join(dir, restoringFolder)}
		p.roots = append(p.roots, r)
		if err := r.prepare(p.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (r *root) prepare(now time.Time) error {
	if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
		r.isNew = true
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return err
		}
	}
	if err := r.requireEmpty(); err != nil {
		return err
	}
	lock, err := dirlock.Acquire(r.dir, now)
	if err != nil {
		return err
	}
	r.lock = lock
	if err := os.RemoveAll(r.staging); err != nil { // of a restore that was killed
		return err
	}
	return os.Mkdir(r.staging, 0o700)
}

// requireEmpty refuses a folder that holds anything but what an empty disk, or a killed restore, holds.
func (r *root) requireEmpty() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	isKilled := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == restoringFolder })
	for _, e := range entries {
		if !slices.Contains([]string{"lock", "lost+found", restoringFolder}, e.Name()) {
			return &NotEmptyError{r.dir, isKilled}
		}
	}
	return nil
}

// release ends the locks. After a failure it removes what was unpacked, unless files were put in their places already.
func (p *restoration) release(hasFailed bool) (err error) {
	for _, r := range p.roots {
		if r.lock == nil {
			continue
		}
		err = errors.Join(err, r.lock.Close())
		if hasFailed && !r.isPublished {
			err = errors.Join(err, os.RemoveAll(r.staging), os.Remove(filepath.Join(r.dir, "lock")))
			if r.isNew {
				err = errors.Join(err, os.Remove(r.dir))
			}
		}
	}
	return err
}

// data is the folder into which the data folder is unpacked; nodeLog that of the node's log.
func (p *restoration) data() string    { return p.roots[len(p.roots)-1].staging }
func (p *restoration) nodeLog() string { return p.roots[0].staging }

// unpack writes all files, synced, and checks their sums.
func (p *restoration) unpack(ctx context.Context) error {
	progress := p.Progress
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if err := p.archive.readFiles(ctx, p.createFile, progress); err != nil {
		return err
	}
	for _, r := range p.roots {
		if err := syncFolders(r.staging); err != nil {
			return err
		}
	}
	return nil
}

// createFile makes the file for an entry of the backup. isKnownName has made sure that it lies below the folder.
func (p *restoration) createFile(f File) (io.WriteCloser, error) {
	path := filepath.Join(p.data(), filepath.FromSlash(f.Name))
	if below, ok := strings.CutPrefix(f.Name, nodeFolder+"/"); ok {
		if !p.archive.HasNode() {
			return nil, &DamagedError{p.archive.path, f.Name, errors.New("there is no log of a node")}
		}
		path = filepath.Join(p.nodeLog(), filepath.FromSlash(below))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return syncedFile{out}, err
}

// syncedFile is synced before it is closed.
type syncedFile struct{ *os.File }

func (f syncedFile) Close() error { return errors.Join(f.Sync(), f.File.Close()) }

func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

// applySince opens the restored log and its vault, checks that they belong together, repeats what was erased and revoked since, and
// records the restore. Both are closed when it returns.
func (p *restoration) applySince(ctx context.Context, since Since) (applied Applied, err error) {
	all := since.list()
	if since.Log != "" {
		found, err := readNewerLog(ctx, since.Log, filepath.Join(p.data(), "newer"), p.archive.Manifest, p.Target)
		if err != nil {
			return applied, fmt.Errorf("reading what was erased and revoked since: %w", err)
		}
		all = append(all, found...)
	}
	log, err := p.openRestoredLog(ctx)
	if err != nil {
		return applied, fmt.Errorf("the restored log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	v, err := vault.New(p.vaultPath(), p.VaultKey, p.Now)
	if err != nil {
		return applied, err
	}
	keys := vault.Bind(v, log, p.Log)
	keys.AcceptLostKeys = p.AcceptLostKeys
	defer func() { err = errors.Join(err, keys.Close()) }()
	if err := keys.Check(ctx); err != nil {
		return applied, fmt.Errorf("the restored vault: %w", err)
	}
	destroyed, err := listDestroyed(ctx, log, p.vaultPath())
	if err != nil {
		return applied, err
	}
	codec := eventstore.NewCodec(keys)
	repetition := newRepetition(log, codec, p.Target)
	if err := repetition.repeatAll(ctx, append(destroyed, all...)); err != nil {
		return applied, err
	}
	return repetition.applied, p.recordRestore(ctx, log, codec)
}

// openRestoredLog opens the log of accounts, keys and sites.
func (p *restoration) openRestoredLog(ctx context.Context) (copiedLog, error) {
	switch {
	case p.EventStore != "":
		server, err := esdb.Open(ctx, p.EventStore, p.Log)
		if err != nil {
			return copiedLog{}, err
		}
		return copiedLog{server, server.Close}, nil
	case p.Node != "":
		return openLog(ctx, NodeLog, p.nodeLog(), p.Now, p.Log)
	}
	return openLog(ctx, CoreLog, filepath.Join(p.data(), logFolder, CoreLog), p.Now, p.Log)
}

// recordRestore appends to the log that it was restored. Of a log on EventStoreDB it is not known up to where.
func (p *restoration) recordRestore(ctx context.Context, log eventstore.Store, codec *eventstore.Codec) error {
	var last eventstore.Position
	if l := p.archive.mainLog(); l != nil {
		last = l.LastAt
	}
	if err := deployment.New(log, codec, p.Program).RecordRestore(ctx, restoreMetadata, p.archive.TakenAt, last); err != nil {
		return fmt.Errorf("recording the restore: %w", err)
	}
	return nil
}

func (p *restoration) vaultPath() string { return filepath.Join(p.data(), vaultFile) }

// moveVault moves the vault to Postgres, where there must be no keys yet.
func (p *restoration) moveVault(ctx context.Context) error {
	if p.Postgres == "" {
		return nil
	}
	if _, err := vault.Copy(ctx, p.vaultPath(), p.Postgres); err != nil {
		if errors.Is(err, vault.ErrHasKeys) {
			err = fmt.Errorf("%w in Postgres. Where no service needs it: drop schema vault cascade", err)
		}
		return err
	}
	for _, name := range []string{vaultFile, vaultFile + "-journal"} {
		if err := os.Remove(filepath.Join(p.data(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// publish puts all files in their places and then removes the folders that keep a service from starting. From its first rename on
// nothing is undone: what is whole is in place, or waits beside it.
func (p *restoration) publish() error {
	for _, r := range p.roots {
		r.isPublished = true
		if err := r.publish(); err != nil {
			return err
		}
	}
	for _, r := range p.roots {
		if err := errors.Join(os.RemoveAll(r.staging), syncDir(r.dir)); err != nil {
			return err
		}
	}
	return nil
}

// publish renames the entries of staging into the folder, but for the locks that were taken there.
func (r *root) publish() error {
	if err := syncFolders(r.staging); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.staging)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.Rename(filepath.Join(r.staging, e.Name()), filepath.Join(r.dir, e.Name())); err != nil {
			return err
		}
	}
	return syncDir(r.dir)
}
