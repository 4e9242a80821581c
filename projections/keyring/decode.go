package keyring

import (
	"encoding/binary"
	"hash/maphash"

	"lieudit/eventstore"
)

// cursor reads what the functions above wrote. Once bad it stays so and reads zeros.
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

func (c *cursor) state() (*state, eventstore.Mark) {
	s, mark := newState(), eventstore.Mark{}
	copy(mark.Log[:], c.bytes(16))
	if at := c.bytes(8); at != nil {
		mark.Position = eventstore.Position(binary.LittleEndian.Uint64(at))
	}
	copy(mark.Event[:], c.bytes(16))
	words := c.texts()
	s.words.list.Store(&words)
	accounts, keys := c.uint(), c.uint()
	if accounts+keys > uint64(len(c.rest)) {
		c.bad = true
		return nil, mark
	}
	c.words, c.accounts = uint64(len(words)), accounts
	c.accountPages(s)
	c.keyPages(s, int(keys))
	return s, mark
}

func (c *cursor) accountPages(s *state) {
	s.byID.resize(int(c.accounts))
	for uint64(s.accounts.rows) < c.accounts && !c.bad {
		p, n := readPage(c, (*cursor).account)
		for i := range n {
			s.byID.add(uint32(maphash.String(s.seed, p.text(i))), s.accounts.rows+uint32(i))
		}
		c.bad = c.bad || !s.accounts.append(p, n)
	}
}

func (c *cursor) keyPages(s *state, rows int) {
	s.byHash.resize(rows)
	for !c.bad {
		p, n := readPage(c, (*cursor).key)
		if n == 0 {
			return
		}
		for i := range n {
			c.bad = c.bad || int(p.rows[i].idLen) > len(p.text(i))
			s.byHash.add(fingerprint(&p.rows[i].hash), s.keys.rows+uint32(i))
		}
		c.bad = c.bad || !s.keys.append(p, n)
	}
}

// readPage gives a page and how many rows it has: none at the end, and when something is bad.
func readPage[R any](c *cursor, row func(*cursor) R) (*page[R], int) {
	p, n := new(page[R]), int(c.upTo(pageRows))
	end := uint64(0)
	for i := range pageRows {
		if i < n {
			p.rows[i] = row(c)
			end += c.upTo(maxText)
			p.putList(i, c.texts())
		}
		p.ends[i] = uint16(end)
	}
	p.texts = string(c.bytes(end))
	if c.bad {
		return p, 0
	}
	return p, n
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

func (c *cursor) word() word { return word(c.upTo(c.words)) }

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

func (c *cursor) key() key {
	var k key
	copy(k.hash[:], c.bytes(uint64(len(k.hash))))
	k.account, k.idLen, k.kind, k.role = c.row(), uint16(c.uint()), kind(c.byte()), c.word()
	return k
}
