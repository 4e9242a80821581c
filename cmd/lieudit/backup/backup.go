// Package backup copies a service into one file while it runs, and restores such a file into an empty folder. A restore either leaves a
// whole service that opens, or nothing that a service would open; and what was erased or revoked after the copy stays so.
//
//	Create ──> offline.CopyLog (core, usage), then vault.Copy, then the releases ──> writeArchive ──> FILE
//	Restore ─> archiveReader.readFiles ──> DATA/restoring ──> applySince, RecordRestore ──> DATA
//	Verify ──> archiveReader.readFiles ──> nowhere
//
// The order makes the copy consistent without stopping anybody: the vault comes after the logs, so that it has the key of every
// sealed event that they hold. A backup is a tar file, compressed with zstd, that the usual tools unpack too: manifest.json first,
// the files of a data folder after it, SHA256SUMS last. A file that ends early has no sums and is refused.
//
// The folder "restoring" in a data folder marks a restore that is under way there, or was cut off. It is removed last; until then
// CheckFinished makes a service and a node refuse to start.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/journal/offline"
	"lieudit/eventstore/vault"
)

// Source is the service that is copied. Data, Program, Log and Now are required.
type Source struct {
	Data       string // its data folder
	Node       string // folder of the node that keeps its log; "": another log
	EventStore string // esdb://… of EventStoreDB, which keeps its log and is not copied; without effect next to Node
	Postgres   string // postgres://… with the vault; "": a file of the data folder

	WithoutVintages bool // leave the served vintage out: its inherited ids are then lost with the folder
	WithoutNetworks bool // leave the served road network out

	Program  string // version of this program
	Progress Progress
	Log      *slog.Logger
	Now      func() time.Time
}

// OtherVaultError means that a vault belongs to a log other than the copied one.
type OtherVaultError struct {
	Vault string // UUID of the log of the vault
	Log   uuid.UUID
}

func (e *OtherVaultError) Error() string {
	return fmt.Sprintf("the vault belongs to the log %s and the log is %s: name both of one service (--node, --eventstore, --postgres)",
		e.Vault, e.Log)
}

