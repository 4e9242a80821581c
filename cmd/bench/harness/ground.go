package harness

import (
	"errors"
	"os"
	"path/filepath"
)

// WorkDir is where processes keep what they need: their folders, and their sockets apart from these, because the name of
// a socket has to be short.
type WorkDir struct {
	dir, socketDir string
	maxDescriptors int // that a process may have open; 0: as many as this one
}

// WithMaxDescriptors is the ground for processes that may have no more than n files and connections open.
func (g WorkDir) WithMaxDescriptors(n int) WorkDir {
	g.maxDescriptors = n
	return g
}

// NewWorkDir makes a ground with its folders in dir.
func NewWorkDir(dir string) (WorkDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return WorkDir{}, err
	}
	var g WorkDir
	if g.dir, err = os.MkdirTemp(dir, "lieudit-bench-"); err != nil {
		return g, err
	}
	if g.socketDir, err = os.MkdirTemp("", "lieudit-"); err != nil {
		return g, errors.Join(err, os.RemoveAll(g.dir))
	}
	return g, nil
}

// Path is that of a process.
func (g WorkDir) Path(name string) string { return filepath.Join(g.dir, name) }

// SocketPath is that of a process.
func (g WorkDir) SocketPath(name string) string { return filepath.Join(g.socketDir, name) }

// Remove removes everything.
func (g WorkDir) Remove() error { return errors.Join(os.RemoveAll(g.dir), os.RemoveAll(g.socketDir)) }
