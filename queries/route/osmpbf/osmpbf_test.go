package osmpbf_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/osmpbf/osmtest"
)

const all = osmpbf.Nodes | osmpbf.Ways | osmpbf.Relations

// header is the header of the invented maps.
var header = osmpbf.Header{Date: time.Date(2026, 11, 1, 20, 21, 22, 0, time.UTC), Generator: "lieudit", Source: "invented",
	Features: []string{"OsmSchema-V0.6", "DenseNodes", "Sort.Type_then_ID"}, Box: osmpbf.Box{West: -10, South: -20, East: 30, North: 40}}

// newMap writes a map of n nodes, with a way and a relation for every hundred of them.
func newMap(t testing.TB, nodes int) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	w := osmpbf.NewWriter(out, header)
	write := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(nodes) {
		n := osmpbf.Node{ID: 2 * i, Lon: int32(-1_800_000_000 + i*7919), Lat: int32(900_000_000 - i*6007)}
		if i%9 == 0 {
			n.Tags = osmpbf.Tags{{Key: "highway", Value: "traffic_signals"}}
		}
		write(w.WriteNode(n))
	}
	for i := range int64(nodes / 100) {
		nodes, tags := []int64{200 * i, 200*i + 2, 200 * i}, osmpbf.Tags{{Key: "name", Value: "Rue du Moulin"}}
		write(w.WriteWay(osmpbf.Way{ID: -i, Nodes: nodes, Tags: tags}))
	}
	for i := range int64(nodes / 100) {
		members := []osmpbf.Member{{Type: osmpbf.WayMember, ID: -i, Role: "from"}, {Type: osmpbf.NodeMember, ID: 200 * i, Role: "via"},
			{Type: osmpbf.RelationMember, ID: 1 << 40}}
		write(w.WriteRelation(osmpbf.Relation{ID: i, Members: members, Tags: osmpbf.Tags{{Key: "type", Value: "restriction"}}}))
	}
	write(w.Close())
	return out.Bytes()
}

// save writes a file of the test.
func save(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "map.osm.pbf")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{0, 1, 100, 40_000} {
		f := open(t, save(t, newMap(t, nodes)))
		if got := f.Header(); got.Date != header.Date || got.Generator != header.Generator || got.Box != header.Box ||
			got.Source != header.Source || !slices.Equal(got.Features, header.Features) {
			t.Errorf("%d nodes: got header %+v, want %+v", nodes, got, header)
		}
		copied := &bytes.Buffer{}
		w := osmpbf.NewWriter(copied, f.Header())
		if err := f.Scan(t.Context(), all, nil, func(b *osmpbf.Block) error { return writeBlock(w, b) }); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(copied.Bytes(), newMap(t, nodes)) {
			t.Errorf("%d nodes: a copy differs from the map", nodes)
		}
	}
}

func writeBlock(w *osmpbf.Writer, b *osmpbf.Block) (err error) {
	for _, n := range b.Nodes {
		err = errors.Join(err, w.WriteNode(n))
	}
	for _, v := range b.Ways {
		err = errors.Join(err, w.WriteWay(v))
	}
	for _, r := range b.Relations {
		err = errors.Join(err, w.WriteRelation(r))
	}
	return err
}