// Create copies a service into a new file that only its owner can read. The service may run meanwhile, undisturbed. Everything
// acknowledged before the call is in the file. An existing file is an error that wraps fs.ErrExist. After an error there is no
// file. Next to the file there must be room for an uncompressed copy of the logs.
func Create(ctx context.Context, s Source, file string) (m Manifest, err error) {
	if err := errors.Join(requireAbsent(file), s.requireOutside(file)); err != nil {
		return m, err
	}
	work := file + partialSuffix
	if err := makeWorkFolder(work); err != nil {
		return m, err
	}
	lock, err := dirlock.Acquire(work, s.Now())
	if err != nil {
		return m, fmt.Errorf("another backup: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close(), os.RemoveAll(work)) }()
	if err := removeAllBut(work, "lock"); err != nil {
		return m, err
	}
	c := &creation{Source: s, work: work}
	defer c.closeFiles()
	c.manifest = Manifest{Format: Format, Program: s.Program, TakenAt: s.Now().UTC().Truncate(time.Microsecond)}
	if err := c.collectParts(ctx); err != nil {
		return m, err
	}
	if err := c.writeFile(ctx, filepath.Join(work, archiveName)); err != nil {
		return m, err
	}
	if err := c.checkVault(ctx); err != nil {
		return m, err
	}
	if err := requireAbsent(file); err != nil {
		return m, err
	}
	if err := osfile.Rename(filepath.Join(work, archiveName), file); err != nil {
		return m, err
	}
	return c.manifest, osfile.SyncFolder(filepath.Dir(file))
}

// creation is one call of Create: the manifest and the parts grow together, in the same order.
type creation struct {
	Source
	work     string
	manifest Manifest
	parts    []part
	vaultLog string // UUID of the log that the copied vault belongs to

	openFiles []*os.File
}

// collectParts copies what changes into the work folder, in the order that makes it consistent, and lists all files.
func (c *creation) collectParts(ctx context.Context) error {
	if err := c.copyLogs(ctx); err != nil {
		return err
	}
	if err := c.copyVault(ctx); err != nil {
		return err
	}
	if err := addRelease(c, vintages.FolderIn(c.Data), c.WithoutVintages); err != nil {
		return err
	}
	if err := addRelease(c, networks.FolderIn(c.Data), c.WithoutNetworks); err != nil {
		return err
	}
	return c.addFileIfPresent(tokenFile)
}

// copyLogs copies the log of the node, or the two logs of the data folder; of EventStoreDB only the UUID is read.
func (c *creation) copyLogs(ctx context.Context) error {
	switch {
	case c.Node != "":
		return c.copyLog(ctx, NodeLog, c.Node, nodeFolder)
	case c.EventStore != "":
		return c.readEventStore(ctx)
	}
	for _, name := range []string{CoreLog, UsageLog} {
		if err := c.copyLog(ctx, name, filepath.Join(c.Data, logFolder, name), logFolder+"/"+name); err != nil {
			return err
		}
	}
	c.manifest.LogID = c.manifest.mainLog().ID
	return nil
}

// eventStoreTimeout bounds the requests to EventStoreDB, for which its client would wait forever.
const eventStoreTimeout = time.Minute

func (c *creation) readEventStore(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, eventStoreTimeout)
	defer cancel()
	server, err := esdb.Open(ctx, c.EventStore, c.Log)
	if err != nil {
		return fmt.Errorf("event store: %w", err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c.manifest.EventStore = true
	if c.manifest.LogID, err = server.Identity(ctx); err != nil {
		return fmt.Errorf("event store: %w", err)
	}
	return nil
}

// copyLog copies a log and lists its files below a folder of the backup.
func (c *creation) copyLog(ctx context.Context, name, from, to string) error {
	dir := filepath.Join(c.work, name)
	copied, err := offline.CopyLog(ctx, from, dir)
	if errors.Is(err, journal.ErrNoLog) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no log in %s: name the data folder of the service with --data, or a node's folder with --node", from)
	}
	if err != nil {
		return fmt.Errorf("the log %s: %w", name, err)
	}
	c.manifest.Logs = append(c.manifest.Logs, Log{
		Name: name, ID: copied.LogID, Events: copied.Events, End: copied.End,
		Last: copied.Last.Event, LastAt: copied.Last.Position, Until: copied.LastTime.UTC(),
	})
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil {
			err = c.addFile(to+"/"+e.Name(), filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// copyVault copies the vault after the logs.
func (c *creation) copyVault(ctx context.Context) error {
	from, to := c.Postgres, filepath.Join(c.work, vaultFile)
	if from == "" {
		from = filepath.Join(c.Data, vaultFile)
	}
	copied, err := vault.Copy(ctx, from, to)
	if err != nil {
		return err
	}
	c.manifest.VaultRows, c.vaultLog = copied.Rows, copied.Log
	if c.Node != "" && copied.Log != "" { // checkVault verifies it
		if c.manifest.LogID, err = uuid.Parse(copied.Log); err != nil {
			return err
		}
	}
	return c.addFile(vaultFile, to)
}

// checkVault checks that the copied vault belongs to the copied log. On a node the log's name is an event, so the copy is opened,
// once it is in the file and of no more use: opening it changes it.
func (c *creation) checkVault(ctx context.Context) error {
	if c.vaultLog == "" {
		return nil
	}
	id := c.manifest.LogID
	if c.Node != "" {
		log, err := openLog(ctx, NodeLog, filepath.Join(c.work, NodeLog), c.Now, c.Log)
		if err != nil {
			return fmt.Errorf("the copy of the log: %w", err)
		}
		id, err = log.Identity(ctx)
		if err := errors.Join(err, log.Close()); err != nil {
			return fmt.Errorf("the copy of the log: %w", err)
		}
	}
	if c.vaultLog != id.String() {
		return &OtherVaultError{c.vaultLog, id}
	}
	return nil
}

// addRelease lists the served release with the files that name it. Without the release itself the folder still records that it had
// real data, so that a service does not invent any.
func addRelease[F any](c *creation, folder releases.Folder[F], isLeftOut bool) error {
	name, err := folder.ServedOrCurrent()
	if err != nil {
		return err
	}
	layout := folder.LayoutOf(name)
	if name != "" && !isLeftOut {
		if err := c.addOpenFile(layout.File, folder.Path(name)); err != nil {
			return err
		}
		c.addText(layout.CurrentFile, name+"\n")
	}
	return c.addFileIfPresent(layout.LastRealFile)
}

func (c *creation) addFile(name, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	c.addPart(part{File: File{name, info.Size()}, path: path})
	return nil
}

// addOpenFile lists a file that an import may remove at any time, and keeps it open until it is written.
func (c *creation) addOpenFile(name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	c.openFiles = append(c.openFiles, file)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	c.addPart(part{File: File{name, info.Size()}, open: file})
	return nil
}

func (c *creation) closeFiles() {
	for _, file := range c.openFiles {
		file.Close() // they were only read
	}
}

// addFileIfPresent reads a small file of the data folder, if it exists.
func (c *creation) addFileIfPresent(name string) error {
	text, err := os.ReadFile(filepath.Join(c.Data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c.addText(name, string(text))
	return err
}

func (c *creation) addText(name, text string) {
	c.addPart(part{File: File{name, int64(len(text))}, text: []byte(text)})
}

func (c *creation) addPart(p part) {
	c.parts, c.manifest.Files = append(c.parts, p), append(c.manifest.Files, p.File)
}

// writeFile writes the archive to a new file and syncs it.
func (c *creation) writeFile(ctx context.Context, path string) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	progress := c.Progress
	if progress == nil {
		progress = func(int64, int64) {}
	}
	err = writeArchive(ctx, out, c.manifest, c.parts, progress)
	return errors.Join(err, out.Sync(), out.Close())
}

// Group is the files of a backup that belong together.
type Group struct {
	Name  string // "core", "usage" or "node" for a log; otherwise the folder or the file
	Files int
	Bytes int64
}

// Groups sums the files up, in the order in which they stand in the backup. A log has the size of what was written: its last file is
// made ahead.
func (m Manifest) Groups() (groups []Group) {
	for _, f := range m.Files {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Name, logFolder+"/"), "/")
		if len(groups) == 0 || groups[len(groups)-1].Name != name {
			groups = append(groups, Group{Name: name})
		}
		last := &groups[len(groups)-1]
		last.Files, last.Bytes = last.Files+1, last.Bytes+f.Size
	}
	for i := range groups {
		for _, l := range m.Logs {
			if l.Name == groups[i].Name {
				groups[i].Bytes = int64(l.End)
			}
		}
	}
	return groups
}
