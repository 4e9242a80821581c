package keyring

import (
	"encoding/binary"
	"hash/maphash"

	"lieudit/eventstore"
)

// cursor reads what encode.go wrote. Once bad it stays so and reads zeros.
type cursor struct {
	rest     []byte
	bad      bool
	words    uint64 // how many there are; a row that names one beyond is bad
	accounts uint64 // likewise
}

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
	keys := c.upTo(uint64(len(c.rest)))
	c.accountRows(s)
	c.keyRows(s, int(keys))
	return s, checkpoint
}

func (c *cursor) accountRows(s *state) {
	s.byID.resize(int(c.accounts))
	f := pagesBuilder[account]{table: &s.accounts}
	for n := uint64(0); n < c.accounts && !c.bad; n++ {
		a, id := c.account(), c.bytes(c.upTo(maxText))
		s.byID.add(uint32(maphash.Bytes(s.seed, id)), uint32(n))
		f.add(a, id, nil)
	}
	f.flush()
}

func (c *cursor) keyRows(s *state, expected int) {
	s.byHash.resize(expected)
	f := pagesBuilder[key]{table: &s.keys}
	for kind := c.kind(); kind != freeRow && !c.bad; kind = c.kind() {
		k, text, origins := c.key(kind), c.bytes(c.upTo(maxText)), c.texts()
		c.bad = c.bad || int(k.idLen) > len(text)
		s.byHash.add(fingerprint(&k.hash), s.keys.rows)
		f.add(k, text, origins)
	}
	f.flush()
}

func (c *cursor) account() account {
	var a account
	a.own.value, a.own.next, a.own.from = c.terms(), c.terms(), c.int()
	a.agency.value, a.agency.next, a.agency.from = c.row(), c.row(), c.int()
	a.anchor = int32(c.int())
	flags := c.byte()
	a.opened, a.closed = flags&1 != 0, flags&2 != 0
	return a
}

func (c *cursor) terms() terms { return terms{c.int(), c.word()} }

func (c *cursor) word() textID { return textID(c.upTo(c.words)) }

// row is a row of an account, plus one.
func (c *cursor) row() uint32 { return uint32(c.upTo(c.accounts)) }

func (c *cursor) upTo(limit uint64) uint64 {
	v := c.uint()
	if v > limit {
		c.bad = true
		return 0
	}
	return v
}

func (c *cursor) kind() credentialKind { return credentialKind(c.upTo(uint64(areaToken))) }

func (c *cursor) key(kind credentialKind) key {
	k := key{kind: kind}
	copy(k.hash[:], c.bytes(uint64(len(k.hash))))
	k.account, k.idLen, k.role = c.row(), uint16(c.upTo(maxText)), c.word()
	return k
}
