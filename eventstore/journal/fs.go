package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"lieudit/eventstore/disk/osfile"
)

// FS is the folder of a journal. Names hold no slash. The journal relies on two promises only: after a successful Sync the
// bytes of a file survive a power cut, and so does a name after a successful SyncDir.
type FS interface {
	// Open opens a file for reading and writing. With create it makes the file, or empties an existing one.
	Open(name string, create bool) (File, error)
	// Names returns the names of all files, in any order.
	Names() ([]string, error)
	// Rename gives a file, which may be open, another name. A file that had that name is replaced.
	Rename(from, to string) error
	// IsSame reports whether a name still refers to an open file.
	IsSame(name string, f File) (bool, error)
	// Remove removes a file.
	Remove(name string) error
	// SyncDir returns when all names of the folder are on disk.
	SyncDir() error
}

// File is one file of an FS, safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync returns when the file's bytes are on disk. After an error the state of everything written since the last
	// successful Sync is unknown.
	Sync() error
	// Reserve allocates size bytes, or fails at once if there is no room.
	Reserve(size int64) error
}

// Dir is a folder of the operating system, the FS of every journal outside tests.
func Dir(path string) FS { return osDir(path) }

// osDir is the path of a folder of the operating system.
type osDir string

func (d osDir) path(name string) string { return filepath.Join(string(d), name) }

func (d osDir) Open(name string, create bool) (File, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE | os.O_TRUNC
	}
	f, err := osfile.OpenFile(d.path(name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (d osDir) Rename(from, to string) error { return osfile.Rename(d.path(from), d.path(to)) }
func (d osDir) Remove(name string) error     { return os.Remove(d.path(name)) }

func (d osDir) IsSame(name string, f File) (bool, error) {
	named, err := os.Stat(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := f.(osFile).Stat()
	return err == nil && os.SameFile(named, opened), err
}

func (d osDir) SyncDir() error { return osfile.SyncFolder(string(d)) }

// ReadOnlyDir is a folder of the operating system whose files are opened for reading only. WalkLog reads it while another
// process writes it.
func ReadOnlyDir(path string) FS { return readOnlyDir{osDir(path)} }

type readOnlyDir struct{ osDir }

func (d readOnlyDir) Open(name string, _ bool) (File, error) {
	f, err := osfile.OpenFile(d.path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error              { return datasync(f.File) }
func (f osFile) Reserve(size int64) error { return reserve(f.File, size) }

// revocableFS is a folder whose names can no longer be changed once it is revoked. Open files can still be written.
type revocableFS struct {
	FS
	mu        sync.Mutex // held while names change
	isRevoked bool
}

// errRevoked: the folder may belong to another process by now, so no name in it is changed.
var errRevoked = errors.New("the folder is no longer this log's")

// revoke waits for a change in progress and refuses all later ones.
func (d *revocableFS) revoke() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isRevoked = true
}

// changeNames makes a change unless the folder is revoked.
func (d *revocableFS) changeNames(change func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isRevoked {
		return errRevoked
	}
	return change()
}

func (d *revocableFS) Open(name string, create bool) (f File, err error) {
	if !create {
		return d.FS.Open(name, false)
	}
	err = d.changeNames(func() (err error) {
		f, err = d.FS.Open(name, true)
		return err
	})
	return f, err
}

func (d *revocableFS) Rename(from, to string) error {
	return d.changeNames(func() error { return d.FS.Rename(from, to) })
}

func (d *revocableFS) Remove(name string) error {
	return d.changeNames(func() error { return d.FS.Remove(name) })
}
