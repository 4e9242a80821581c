package fleet

import (
	"errors"
	"os"
	"path/filepath"
)

// Ground is where processes keep what they need: their folders, and their sockets apart from these, because the name of
// a socket has to be short.
type Ground struct {
	folders, sockets string
	descriptors      int // that a process may have open; 0: as many as this one
}

// WithDescriptors is the ground for processes that may have no more than n files and connections open.
func (g Ground) WithDescriptors(n int) Ground {
	g.descriptors = n
	return g
}

// NewGround makes a ground with its folders in dir.
func NewGround(dir string) (Ground, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Ground{}, err
	}
	var g Ground
	if g.folders, err = os.MkdirTemp(dir, "lieudit-bench-"); err != nil {
		return g, err
	}
	if g.sockets, err = os.MkdirTemp("", "lieudit-"); err != nil {
		return g, errors.Join(err, os.RemoveAll(g.folders))
	}
	return g, nil
}

// Folder is that of a process.
func (g Ground) Folder(name string) string { return filepath.Join(g.folders, name) }

// Socket is that of a process.
func (g Ground) Socket(name string) string { return filepath.Join(g.sockets, name) }

// Clear removes everything.
func (g Ground) Clear() error { return errors.Join(os.RemoveAll(g.folders), os.RemoveAll(g.sockets)) }
