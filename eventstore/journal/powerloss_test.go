package journal_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"lieudit/eventstore/journal"
)

var errPowerOff = errors.New("the power is off")

// powerLossFS is a journal.FS in memory that loses power. Synced data survives; of the rest it keeps a random part: single
// sectors of files, single names of the folder.
type powerLossFS struct {
	mu          sync.Mutex
	rng         *rand.Rand
	files       map[string]*inode
	syncedFiles map[string]*inode
	opsLeft     int // operations until the power fails, negative for never
	isOff       bool

	capacity int64 // bytes all files together may hold, 0 for no limit
	// fault may fail an operation ("write", "sync") on a file.
	fault func(op, name string) error
}

// inode is one file: what programs see, what is on disk, and which sectors differ.
type inode struct {
	cached, disk []byte
	dirtySectors map[int]bool
}

const sectorSize = 512

func newPowerLossFS(seed uint64) *powerLossFS {
	return &powerLossFS{
		rng:   rand.New(rand.NewPCG(seed, 1)),
		files: map[string]*inode{}, syncedFiles: map[string]*inode{}, opsLeft: -1,
	}
}

// countOperation counts one operation. It fails if the power is off, or fails with this one.
func (m *powerLossFS) countOperation() error {
	if m.opsLeft == 0 {
		m.isOff = true
	}
	if m.isOff {
		return errPowerOff
	}
	m.opsLeft--
	return nil
}

// restart returns the disk as the next boot finds it.
func (m *powerLossFS) restart() *powerLossFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newPowerLossFS(m.rng.Uint64())
	names := slices.Sorted(maps.Keys(m.files))
	for name := range m.syncedFiles {
		if _, ok := m.files[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		from := m.syncedFiles
		if m.rng.IntN(2) == 0 {
			from = m.files
		}
		if n, ok := from[name]; ok {
			next.files[name] = n.afterPowerLoss(m.rng)
		}
	}
	next.syncedFiles = maps.Clone(next.files)
	return next
}

func (n *inode) afterPowerLoss(rng *rand.Rand) *inode {
	b := slices.Clone(n.disk)
	step := sectorSize
	if rng.IntN(2) == 0 {
		step = 4096
	}
	keep, last := false, -1
	for _, i := range slices.Sorted(maps.Keys(n.dirtySectors)) {
		if page := i * sectorSize / step; page != last {
			keep, last = rng.IntN(2) == 0, page
		}
		if from := i * sectorSize; keep && from < len(n.cached) {
			to := min(from+sectorSize, len(n.cached))
			b = append(b, make([]byte, max(0, to-len(b)))...)
			copy(b[from:to], n.cached[from:to])
		}
	}
	return &inode{cached: b, disk: slices.Clone(b), dirtySectors: map[int]bool{}}
}

func (m *powerLossFS) Open(name string, create bool) (journal.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.countOperation(); err != nil {
		return nil, err
	}
	n, ok := m.files[name]
	if !ok && !create {
		return nil, fs.ErrNotExist
	}
	if create {
		n = &inode{dirtySectors: map[int]bool{}}
		m.files[name] = n
	}
	return &openFile{fs: m, inode: n, name: name}, nil
}

func (m *powerLossFS) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.files)), m.countOperation()
}

func (m *powerLossFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.countOperation(); err != nil {
		return err
	}
	m.files[to] = m.files[from]
	delete(m.files, from)
	return nil
}

func (m *powerLossFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.countOperation(); err != nil {
		return err
	}
	delete(m.files, name)
	return nil
}

func (m *powerLossFS) IsSame(name string, f journal.File) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name] == f.(*openFile).inode, nil
}

func (m *powerLossFS) SyncDir() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.countOperation(); err != nil {
		return err
	}
	m.syncedFiles = maps.Clone(m.files)
	return nil
}

type openFile struct {
	fs     *powerLossFS
	inode  *inode
	name   string
	closed bool
}

func (h *openFile) startOperation(op string) error {
	if h.closed {
		return fs.ErrClosed
	}
	if h.fs.fault != nil {
		if err := h.fs.fault(op, h.name); err != nil {
			return err
		}
	}
	return h.fs.countOperation()
}

func (h *openFile) ReadAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.startOperation("read"); err != nil {
		return 0, err
	}
	if at >= int64(len(h.inode.cached)) && len(b) > 0 {
		return 0, io.EOF
	}
	n := copy(b, h.inode.cached[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *openFile) WriteAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	err := h.startOperation("write")
	if err == nil {
		err = h.fs.checkCapacity(at + int64(len(b)) - int64(len(h.inode.cached)))
	}
	if err != nil {
		// A random part of it reached the cache.
		b = b[:h.fs.rng.IntN(len(b)+1)]
		if h.fs.capacity > 0 {
			b = b[:0]
		}
	}
	h.inode.cached = append(h.inode.cached, make([]byte, max(0, int(at)+len(b)-len(h.inode.cached)))...)
	copy(h.inode.cached[at:], b)
	for i := int(at) / sectorSize; i*sectorSize < int(at)+len(b); i++ {
		h.inode.dirtySectors[i] = true
	}
	return len(b), err
}

func (m *powerLossFS) checkCapacity(more int64) error {
	used := int64(0)
	for _, n := range m.files {
		used += int64(len(n.cached))
	}
	if m.capacity > 0 && more > 0 && used+more > m.capacity {
		return syscall.ENOSPC
	}
	return nil
}

// Sync that fails leaves the file's sectors looking clean, as Linux does, although they are not on disk.
func (h *openFile) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.startOperation("sync"); err != nil {
		if !h.fs.isOff {
			clear(h.inode.dirtySectors)
		}
		return err
	}
	h.inode.disk = append(h.inode.disk, make([]byte, max(0, len(h.inode.cached)-len(h.inode.disk)))...)
	for i := range h.inode.dirtySectors {
		from, to := i*sectorSize, min((i+1)*sectorSize, len(h.inode.cached))
		copy(h.inode.disk[from:to], h.inode.cached[from:to])
	}
	clear(h.inode.dirtySectors)
	return nil
}

func (h *openFile) Reserve(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.startOperation("reserve"); err != nil {
		return err
	}
	return h.fs.checkCapacity(size - int64(len(h.inode.cached)))
}

func (h *openFile) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	return nil
}
