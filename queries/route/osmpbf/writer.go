package osmpbf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"
)

// A block is written once it has n elements or about n bytes.
const (
	blockElements = 8000
	blockBytes    = 4 << 20
)

// ErrClosed means that a Writer is already closed.
var ErrClosed = errors.New("the PBF is already complete")

// Writer writes a PBF. The same calls give the same bytes. Elements are written as they are given; a change of kind begins a new
// block, so a caller that gives nodes, then ways, then relations, each by ascending ID, writes the usual order and should declare
// it by the feature Sort.Type_then_ID in the header. The first error is kept. It is used by one goroutine at a time.
type Writer struct {
	out     io.Writer
	err     error
	deflate *zlib.Writer
	packed  bytes.Buffer

	kind    Kinds // of the elements of the block
	count   int
	strings map[string]uint64
	table   []byte // the encoded strings
	group   []byte // the encoded ways or relations

	ids, lons, lats, pairs []byte // of dense nodes
	last                   Node
	hasTags                bool // one of the dense nodes has tags
	scratch, element       []byte
}

// NewWriter writes the header. The next call returns its error.
func NewWriter(out io.Writer, h Header) *Writer {
	w := &Writer{out: out, strings: map[string]uint64{}}
	w.deflate = zlib.NewWriter(&w.packed)
	w.reset()
	w.writeBlob(headerBlob, encodeHeader(h))
	return w
}

// WriteNode writes a node. The format cannot express a node's tag without a key: it is left out.
func (w *Writer) WriteNode(n Node) error {
	w.begin(Nodes)
	w.ids = appendSigned(w.ids, n.ID-w.last.ID)
	w.lons = appendSigned(w.lons, int64(n.Lon)-int64(w.last.Lon))
	w.lats = appendSigned(w.lats, int64(n.Lat)-int64(w.last.Lat))
	w.last = n
	for _, t := range n.Tags {
		if t.Key == "" {
			continue
		}
		w.pairs = protowire.AppendVarint(w.pairs, w.intern(t.Key))
		w.pairs = protowire.AppendVarint(w.pairs, w.intern(t.Value))
		w.hasTags = true
	}
	w.pairs = append(w.pairs, 0)
	return w.err
}

// WriteWay writes a way.
func (w *Writer) WriteWay(v Way) error {
	w.begin(Ways)
	w.element = appendNumber(w.element[:0], 1, uint64(v.ID))
	w.appendTags(v.Tags)
	w.scratch = w.scratch[:0]
	last := int64(0)
	for _, id := range v.Nodes {
		w.scratch = appendSigned(w.scratch, id-last)
		last = id
	}
	w.element = appendBytes(w.element, 8, w.scratch)
	w.group = appendBytes(w.group, 3, w.element)
	return w.err
}

// WriteRelation writes a relation.
func (w *Writer) WriteRelation(r Relation) error {
	w.begin(Relations)
	w.element = appendNumber(w.element[:0], 1, uint64(r.ID))
	w.appendTags(r.Tags)
	w.scratch = w.scratch[:0]
	for _, m := range r.Members {
		w.scratch = protowire.AppendVarint(w.scratch, w.intern(m.Role))
	}
	w.element = appendBytes(w.element, 8, w.scratch)
	w.scratch = w.scratch[:0]
	last := int64(0)
	for _, m := range r.Members {
		w.scratch = appendSigned(w.scratch, m.ID-last)
		last = m.ID
	}
	w.element = appendBytes(w.element, 9, w.scratch)
	w.scratch = w.scratch[:0]
	for _, m := range r.Members {
		w.scratch = append(w.scratch, byte(m.Type))
	}
	w.element = appendBytes(w.element, 10, w.scratch)
	w.group = appendBytes(w.group, 4, w.element)
	return w.err
}

// Close writes the last block. It does not close the underlying writer.
func (w *Writer) Close() error {
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	w.flush()
	if w.err != nil {
		return w.err
	}
	w.err = ErrClosed
	return nil
}

// begin makes room for an element of a kind.
func (w *Writer) begin(kind Kinds) {
	size := len(w.table) + len(w.group) + len(w.ids) + len(w.lons) + len(w.lats) + len(w.pairs)
	if w.count > 0 && (w.kind != kind || w.count >= blockElements || size >= blockBytes) {
		w.flush()
	}
	w.kind = kind
	w.count++
}

