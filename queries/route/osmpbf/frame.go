package osmpbf

import (
	"encoding/binary"
	"errors"
	"io"
)

// The limits of the format, in bytes.
const (
	maxHeaderSize = 64 << 10
	maxBlobSize   = 32 << 20
)

// frame is where a blob lies in the file.
type frame struct {
	number int   // counted from 0
	offset int64 // of its length prefix
	data   int64 // offset of the blob itself
	size   int   // of the blob itself
	name   string
	kinds  Kinds // that it holds, once it was decoded
}

// end is the offset behind the frame.
func (f *frame) end() int64 { return f.data + int64(f.size) }

// damage is a DamageError of the frame.
func (f *frame) damage(err error) error { return &DamageError{f.number, f.offset, err} }

// readFrame reads the frame at an offset of a file of some size. At the end it returns io.EOF.
func readFrame(r io.ReaderAt, number int, offset, fileSize int64) (frame, error) {
	f := frame{number: number, offset: offset}
	if offset >= fileSize {
		return f, io.EOF
	}
	cut := &CutError{number, offset, fileSize}
	var buf [128]byte // holds the length and nearly every header
	// One read is enough for nearly every frame; the end of the file may come before the buffer is full.
	n, err := r.ReadAt(buf[:min(int64(len(buf)), fileSize-offset)], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return f, err
	}
	if n < 4 {
		return f, cut
	}
	size := int64(binary.BigEndian.Uint32(buf[:4]))
	if size > maxHeaderSize {
		return f, f.damage(errors.New("its header is longer than the format allows"))
	}
	if f.data = offset + 4 + size; f.data > fileSize {
		return f, cut
	}
	header := buf[4:n]
	if size > int64(len(header)) {
		header = make([]byte, size)
		if _, err := r.ReadAt(header, offset+4); err != nil {
			return f, err
		}
	}
	if err := f.readHeader(header[:size]); err != nil {
		return f, f.damage(err)
	}
	if f.end() > fileSize {
		return f, cut
	}
	return f, nil
}

// readHeader reads name and size of the blob.
func (f *frame) readHeader(b []byte) error {
	size, m := uint64(0), fields{rest: b}
	for m.next() {
		switch m.tag {
		case 1<<3 | length:
			f.name = internBlobName(m.bytes)
		case 3<<3 | varint:
			size = m.value
		}
	}
	switch {
	case m.err != nil:
		return m.err
	case f.name == "":
		return errors.New("its header has no type")
	case size > maxBlobSize:
		return errors.New("it is larger than the format allows")
	}
	f.size = int(size)
	return nil
}

// The types of blobs.
const (
	headerBlob = "OSMHeader"
	dataBlob   = "OSMData"
)

// internBlobName is the name of a blob's type, without allocating a known one.
func internBlobName(b []byte) string {
	switch string(b) {
	case dataBlob:
		return dataBlob
	case headerBlob:
		return headerBlob
	}
	return string(b)
}
