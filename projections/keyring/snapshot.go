package keyring

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
)

// snapshot is the ring's state at a checkpoint. It shares pages with the ring, which never change. The file holds, in this
// order:
//
//	snapshotHeader
//	the checkpoint: log (16 bytes), position (8 bytes, little endian), event (16 bytes)
//	two lists of texts: words, stopped
//	the number of accounts; the number of keys, at least as many as follow
//	the accounts, each with its id; a row refers to an account by its number here, from 1
//	the keys, each beginning with its kind, with their texts and origins; a kind of 0 (freeRow) ends them
//	the CRC-32C of everything before (4 bytes, little endian)
//
// Other numbers are varints of encoding/binary. A text is its length and its bytes, a list its length and its elements.
type snapshot struct {
	checkpoint eventstore.Checkpoint
	words      []string
	stopped    []string // events that cannot be used
	accounts   pagesSnapshot[account]
	keys       pagesSnapshot[key]
	live       int // keys
}

// snapshotHeader begins every file of this format. A file with another header is not read: the ring then folds the log once
// from its beginning. Format 2 did not record when an account was closed.
const snapshotHeader = "lieudit key ring, format 3\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeFile replaces the file by the snapshot. It does not sync: a file torn by a power loss fails its checksum, and the ring
// can do without a snapshot.
func (s snapshot) writeFile(file string, disk osfile.Disk) error {
	return disk.ReplaceFile(file, s.marshal)
}

// marshal writes the file's contents. It returns the first error of f.
func (s snapshot) marshal(f io.Writer) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	w.Write(s.appendHead(nil)) // a bufio.Writer keeps its first error
	s.accounts.each(func(a *account, text string, _ []string) {
		w.Write(appendText(appendAccount(w.AvailableBuffer(), a), text))
	})
	s.keys.each(func(k *key, text string, list []string) {
		if s.canBeUsed(k) {
			w.Write(appendTexts(appendText(appendKey(w.AvailableBuffer(), k), text), list))
		}
	})
	w.WriteByte(byte(freeRow))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := f.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

func (s snapshot) appendHead(b []byte) []byte {
	b = append(b, snapshotHeader...)
	b = append(b, s.checkpoint.Log[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.checkpoint.Position))
	b = append(b, s.checkpoint.Event[:]...)
	b = appendTexts(b, s.words)
	b = appendTexts(b, s.stopped)
	b = binary.AppendUvarint(b, uint64(s.accounts.rows))
	return binary.AppendUvarint(b, uint64(s.live))
}

// canBeUsed reports whether the key can still give anything: not after its account was closed.
func (s snapshot) canBeUsed(k *key) bool {
	if k.kind == freeRow || k.account == 0 {
		return k.kind != freeRow
	}
	n := k.account - 1
	return s.accounts.pages[n/pageRows].rows[n%pageRows].closed == 0
}

// readSnapshotFile reads a snapshot. It returns nil and no error if there is no file.
func readSnapshotFile(file string) (*state, eventstore.Checkpoint, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, eventstore.Checkpoint{}, nil
	}
	if err != nil {
		return nil, eventstore.Checkpoint{}, err
	}
	return unmarshalSnapshot(data)
}

// unmarshalSnapshot parses a file's bytes. Any bytes give a state or an error, never a panic: the checksum does not protect
// against a file written by another program.
func unmarshalSnapshot(data []byte) (*state, eventstore.Checkpoint, error) {
	if len(data) < len(snapshotHeader)+4 || string(data[:len(snapshotHeader)]) != snapshotHeader {
		return nil, eventstore.Checkpoint{}, errors.New("not a snapshot of this format")
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, eventstore.Checkpoint{}, errors.New("the checksum does not fit")
	}
	c := &cursor{rest: body[len(snapshotHeader):]}
	s, checkpoint := c.state()
	if c.bad || len(c.rest) > 0 {
		return nil, eventstore.Checkpoint{}, fmt.Errorf("damaged, %d bytes before its end", len(c.rest))
	}
	return s, checkpoint, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func appendAccount(b []byte, a *account) []byte {
	b = appendTerms(appendTerms(b, a.own.value), a.own.next)
	b = binary.AppendVarint(b, a.own.from)
	b = binary.AppendUvarint(b, uint64(a.agency.value))
	b = binary.AppendUvarint(b, uint64(a.agency.next))
	b = binary.AppendVarint(b, a.agency.from)
	b = binary.AppendVarint(b, a.agencyBegan)
	b = binary.AppendVarint(b, a.closed)
	b = binary.AppendVarint(b, int64(a.anchor))
	return append(b, boolByte(a.opened))
}

func appendTerms(b []byte, t terms) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.quota), uint64(t.plan))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendKey writes the kind first: a freeRow there ends the keys.
func appendKey(b []byte, k *key) []byte {
	b = append(b, byte(k.kind))
	b = append(b, k.hash[:]...)
	b = binary.AppendUvarint(b, uint64(k.account))
	b = binary.AppendUvarint(b, uint64(k.idLen))
	return binary.AppendUvarint(b, uint64(k.role))
}

// cursor reads what the append functions wrote. Once it is bad it stays bad and reads zeros.
type cursor struct {
	rest     []byte
	bad      bool
	words    uint64 // how many there are; a greater reference is bad
	accounts uint64 // likewise
}

// bytes reads n bytes. They share the file's memory.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.rest)
	c.bytes(uint64(max(n, 0)))
	c.bad = c.bad || n <= 0
	return v
}

func (c *cursor) int() int64 {
	v, n := binary.Varint(c.rest)
	c.bytes(uint64(max(n, 0)))
	c.bad = c.bad || n <= 0
	return v
}

