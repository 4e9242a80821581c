package osmpbf

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Errors of damaged blobs.
var (
	errFields  = errors.New("its fields cannot be read")
	errLists   = errors.New("its lists are of different lengths")
	errStrings = errors.New("it names a string that is not in its table")
	errTooMany = errors.New("it holds more elements than any program writes in a block")
)

// The two encodings of fields that the format uses.
const (
	varint = uint64(protowire.VarintType)
	length = uint64(protowire.BytesType)
)

// fields walks the fields of a message. Its tag is number<<3 plus the encoding, so that a field in another encoding is an unknown
// field, which is skipped.
type fields struct {
	rest  []byte
	tag   uint64
	value uint64 // of a varint
	bytes []byte // of a field with a length; shares the memory of the message
	err   error
}

// next reads the next field. It returns false at the end and after an error.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	n := 0
	if f.tag, n = protowire.ConsumeVarint(f.rest); n < 0 {
		return f.fail()
	}
	f.rest = f.rest[n:]
	switch f.tag & 7 {
	case varint:
		f.value, n = protowire.ConsumeVarint(f.rest)
	case length:
		f.bytes, n = protowire.ConsumeBytes(f.rest)
	default:
		number, kind := protowire.DecodeTag(f.tag)
		n = protowire.ConsumeFieldValue(max(number, 1), kind, f.rest)
	}
	if n < 0 {
		return f.fail()
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) fail() bool {
	f.err = errFields
	return false
}

// packed is a list of numbers in one field.
type packed []byte

// next takes the next number. It returns false at the end, and if the list is damaged; then the list is not empty.
func (p *packed) next() (uint64, bool) {
	b := *p
	if len(b) > 0 && b[0] < 0x80 {
		*p = b[1:]
		return uint64(b[0]), true
	}
	v, n := protowire.ConsumeVarint(b)
	if n <= 0 {
		return 0, false
	}
	*p = b[n:]
	return v, true
}

// nextSigned takes the next zigzag number.
func (p *packed) nextSigned() (int64, bool) {
	v, ok := p.next()
	return protowire.DecodeZigZag(v), ok
}

// end returns an error if the list was not read to its end.
func (p packed) end() error {
	if len(p) > 0 {
		return errLists
	}
	return nil
}
