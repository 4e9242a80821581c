package vintage

import (
	"encoding/binary"
	"sort"
)

// Column is a sequence of 32-bit numbers in the file. Outside of its bounds all is zero.
type Column []byte

// Len is how many numbers there are.
func (c Column) Len() int { return len(c) / 4 }

// At is the number at i.
func (c Column) At(i int) uint32 {
	at := i * 4
	if i < 0 || at+4 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint32(c[at:])
}

// From is the column without what is below least, for a sorted column.
func (c Column) From(least uint32) Column {
	i := sort.Search(c.Len(), func(i int) bool { return c.At(i) >= least })
	return c[i*4:]
}

// find is where a number stands in a sorted column.
func (c Column) find(n uint32) (i int, ok bool) {
	i = sort.Search(c.Len(), func(i int) bool { return c.At(i) >= n })
	return i, i < c.Len() && c.At(i) == n
}

// Within is the part of a sorted column that lies in [from, to).
func (c Column) Within(from, to uint32) Column {
	c = c.From(from)
	i := sort.Search(c.Len(), func(i int) bool { return c.At(i) >= to })
	return c[:i*4]
}

// shorts is a column of 16-bit numbers.
type shorts []byte

func (c shorts) at(i int) uint16 {
	at := i * 2
	if i < 0 || at+2 > len(c) {
		return 0
	}
	return binary.LittleEndian.Uint16(c[at:])
}

// lists is a sequence of lists of numbers: list i lies between first[i] and first[i+1].
type lists struct{ first, items Column }

func (l lists) at(i uint32) Column {
	if uint64(i)+1 >= uint64(l.first.Len()) {
		return nil
	}
	from, to := int(l.first.At(int(i))), int(l.first.At(int(i)+1))
	if from > to || to > l.items.Len() {
		return nil
	}
	return l.items[from*4 : to*4 : to*4]
}

// texts is a sequence of texts, laid out like lists.
type texts struct {
	first Column
	bytes []byte
}

func (t texts) len() int { return max(t.first.Len()-1, 0) }

func (t texts) at(i uint32) []byte {
	if uint64(i)+1 >= uint64(t.first.Len()) {
		return nil
	}
	from, to := int(t.first.At(int(i))), int(t.first.At(int(i)+1))
	if from > to || to > len(t.bytes) {
		return nil
	}
	return t.bytes[from:to:to]
}

// records is a sequence of records of one size; what lies outside is all zero.
type records struct {
	bytes []byte
	size  int
}

func (r records) len() int { return len(r.bytes) / r.size }

func (r records) at(i uint32) record {
	at := int(i) * r.size
	if at+r.size > len(r.bytes) {
		return nil
	}
	return record(r.bytes[at : at+r.size : at+r.size])
}

// record is one record; fields are read by their offset.
type record []byte

func (r record) u32(at int) uint32 {
	if at+4 > len(r) {
		return 0
	}
	return binary.LittleEndian.Uint32(r[at:])
}

func (r record) i32(at int) int32 { return int32(r.u32(at)) }

func (r record) code(at int) Code {
	var c Code
	if at+len(c) <= len(r) {
		copy(c[:], r[at:])
	}
	return c
}