// texts reads a list. Each text takes at least one byte, so a list longer than the remaining bytes is damage; nothing is
// allocated for it.
func (c *cursor) texts() []string {
	n := c.uint()
	if n == 0 || n > uint64(len(c.rest)) {
		c.bad = c.bad || n != 0
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = string(c.bytes(c.uint()))
	}
	return list
}

// state reads everything between the header and the checksum.
func (c *cursor) state() (*state, eventstore.Checkpoint) {
	s, checkpoint := newState(), eventstore.Checkpoint{}
	copy(checkpoint.Log[:], c.bytes(16))
	if at := c.bytes(8); at != nil {
		checkpoint.Position = eventstore.Position(binary.LittleEndian.Uint64(at))
	}
	copy(checkpoint.Event[:], c.bytes(16))
	words := c.texts()
	s.words.list.Store(&words)
	c.words = uint64(len(words))
	stopped, err := unmarshalUnusableEvents(c.texts())
	c.bad = c.bad || err != nil
	s.stopped.Store(&stopped)
	c.accounts = c.upTo(uint64(len(c.rest)))
	keys := min(c.uint(), uint64(len(c.rest))) // includes keys of closed accounts, which are not in the file
	c.accountRows(s)
	c.keyRows(s, int(keys))
	return s, checkpoint
}

// accountRows reads the accounts into the table and its index.
func (c *cursor) accountRows(s *state) {
	s.byID.resize(int(c.accounts))
	f := pagesBuilder[account]{table: &s.accounts}
	for n := uint64(0); n < c.accounts && !c.bad; n++ {
		a, id := c.account(), c.bytes(c.upTo(maxText))
		s.byID.addEntry(uint32(maphash.Bytes(s.seed, id)), uint32(n))
		f.addRow(a, id, nil)
	}
	f.flushPage()
}

// keyRows reads the keys into the table and its index. expected sizes the index and need not be exact.
func (c *cursor) keyRows(s *state, expected int) {
	s.byHash.resize(expected)
	f := pagesBuilder[key]{table: &s.keys}
	for kind := c.kind(); kind != freeRow && !c.bad; kind = c.kind() {
		k, text, origins := c.readKey(kind), c.bytes(c.upTo(maxText)), c.texts()
		c.bad = c.bad || int(k.idLen) > len(text)
		s.byHash.addEntry(fingerprint(&k.hash), s.keys.rows)
		if kind.isPass() {
			p := foundKey{key: &k, text: string(text)}.pass()
			s.expiries = append(s.expiries, expiry{p.expires, k.hash})
		}
		f.addRow(k, text, origins)
	}
	heap.Init(&s.expiries)
	f.flushPage()
}

func (c *cursor) account() account {
	var a account
	a.own.value, a.own.next, a.own.from = c.terms(), c.terms(), c.int()
	a.agency.value, a.agency.next, a.agency.from = c.row(), c.row(), c.int()
	a.agencyBegan, a.closed = c.int(), c.int()
	a.anchor = int32(c.int())
	a.opened = c.byte() != 0
	return a
}

func (c *cursor) terms() terms { return terms{c.int(), c.word()} }

func (c *cursor) word() textID { return textID(c.upTo(c.words)) }

// row reads a reference to an account, which is its row + 1.
func (c *cursor) row() uint32 { return uint32(c.upTo(c.accounts)) }

// upTo reads a number of at most limit. A greater one is damage and reads as 0.
func (c *cursor) upTo(limit uint64) uint64 {
	v := c.uint()
	if v > limit {
		c.bad = true
		return 0
	}
	return v
}

func (c *cursor) kind() credentialKind { return credentialKind(c.upTo(uint64(areaSession))) }

func (c *cursor) readKey(kind credentialKind) key {
	k := key{kind: kind}
	copy(k.hash[:], c.bytes(uint64(len(k.hash))))
	k.account, k.idLen, k.role = c.row(), uint16(c.upTo(maxText)), c.word()
	return k
}

const (
	saveInterval    = time.Minute // least time between two snapshots
	minSaveChanges  = 1000        // how many changes are worth one
	minSaveDistance = 64 << 20    // how many bytes of log are worth one, whatever changed
)

// snapshotSaver keeps the snapshot file. It writes in a goroutine of its own, one snapshot at a time. Only the goroutine of
// Run calls isDue, saveAsync and saveFinal.
type snapshotSaver struct {
	file       string
	disk       osfile.Disk
	log        *slog.Logger
	checkpoint eventstore.Checkpoint // of the last snapshot taken
	savedAt    time.Time             // when it was taken
	isSaving   atomic.Bool
	writes     sync.WaitGroup
}

// isDue reports whether a snapshot is worth writing.
func (v *snapshotSaver) isDue(checkpoint eventstore.Checkpoint, changes int, now time.Time) bool {
	if v.file == "" || v.isSaving.Load() || now.Sub(v.savedAt) < saveInterval {
		return false
	}
	return changes >= minSaveChanges || checkpoint.Position >= v.checkpoint.Position+minSaveDistance
}

// saveAsync writes a snapshot and returns before it is written.
func (v *snapshotSaver) saveAsync(s snapshot, now time.Time) {
	v.checkpoint, v.savedAt = s.checkpoint, now
	v.isSaving.Store(true)
	v.writes.Go(func() {
		defer v.isSaving.Store(false)
		v.write(s)
	})
}

// saveFinal writes the last snapshot if it holds anything new.
func (v *snapshotSaver) saveFinal(s snapshot) {
	v.writes.Wait()
	if v.file != "" && s.checkpoint != v.checkpoint {
		v.write(s)
	}
}

func (v *snapshotSaver) write(s snapshot) {
	if err := s.writeFile(v.file, v.disk); err != nil {
		v.log.Warn("key ring's snapshot could not be written", "file", v.file, "error", err)
	}
}
