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

var errOff = errors.New("the power is off")

// machine is a journal.FS in memory that loses power. What was synced survives; of the rest it keeps a random
// part: single sectors of files, single names of the folder.
type machine struct {
	mu     sync.Mutex
	rng    *rand.Rand
	live   map[string]*inode
	synced map[string]*inode
	left   int // operations until the power goes, negative for never
	off    bool

	room int64 // bytes all files together may hold, 0 for no limit
	// fault may fail an operation ("write", "sync") on a file.
	fault func(op, name string) error
}

// inode is one file: what programs see, what is on disk, and which sectors differ.
type inode struct {
	live, disk []byte
	dirty      map[int]bool
}

const sector = 512

func newMachine(seed uint64) *machine {
	return &machine{
		rng:  rand.New(rand.NewPCG(seed, 1)),
		live: map[string]*inode{}, synced: map[string]*inode{}, left: -1,
	}
}

// step counts one operation; it fails from the one on that the power goes with.
func (m *machine) step() error {
	if m.left == 0 {
		m.off = true
	}
	if m.off {
		return errOff
	}
	m.left--
	return nil
}

// restart is what the next boot finds.
func (m *machine) restart() *machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMachine(m.rng.Uint64())
	names := slices.Sorted(maps.Keys(m.live))
	for name := range m.synced {
		if _, ok := m.live[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		from := m.synced
		if m.rng.IntN(2) == 0 {
			from = m.live
		}
		if n, ok := from[name]; ok {
			next.live[name] = n.survive(m.rng)
		}
	}
	next.synced = maps.Clone(next.live)
	return next
}

func (n *inode) survive(rng *rand.Rand) *inode {
	b := slices.Clone(n.disk)
	step := sector
	if rng.IntN(2) == 0 {
		step = 4096
	}
	keep, last := false, -1
	for _, i := range slices.Sorted(maps.Keys(n.dirty)) {
		if page := i * sector / step; page != last {
			keep, last = rng.IntN(2) == 0, page
		}
		if from := i * sector; keep && from < len(n.live) {
			to := min(from+sector, len(n.live))
			b = append(b, make([]byte, max(0, to-len(b)))...)
			copy(b[from:to], n.live[from:to])
		}
	}
	return &inode{live: b, disk: slices.Clone(b), dirty: map[int]bool{}}
}

func (m *machine) Open(name string, create bool) (journal.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return nil, err
	}
	n, ok := m.live[name]
	if !ok && !create {
		return nil, fs.ErrNotExist
	}
	if create {
		n = &inode{dirty: map[int]bool{}}
		m.live[name] = n
	}
	return &handle{m: m, n: n, name: name}, nil
}

func (m *machine) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.live)), m.step()
}

func (m *machine) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	m.live[to] = m.live[from]
	delete(m.live, from)
	return nil
}

func (m *machine) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	delete(m.live, name)
	return nil
}

func (m *machine) SyncDir() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	m.synced = maps.Clone(m.live)
	return nil
}

type handle struct {
	m      *machine
	n      *inode
	name   string
	closed bool
}

func (h *handle) begin(op string) error {
	if h.closed {
		return fs.ErrClosed
	}
	if h.m.fault != nil {
		if err := h.m.fault(op, h.name); err != nil {
			return err
		}
	}
	return h.m.step()
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.begin("read"); err != nil {
		return 0, err
	}
	if at >= int64(len(h.n.live)) && len(b) > 0 {
		return 0, io.EOF
	}
	n := copy(b, h.n.live[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	err := h.begin("write")
	if err == nil {
		err = h.m.roomFor(at + int64(len(b)) - int64(len(h.n.live)))
	}
	if err != nil {
		// As much of it as the machine likes got into the cache.
		b = b[:h.m.rng.IntN(len(b)+1)]
		if h.m.room > 0 {
			b = b[:0]
		}
	}
	h.n.live = append(h.n.live, make([]byte, max(0, int(at)+len(b)-len(h.n.live)))...)
	copy(h.n.live[at:], b)
	for i := int(at) / sector; i*sector < int(at)+len(b); i++ {
		h.n.dirty[i] = true
	}
	return len(b), err
}

func (m *machine) roomFor(more int64) error {
	used := int64(0)
	for _, n := range m.live {
		used += int64(len(n.live))
	}
	if m.room > 0 && more > 0 && used+more > m.room {
		return syscall.ENOSPC
	}
	return nil
}

// Sync that fails leaves the file's sectors looking clean, as Linux does, though they never got to the disk.
func (h *handle) Sync() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.begin("sync"); err != nil {
		if !h.m.off {
			clear(h.n.dirty)
		}
		return err
	}
	h.n.disk = append(h.n.disk, make([]byte, max(0, len(h.n.live)-len(h.n.disk)))...)
	for i := range h.n.dirty {
		from, to := i*sector, min((i+1)*sector, len(h.n.live))
		copy(h.n.disk[from:to], h.n.live[from:to])
	}
	clear(h.n.dirty)
	return nil
}

func (h *handle) Reserve(size int64) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.begin("reserve"); err != nil {
		return err
	}
	return h.m.roomFor(size - int64(len(h.n.live)))
}

func (h *handle) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	return nil
}
