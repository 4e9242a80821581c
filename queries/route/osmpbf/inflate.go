package osmpbf

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// inflater unpacks blobs. It keeps its buffers for the next blob and is used by one goroutine at a time.
type inflater struct {
	in   bytes.Reader
	zlib io.ReadCloser
	zstd *zstd.Decoder
	out  []byte
}

// maxRatio is how many times deflate can shrink bytes at most. It bounds the memory that a stated size can make us allocate.
const maxRatio = 1032

// inflate returns the content of a blob. It is valid until the next call, and may share the memory of the blob.
func (i *inflater) inflate(blob []byte) ([]byte, error) {
	var packed []byte
	var how uint64
	size, m := uint64(0), fields{rest: blob}
	for m.next() {
		switch m.tag {
		case 2<<3 | varint:
			size = m.value
		case 1<<3 | length, 3<<3 | length, 4<<3 | length, 5<<3 | length, 6<<3 | length, 7<<3 | length:
			packed, how = m.bytes, m.tag>>3
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if size > maxBlobSize {
		return nil, errors.New("its content is larger than the format allows")
	}
	switch how {
	case 0:
		return nil, errors.New("it has no content")
	case 1:
		return packed, nil
	case 3:
		return i.inflateZlib(packed, int(size))
	case 7:
		return i.inflateZstd(packed, int(size))
	}
	return nil, &FeatureError{[...]string{"lzma", "bzip2", "lz4"}[how-4]}
}

// errSize means that a blob unpacks to another size than it states.
var errSize = errors.New("its content has another size than stated")

// inflateZlib unpacks zlib, which nearly every file uses.
func (i *inflater) inflateZlib(packed []byte, size int) ([]byte, error) {
	if size > len(packed)*maxRatio {
		return nil, errSize
	}
	i.in.Reset(packed)
	var err error
	if i.zlib == nil {
		i.zlib, err = zlib.NewReader(&i.in)
	} else {
		err = i.zlib.(zlib.Resetter).Reset(&i.in, nil)
	}
	if err != nil {
		return nil, err
	}
	i.grow(size)
	if _, err := io.ReadFull(i.zlib, i.out); err != nil {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	// The checksum is compared where the content ends.
	if n, err := i.zlib.Read(make([]byte, 1)); n > 0 || err == nil {
		return nil, errSize
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	return i.out, nil
}

// inflateZstd unpacks zstd. Its decoder rejects content that would be larger than a blob may be.
func (i *inflater) inflateZstd(packed []byte, size int) (_ []byte, err error) {
	if i.zstd == nil {
		i.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlobSize))
		if err != nil {
			return nil, err
		}
	}
	if i.out, err = i.zstd.DecodeAll(packed, i.out[:0]); err != nil {
		return nil, fmt.Errorf("unpack it: %w", err)
	}
	if len(i.out) != size {
		return nil, errSize
	}
	return i.out, nil
}

// grow makes room for the content.
func (i *inflater) grow(size int) {
	if cap(i.out) < size {
		i.out = make([]byte, size+size/4)
	}
	i.out = i.out[:size]
}
