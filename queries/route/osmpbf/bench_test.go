package osmpbf_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/paulmach/osm"
	"google.golang.org/protobuf/encoding/protowire"

	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/osmpbf/osmtest"
)

// BenchmarkDelaware reads a state with this package, with another library, and only inflates it with the standard library. Run it
// with -cpu 1 for the figures of a core.
func BenchmarkDelaware(b *testing.B) {
	path := osmtest.Path(b, "delaware")
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("scan", func(b *testing.B) {
		f := open(b, path)
		b.SetBytes(f.Size())
		for b.Loop() {
			if err := f.Scan(b.Context(), all, nil, func(*osmpbf.Block) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("inflate", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			inflateAll(b, content)
		}
	})
	b.Run("paulmach", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			scanForeign(b, path, func(osm.Object) {})
		}
	})
}

// inflateAll inflates every blob of a file on one core, without looking into it.
func inflateAll(b *testing.B, content []byte) {
	for len(content) > 0 {
		header := content[4 : 4+binary.BigEndian.Uint32(content)]
		content = content[4+len(header):]
		size := int(numberOf(header, 3))
		_, n := protowire.ConsumeVarint(content[1:]) // of the field raw_size, which writers put first
		packed, m := protowire.ConsumeBytes(content[2+n:])
		if m < 0 {
			b.Fatal("a blob of another form")
		}
		r, err := zlib.NewReader(bytes.NewReader(packed))
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			b.Fatal(err)
		}
		content = content[size:]
	}
}

// numberOf is a number in a message.
func numberOf(message []byte, field protowire.Number) uint64 {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		value, _ := protowire.ConsumeVarint(message[n:])
		if number == field {
			return value
		}
		message = message[n+protowire.ConsumeFieldValue(number, kind, message[n:]):]
	}
	return 0
}
