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
	"strings"
	"time"

	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/vault"
	"lieudit/schemas/token"
)

// Target names what a backup is restored to. Data, TokenPrefixes, Program, Log and Now are required.
type Target struct {
	Data       string // data folder: empty, or absent
	Node       string // folder for the log of a node: empty, or absent; of a backup of a node's log
	EventStore string // esdb://… of EventStoreDB, whose own tools have restored the log; without effect next to Node
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

	// The part of the newer log that could not be read was not repeated. The fields below are zero if NewerDamage is empty.
	NewerDamage string     `json:"dommage,omitempty"`                 // why it could not be read whole
	NewerUntil  *time.Time `json:"lu_jusqu_a,omitempty"`              // nothing is missing up to here; nil: not known
	NewerBehind int        `json:"evenements_apres_dommage,omitzero"` // events that could be read behind the damage
}

// Restore restores a backup. Before anything can serve it, Restore repeats what was erased and revoked since it was taken. It checks
// every sum first. After an error or a kill there is nothing that a service would open, but a vault that was already copied to Postgres
// stays there.
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
	done.Manifest = r.Manifest
	all := since.list()
	if since.Log != "" {
		found, err := p.readNewer(ctx, since.Log)
		if err != nil {
			return done, fmt.Errorf("reading what was erased and revoked since: %w", err)
		}
		done.NewerDamage, done.NewerBehind = found.damage, found.behind
		if !found.until.IsZero() {
			done.NewerUntil = &found.until
		}
		all = append(all, found.all...)
	}
	if done.Applied, err = p.applySince(ctx, all, !since.isNothing()); err != nil {
		return done, err
	}
	if err := p.moveVault(ctx); err != nil {
		return done, err
	}
	return done, p.publish()
}

// checkKind checks that the flags fit the kind of log that was backed up.
func (t Target) checkKind(m Manifest) error {
	switch {
	case m.EventStore != (t.EventStore != ""):
		return kindError(m.EventStore,
			"the log of this backup is on EventStoreDB: restore it there with its own tools first, and name it with --eventstore",
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

// release ends the locks. After a failure it removes what was unpacked, unless publishing has begun.
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

// data is the folder into which the data folder is unpacked, nodeLog that of the node's log.
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

// readNewer reads what was erased and revoked since from the folder of the newer log.
func (p *restoration) readNewer(ctx context.Context, dir string) (newerContents, error) {
	newer, err := newNewerLog(dir, filepath.Join(p.data(), "newer"), p.archive.Manifest, p.Target)
	if err != nil {
		return newerContents{}, err
	}
	return newer.read(ctx)
}

// applySince opens the restored log and its vault, checks that they belong together, repeats what was erased and revoked since, and
// records the restore. It closes both before it returns. The vault of a copy is newer than its logs: if it shows that a key was
// destroyed, the account was erased. endsSessions ends all sessions.
func (p *restoration) applySince(ctx context.Context, all []repeated, endsSessions bool) (applied Applied, err error) {
	log, err := p.openRestoredLog(ctx)
	if err != nil {
		return applied, fmt.Errorf("the restored log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	format := deployment.New(log, eventstore.NewCodec(nil), p.Program)
	if _, err := format.CheckFormat(ctx); err != nil {
		return applied, err
	}
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
	codec := eventstore.NewCodec(keys).WithFormat(format.HasFormat)
	repetition := newRepetition(log, codec, p.Target)
	if err = repetition.repeatAll(ctx, append(destroyed, all...)); err != nil {
		return applied, err
	}
	if endsSessions {
		if err = repetition.endSessions(ctx, log); err != nil {
			return applied, err
		}
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

// recordRestore records the restore on the log. On EventStoreDB the restored position is unknown.
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

// moveVault moves the vault to Postgres, which must not hold any keys yet.
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

// publish moves all files to their final paths and then removes the folders that keep a service from starting. From its first rename on
// nothing is undone: all files are whole, and moved or still to be moved.
func (p *restoration) publish() error {
	for _, r := range p.roots {
		r.isPublished = true
		if err := r.publish(); err != nil {
			return err
		}
	}
	for _, r := range p.roots {
		if err := errors.Join(os.RemoveAll(r.staging), osfile.SyncFolder(r.dir)); err != nil {
			return err
		}
	}
	return nil
}
