package osmpbf

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// frameOf frames a blob as it stands.
func frameOf(name string, blob []byte) []byte {
	header := appendNumber(appendBytes(nil, 1, []byte(name)), 3, uint64(len(blob)))
	return slices.Concat([]byte{0, 0, 0, byte(len(header))}, header, blob)
}

// openBytes opens a map in memory.
func openBytes(content []byte) (*File, error) {
	return newFile(bytes.NewReader(content), io.NopCloser(nil), int64(len(content)))
}

func TestAMapThatNeedsMoreOfItsReaderIsRefused(t *testing.T) {
	t.Parallel()
	for _, feature := range []string{"HistoricalInformation", "Tomorrow"} {
		content := frameOf(headerBlob, appendBytes(nil, 1, appendBytes(nil, 4, []byte(feature))))
		_, err := openBytes(content)
		var want *FeatureError
		if !errors.As(err, &want) || want.Feature != feature {
			t.Errorf("got %v, want a FeatureError of %s", err, feature)
		}
	}
	var out bytes.Buffer
	NewWriter(&out, Header{})
	for field, name := range map[protowire.Number]string{4: "lzma", 5: "bzip2", 6: "lz4"} {
		f, err := openBytes(slices.Concat(out.Bytes(), frameOf(dataBlob, appendBytes(nil, field, []byte("x")))))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Scan(t.Context(), Nodes, nil, func(*Block) error { return nil })
		var want *FeatureError
		if !errors.As(err, &want) || want.Feature != name {
			t.Errorf("got %v, want a FeatureError of %s", err, name)
		}
	}
}

func TestBlobsOfUnknownTypesArePassedOver(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, Header{})
	out.Write(frameOf("Weather", []byte("rain")))
	w.WriteNode(Node{ID: 1})
	w.Close()
	f, err := openBytes(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	nodes := 0
	if err := f.Scan(t.Context(), Nodes, nil, func(b *Block) error { nodes += len(b.Nodes); return nil }); err != nil || nodes != 1 {
		t.Errorf("got %d nodes, %v; want 1", nodes, err)
	}
}

// dense encodes a block with one group of dense nodes.
func dense(ids, lons, lats []int64, extra ...uint64) []byte {
	var group []byte
	for _, list := range []struct {
		field  protowire.Number
		values []int64
	}{{1, ids}, {8, lats}, {9, lons}} {
		var b []byte
		for _, v := range list.values {
			b = appendSigned(b, v)
		}
		group = appendBytes(group, list.field, b)
	}
	block := appendBytes(appendBytes(nil, 1, appendBytes(nil, 1, nil)), 2, appendBytes(nil, 2, group))
	for i := 0; i+1 < len(extra); i += 2 {
		block = appendNumber(block, protowire.Number(extra[i]), extra[i+1])
	}
	return block
}

func TestPositionsFollowGranularityAndOffsets(t *testing.T) {
	t.Parallel()
	negative := int64(-3000)
	for _, c := range []struct {
		block []byte
		want  []Node
	}{
		{dense([]int64{5, 1}, []int64{20, -5}, []int64{10, 1}), []Node{{ID: 5, Lon: 20, Lat: 10}, {ID: 6, Lon: 15, Lat: 11}}},
		{dense([]int64{5}, []int64{20}, []int64{10}, 17, 1000, 19, uint64(negative), 20, 500), []Node{{ID: 5, Lon: 205, Lat: 70}}},
		{dense([]int64{5}, []int64{1}, []int64{-1}, 17, 50), []Node{{ID: 5, Lon: 1, Lat: -1}}},
		{dense([]int64{5}, []int64{1_800_000_001}, []int64{0}), nil},
		{dense([]int64{5}, []int64{0}, []int64{math.MaxInt64 / 2}), nil},
	} {
		d := decoder{}
		kinds, err := d.decodeBlock(c.block, Nodes)
		isSame := slices.EqualFunc(d.block.Nodes, c.want, func(a, b Node) bool { return a.ID == b.ID && a.Lon == b.Lon && a.Lat == b.Lat })
		if err != nil || kinds != Nodes || !isSame {
			t.Errorf("got %v, %v; want %v", d.block.Nodes, err, c.want)
		}
	}
}

func TestListsOfDifferentLengthsAreDamage(t *testing.T) {
	t.Parallel()
	tags := appendBytes(appendBytes(nil, 2, []byte{0, 0}), 3, []byte{0})
	refused := [][]byte{
		dense([]int64{1, 1}, []int64{1}, []int64{1, 1}),
		dense([]int64{1}, []int64{1, 1}, []int64{1}),
		appendBytes(nil, 2, appendBytes(nil, 3, tags)),
		appendBytes(nil, 2, appendBytes(nil, 4, appendBytes(nil, 9, []byte{2}))),
	}
	for i, block := range refused {
		if _, err := new(decoder).decodeBlock(block, Nodes|Ways|Relations); err == nil {
			t.Errorf("block %d: got no error", i)
		}
	}
}

func TestASmallBlobCannotAskForMuchMemory(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := NewWriter(&packed, Header{})
	w.packed.Reset()
	w.deflate.Reset(&w.packed)
	w.deflate.Write(make([]byte, 3*maxElements+30))
	w.deflate.Close()
	for _, size := range []uint64{1 << 20, maxBlobSize, 1 << 62, math.MaxUint64} {
		blob := appendBytes(appendNumber(nil, 2, size), 3, w.packed.Bytes())
		i := inflater{}
		if _, err := i.inflate(blob); err == nil || cap(i.out) > 2*maxBlobSize {
			t.Errorf("size %d: got %v and %d bytes", size, err, cap(i.out))
		}
	}
	zeros := make([]int64, maxElements+1)
	if _, err := new(decoder).decodeBlock(dense(zeros, zeros, zeros), Nodes); !errors.Is(err, errTooMany) {
		t.Errorf("got %v, want %v", err, errTooMany)
	}
}

func FuzzDecodeBlock(f *testing.F) {
	f.Add(dense([]int64{5, 1}, []int64{20, -5}, []int64{10, 1}))
	var out bytes.Buffer
	w := NewWriter(&out, Header{})
	w.WriteWay(Way{ID: 1, Nodes: []int64{1, 2}, Tags: Tags{{"a", "b"}}})
	f.Add(appendBytes(appendBytes(nil, 1, w.table), 2, w.group))
	w.WriteRelation(Relation{ID: 1, Members: []Member{{WayMember, 3, "from"}}, Tags: Tags{{"a", "b"}}})
	f.Add(appendBytes(appendBytes(nil, 1, w.table), 2, w.group))
	f.Fuzz(func(_ *testing.T, block []byte) {
		new(decoder).decodeBlock(block, Nodes|Ways|Relations)
		decodeHeader(block)
		new(inflater).inflate(block)
	})
}

func FuzzFile(f *testing.F) {
	var out bytes.Buffer
	w := NewWriter(&out, Header{Generator: "x"})
	w.WriteNode(Node{ID: 1, Lon: 2, Lat: 3, Tags: Tags{{"a", "b"}}})
	w.Close()
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := openBytes(content)
		if err != nil {
			return
		}
		file.Scan(t.Context(), Nodes|Ways|Relations, nil, func(*Block) error { return nil })
	})
}