func TestRealMapsAreTheSameAfterACopy(t *testing.T) {
	t.Parallel()
	f := open(t, osmtest.Path(t, "monaco"))
	copied := &bytes.Buffer{}
	w := osmpbf.NewWriter(copied, f.Header())
	want, got := newSum(), newSum()
	err := f.Scan(t.Context(), all, nil, func(b *osmpbf.Block) error { want.addBlock(b); return writeBlock(w, b) })
	if err != nil || w.Close() != nil {
		t.Fatal(err, w.Close())
	}
	if err := open(t, save(t, copied.Bytes())).Scan(t.Context(), all, nil, got.addBlock); err != nil {
		t.Fatal(err)
	}
	if got, want := got.end(), want.end(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAScanGivesTheWantedKindsBeforeAndAfterTheIndex(t *testing.T) {
	t.Parallel()
	f := open(t, save(t, newMap(t, 20_000)))
	for _, kinds := range []osmpbf.Kinds{osmpbf.Ways, osmpbf.Relations | osmpbf.Nodes, all, osmpbf.Ways, osmpbf.Relations, osmpbf.Nodes, 0} {
		got, want, last := [3]int{}, [3]int{}, int64(0)
		for i, n := range [...]int{20_000, 200, 200} {
			if kinds>>i&1 != 0 {
				want[i] = n
			}
		}
		err := f.Scan(t.Context(), kinds, func(done int64) { last = done }, func(b *osmpbf.Block) error {
			got[0], got[1], got[2] = got[0]+len(b.Nodes), got[1]+len(b.Ways), got[2]+len(b.Relations)
			return nil
		})
		if err != nil || got != want || last != f.Size() {
			t.Errorf("kinds %03b: got %v, %d bytes, %v; want %v, %d bytes", kinds, got, last, err, want, f.Size())
		}
	}
}

func TestAScanEndsWithTheErrorOfVisitAndWithItsContext(t *testing.T) {
	t.Parallel()
	f := open(t, save(t, newMap(t, 50_000)))
	stop := errors.New("stop")
	if err := f.Scan(t.Context(), all, nil, func(*osmpbf.Block) error { return stop }); err != stop {
		t.Errorf("got %v, want the error of visit", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	blocks := 0
	err := f.Scan(ctx, all, nil, func(*osmpbf.Block) error { blocks++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || blocks != 1 {
		t.Errorf("got %v after %d blocks, want the end of the context after one", err, blocks)
	}
}

func TestOtherFilesAreRefusedInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, want string }{
		{"", "it is empty"},
		{"\x1f\x8b\x08\x00", "gzip"},
		{"<?xml version='1.0'?><osm>", "it is XML"},
		{"\n<!DOCTYPE html>", "web page"},
		{"BZh91AY", "bzip2"},
		{"hello", "OSMHeader"},
		{"\x00\x00\x00\x04hello", "OSMHeader"},
	} {
		_, err := osmpbf.Open(save(t, []byte(c.content)))
		var format *osmpbf.FormatError
		if !errors.As(err, &format) || !strings.Contains(format.Error(), c.want) {
			t.Errorf("%q: got %v, want a FormatError with %q", c.content, err, c.want)
		}
	}
	if _, err := osmpbf.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "it is a folder") {
		t.Errorf("a folder: got %v", err)
	}
}

func TestACutMapSaysWhereItEnds(t *testing.T) {
	t.Parallel()
	content := newMap(t, 30_000)
	for _, size := range []int{len(content) - 1, len(content) / 2} {
		blocks := 0
		err := open(t, save(t, content[:size])).Scan(t.Context(), all, nil, func(*osmpbf.Block) error { blocks++; return nil })
		var cut *osmpbf.CutError
		if !errors.As(err, &cut) || cut.Size != int64(size) || cut.Blob != blocks+1 || cut.Offset >= cut.Size {
			t.Errorf("cut at %d: got %v after %d blocks", size, err, blocks)
		}
	}
	var cut *osmpbf.CutError
	if _, err := osmpbf.Open(save(t, content[:40])); !errors.As(err, &cut) || cut.Blob != 0 {
		t.Errorf("cut in the header: got %v", err)
	}
}

func TestADamagedBlobIsNamed(t *testing.T) {
	t.Parallel()
	content := newMap(t, 30_000)
	content[len(content)/2] ^= 0x55
	err := open(t, save(t, content)).Scan(t.Context(), all, nil, func(*osmpbf.Block) error { return nil })
	var damage *osmpbf.DamageError
	if !errors.As(err, &damage) || damage.Blob == 0 || damage.Offset > int64(len(content)/2) {
		t.Errorf("got %v, want a DamageError before byte %d", err, len(content)/2)
	}
}