// intern is the number of a string in the block's table.
func (w *Writer) intern(s string) uint64 {
	n, ok := w.strings[s]
	if !ok {
		n = uint64(len(w.strings))
		w.strings[s] = n
		w.table = protowire.AppendTag(w.table, 1, protowire.BytesType)
		w.table = protowire.AppendString(w.table, s)
	}
	return n
}

// appendTags adds tags to the element.
func (w *Writer) appendTags(tags Tags) {
	if len(tags) == 0 {
		return
	}
	for field, pick := range [...]func(Tag) string{func(t Tag) string { return t.Key }, func(t Tag) string { return t.Value }} {
		w.scratch = w.scratch[:0]
		for _, t := range tags {
			w.scratch = protowire.AppendVarint(w.scratch, w.intern(pick(t)))
		}
		w.element = appendBytes(w.element, protowire.Number(2+field), w.scratch)
	}
}

// flush writes the block if it has any element.
func (w *Writer) flush() {
	if w.count == 0 {
		return
	}
	// The lists of dense nodes become one group. Without any tag the list of tags is left out, as the format allows.
	if w.kind == Nodes {
		dense := appendBytes(nil, 1, w.ids)
		dense = appendBytes(dense, 8, w.lats)
		dense = appendBytes(dense, 9, w.lons)
		if w.hasTags {
			dense = appendBytes(dense, 10, w.pairs)
		}
		w.group = appendBytes(w.group, 2, dense)
	}
	block := appendBytes(nil, 1, w.table)
	w.writeBlob(dataBlob, appendBytes(block, 2, w.group))
	w.reset()
}

// reset begins an empty block. The string 0 is empty, because a list of tags ends with it.
func (w *Writer) reset() {
	clear(w.strings)
	w.table, w.group = w.table[:0], w.group[:0]
	w.ids, w.lons, w.lats, w.pairs = w.ids[:0], w.lons[:0], w.lats[:0], w.pairs[:0]
	w.last, w.count, w.hasTags = Node{}, 0, false
	w.intern("")
}

// writeBlob writes a blob with its length and header.
func (w *Writer) writeBlob(name string, content []byte) {
	if w.err != nil {
		return
	}
	w.packed.Reset()
	w.deflate.Reset(&w.packed)
	if _, w.err = w.deflate.Write(content); w.err == nil {
		w.err = w.deflate.Close()
	}
	blob := appendNumber(nil, 2, uint64(len(content)))
	blob = appendBytes(blob, 3, w.packed.Bytes())
	header := appendNumber(appendBytes(nil, 1, []byte(name)), 3, uint64(len(blob)))
	frame := slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(header))), header, blob)
	if w.err == nil {
		_, w.err = w.out.Write(frame)
	}
}

// encodeHeader encodes the content of the first blob.
func encodeHeader(h Header) (b []byte) {
	if h.Box != (Box{}) {
		var box []byte
		for i, side := range [...]int32{h.Box.West, h.Box.East, h.Box.North, h.Box.South} {
			box = appendNumber(box, protowire.Number(i+1), protowire.EncodeZigZag(int64(side)*100))
		}
		b = appendBytes(b, 1, box)
	}
	required := []string{"OsmSchema-V0.6", "DenseNodes"}
	for _, name := range required {
		b = appendBytes(b, 4, []byte(name))
	}
	for _, name := range h.Features {
		if !slices.Contains(required, name) {
			b = appendBytes(b, 5, []byte(name))
		}
	}
	if h.Generator != "" {
		b = appendBytes(b, 16, []byte(h.Generator))
	}
	if h.Source != "" {
		b = appendBytes(b, 17, []byte(h.Source))
	}
	if !h.Date.IsZero() {
		b = appendNumber(b, 32, uint64(h.Date.Unix()))
	}
	return b
}

// appendSigned appends a number that may be negative.
func appendSigned(b []byte, v int64) []byte {
	return protowire.AppendVarint(b, protowire.EncodeZigZag(v))
}

// appendNumber appends a field with a number.
func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// appendBytes appends a field with bytes.
func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}
