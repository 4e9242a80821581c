package local

import (
	"encoding/binary"
	"strings"

	"lieudit/schemas/table"
)

// The contents of an account's sites are much alike: the same members in the same order, often the same hours, the same
// beginning of a web address. So each is kept as what it shares with a primer, a text made of a few of them, and the rest.
const (
	primerMost  = 1 << 14 // bytes
	primerShare = 16      // the primer is at most this part of the contents
	sharedLeast = 6       // bytes that are worth a reference
	tries       = 12      // places in the primer that are compared
)

// primerOf is a primer for the contents of rows, a short one or none where they are too few for it to pay.
func primerOf(rows []table.Site) string {
	all := 0
	for i := range rows {
		all += len(rows[i].Content)
	}
	most := min(primerMost, all/primerShare)
	var text strings.Builder
	for step := 1 + len(rows)/64; len(rows) > 0; rows = rows[min(step, len(rows)):] {
		c := rows[0].Content
		text.WriteString(c[:min(len(c), most-text.Len())])
	}
	return text.String()
}

// outgrown says whether the index has become so much larger since its primer was made that another would pay.
func (x *index) outgrown() bool { return x.live > 1<<16 && x.live > 4*x.primed }

// squeezer writes texts with references to a primer.
type squeezer struct {
	primer string
	last   [1 << 12]uint16 // one past the last place of four bytes with this hash
	before []uint16        // by place, the one before it of the same hash
	out    []byte
}

func newSqueezer(primer string) *squeezer {
	q := &squeezer{primer: primer, before: make([]uint16, len(primer))}
	for i := 0; i+4 <= len(primer); i++ {
		h := hash(primer[i:])
		q.before[i], q.last[h] = q.last[h], uint16(i+1)
	}
	return q
}

func hash(s string) uint32 {
	return (uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24) * 2654435761 >> 20
}

// squeeze gives what stretch makes the text of, until the next call: its length, then again and again a length and so
// many bytes, and a length and a place in the primer.
func (q *squeezer) squeeze(s string) []byte {
	q.out = binary.AppendUvarint(q.out[:0], uint64(len(s)))
	from := 0
	for i := 0; i+4 <= len(s); {
		at, n := q.longest(s[i:])
		if n < sharedLeast {
			i++
			continue
		}
		q.plain(s[from:i])
		q.out = binary.AppendUvarint(binary.AppendUvarint(q.out, uint64(n)), uint64(at))
		i += n
		from = i
	}
	if from < len(s) {
		q.plain(s[from:])
	}
	return q.out
}

func (q *squeezer) plain(s string) {
	q.out = append(binary.AppendUvarint(q.out, uint64(len(s))), s...)
}

// longest is where in the primer most of the text's beginning is.
func (q *squeezer) longest(s string) (at, n int) {
	place := q.last[hash(s)]
	for try := 0; place > 0 && try < tries; try++ {
		if same := common(s, q.primer[place-1:]); same > n {
			at, n = int(place-1), same
		}
		place = q.before[place-1]
	}
	return at, n
}

func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// stretch is the text that was squeezed.
func stretch(primer, squeezed string) string {
	p := parcel{squeezed}
	var text strings.Builder
	text.Grow(int(p.number()))
	for p.rest != "" {
		text.WriteString(p.text())
		if p.rest == "" {
			break
		}
		n := int(p.number())
		at := int(p.number())
		text.WriteString(primer[at : at+n])
	}
	return text.String()
}
