package osmpbf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// File is an open PBF. It is safe for concurrent use.
type File struct {
	file   io.ReaderAt
	closer io.Closer
	size   int64
	header Header
	first  int64 // offset of the first blob behind the header

	tasks sync.Pool // of *task, with their memory, for the next Scan

	mutex sync.Mutex
	index []frame // of the data blobs, nil before a Scan has read all
}

// Open opens a PBF and reads its header. It fails with a *FormatError if the file is not a PBF, and with a *FeatureError if the
// file requires a feature that this package does not have.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &FormatError{"it is a folder"}
	}
	if err == nil {
		var f *File
		if f, err = newFile(file, file, info.Size()); err == nil {
			return f, nil
		}
	}
	file.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

// newFile reads the header of a PBF.
func newFile(r io.ReaderAt, c io.Closer, size int64) (*File, error) {
	head := make([]byte, min(size, 64))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if size == 0 {
		return nil, &FormatError{"it is empty"}
	}
	f := &File{file: r, closer: c, size: size}
	first, err := readFrame(r, 0, 0, size)
	var cut *CutError
	if errors.As(err, &cut) && first.name == headerBlob {
		return nil, err
	}
	if err != nil || first.name != headerBlob {
		return nil, describeForeign(head)
	}
	blob := make([]byte, first.size)
	if _, err := r.ReadAt(blob, first.data); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	content, err := new(inflater).inflate(blob)
	if err == nil {
		f.header, err = decodeHeader(content)
	}
	var feature *FeatureError
	if err != nil && !errors.As(err, &feature) {
		err = first.damage(err)
	}
	f.first = first.end()
	return f, err
}

// Header returns the file's description of itself.
func (f *File) Header() Header { return f.header }

// Size is the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Close closes the file. No Scan may be under way.
func (f *File) Close() error { return f.closer.Close() }

// knownFeatures are the features that a file may require.
var knownFeatures = map[string]bool{"OsmSchema-V0.6": true, "DenseNodes": true}

// decodeHeader decodes the content of the first blob.
func decodeHeader(b []byte) (h Header, err error) {
	var optional []string
	m := fields{rest: b}
	for m.next() && err == nil {
		switch m.tag {
		case 1<<3 | length:
			h.Box, err = decodeBox(m.bytes)
		case 4<<3 | length:
			if h.Features = append(h.Features, string(m.bytes)); !knownFeatures[string(m.bytes)] {
				return h, &FeatureError{string(m.bytes)}
			}
		case 5<<3 | length:
			optional = append(optional, string(m.bytes))
		case 16<<3 | length:
			h.Generator = string(m.bytes)
		case 17<<3 | length:
			h.Source = string(m.bytes)
		case 32<<3 | varint:
			h.Date = time.Unix(int64(m.value), 0).UTC()
		}
	}
	if err == nil {
		err = m.err
	}
	h.Features = append(h.Features, optional...)
	return h, err
}

// decodeBox decodes the box that holds the data.
func decodeBox(b []byte) (Box, error) {
	var sides [5]int32
	m := fields{rest: b}
	for m.next() {
		if n := m.tag >> 3; m.tag&7 == varint && n < uint64(len(sides)) {
			sides[n] = toUnits(protowire.DecodeZigZag(m.value))
		}
	}
	return Box{West: sides[1], East: sides[2], North: sides[3], South: sides[4]}, m.err
}
