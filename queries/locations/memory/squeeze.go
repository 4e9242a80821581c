package memory

import (
	"encoding/binary"
	"strings"

	"lieudit/schemas/table"
)

// The contents of an account's sites are much alike: the same members in the same order, often the same hours, the same
// beginning of a web address. So each is kept as what it shares with a primer, a text made of a few of them, and the rest.
const (
	maxDictionary   = 1 << 14 // bytes
	dictionaryShare = 16      // the primer is at most this part of the contents
	minMatch        = 6       // bytes that are worth a reference
	maxTries        = 12      // places in the primer that are compared
)

// buildDictionary is a primer for the contents of rows, a short one or none where they are too few for it to pay.
func buildDictionary(rows []table.Site) string {
	total := 0
	for i := range rows {
		total += len(rows[i].Content)
	}
	limit := min(maxDictionary, total/dictionaryShare)
	var sample strings.Builder
	for step := 1 + len(rows)/64; len(rows) > 0; rows = rows[min(step, len(rows)):] {
		c := rows[0].Content
		sample.WriteString(c[:min(len(c), limit-sample.Len())])
	}
	return sample.String()
}

// needsNewDictionary says whether the index has become so much larger since its primer was made that another would pay.
func (x *index) needsNewDictionary() bool {
	return x.liveBytes > 1<<16 && x.liveBytes > 4*x.dictionaryLiveBytes
}

// compressor writes texts with references to a primer.
type compressor struct {
	dictionary string
	hashHeads  [1 << 12]uint16 // one past the last place of four bytes with this hash
	hashChain  []uint16        // by place, the one before it of the same hash
	out        []byte
}

func newCompressor(dictionary string) *compressor {
	q := &compressor{dictionary: dictionary, hashChain: make([]uint16, len(dictionary))}
	for i := 0; i+4 <= len(dictionary); i++ {
		h := hashPrefix(dictionary[i:])
		q.hashChain[i], q.hashHeads[h] = q.hashHeads[h], uint16(i+1)
	}
	return q
}

func hashPrefix(s string) uint32 {
	return (uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24) * 2654435761 >> 20
}

// compress gives what stretch makes the text of, until the next call: its length, then again and again a length and so
// many bytes, and a length and a place in the primer.
func (q *compressor) compress(s string) []byte {
	q.out = binary.AppendUvarint(q.out[:0], uint64(len(s)))
	literalStart := 0
	for i := 0; i+4 <= len(s); {
		at, n := q.longestMatch(s[i:])
		if n < minMatch {
			i++
			continue
		}
		q.writeLiteral(s[literalStart:i])
		q.out = binary.AppendUvarint(binary.AppendUvarint(q.out, uint64(n)), uint64(at))
		i += n
		literalStart = i
	}
	if literalStart < len(s) {
		q.writeLiteral(s[literalStart:])
	}
	return q.out
}

func (q *compressor) writeLiteral(s string) {
	q.out = append(binary.AppendUvarint(q.out, uint64(len(s))), s...)
}

// longestMatch is where in the primer most of the text's beginning is.
func (q *compressor) longestMatch(s string) (at, n int) {
	candidate := q.hashHeads[hashPrefix(s)]
	for try := 0; candidate > 0 && try < maxTries; try++ {
		if same := commonPrefix(s, q.dictionary[candidate-1:]); same > n {
			at, n = int(candidate-1), same
		}
		candidate = q.hashChain[candidate-1]
	}
	return at, n
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// decompress is the text that was squeezed.
func decompress(dictionary, compressed string) string {
	p := siteRecord{compressed}
	var text strings.Builder
	text.Grow(int(p.readInt()))
	for p.rest != "" {
		text.WriteString(p.readString())
		if p.rest == "" {
			break
		}
		n := int(p.readInt())
		at := int(p.readInt())
		text.WriteString(dictionary[at : at+n])
	}
	return text.String()
}
