package node_test

import (
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func revisionsOf(all []*esdb.RecordedEvent) []uint64 {
	got := []uint64{}
	for _, e := range all {
		got = append(got, e.EventNumber)
	}
	return got
}

func TestAStreamIsReadBothWaysFromAnywhere(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "r-1", esdb.NoStream{}, newEvents(10)...)
	mustAppend(t, c, "r-10", esdb.NoStream{}, newEvents(1)...)
	for _, x := range []struct {
		name  string
		dir   esdb.Direction
		from  esdb.StreamPosition
		count uint64
		want  []uint64
	}{
		{"all", esdb.Forwards, esdb.Start{}, 100, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"some", esdb.Forwards, esdb.Start{}, 3, []uint64{0, 1, 2}},
		{"from a revision, inclusive", esdb.Forwards, esdb.Revision(7), 100, []uint64{7, 8, 9}},
		{"from the end", esdb.Forwards, esdb.End{}, 100, []uint64{}},
		{"beyond the end", esdb.Forwards, esdb.Revision(50), 100, []uint64{}},
		{"backwards", esdb.Backwards, esdb.End{}, 100, []uint64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		{"the last", esdb.Backwards, esdb.End{}, 1, []uint64{9}},
		{"backwards from a revision, inclusive", esdb.Backwards, esdb.Revision(2), 100, []uint64{2, 1, 0}},
		{"backwards from beyond the end", esdb.Backwards, esdb.Revision(50), 2, []uint64{9, 8}},
		{"backwards from the start", esdb.Backwards, esdb.Start{}, 100, []uint64{0}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			got, err := readEvents(c.ReadStream(t.Context(), "r-1", esdb.ReadStreamOptions{Direction: x.dir, From: x.from}, x.count))
			if err != nil || !slices.Equal(revisionsOf(got), x.want) {
				t.Errorf("got %v, %v, want %v", revisionsOf(got), err, x.want)
			}
		})
	}
}

func TestAStreamWithoutEventsIsNotFound(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, dir := range []esdb.Direction{esdb.Forwards, esdb.Backwards} {
		_, err := readEvents(c.ReadStream(t.Context(), "none-1", esdb.ReadStreamOptions{Direction: dir, From: esdb.End{}}, 1))
		if errorCode(err) != esdb.ErrorCodeResourceNotFound {
			t.Errorf("direction %d: got %v, want not found", dir, err)
		}
	}
}

func TestTheWholeLogIsReadBothWaysFromAnywhere(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	var at []esdb.Position
	for i := range 10 {
		done := mustAppend(t, c, []string{"a-1", "$b", "c"}[i%3], esdb.Any{}, newEvent("e"))
		at = append(at, esdb.Position{Commit: done.CommitPosition, Prepare: done.PreparePosition})
	}
	back := slices.Clone(at)
	slices.Reverse(back)
	for _, x := range []struct {
		name  string
		dir   esdb.Direction
		from  esdb.AllPosition
		count uint64
		want  []esdb.Position
	}{
		{"all", esdb.Forwards, esdb.Start{}, 100, at},
		{"some", esdb.Forwards, esdb.Start{}, 4, at[:4]},
		{"from a position, inclusive", esdb.Forwards, at[6], 100, at[6:]},
		{"from the end", esdb.Forwards, esdb.End{}, 100, nil},
		{"backwards", esdb.Backwards, esdb.End{}, 100, back},
		{"the last", esdb.Backwards, esdb.End{}, 1, back[:1]},
		{"backwards from a position, exclusive", esdb.Backwards, at[6], 100, back[4:]},
		{"backwards from the start", esdb.Backwards, esdb.Start{}, 100, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			all, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{Direction: x.dir, From: x.from}, x.count))
			var got []esdb.Position
			for _, e := range all {
				got = append(got, e.Position)
			}
			if err != nil || !slices.Equal(got, x.want) {
				t.Errorf("got %v, %v, want %v", got, err, x.want)
			}
		})
	}
	t.Run("a position where no event stands", func(t *testing.T) {
		t.Parallel()
		astray := esdb.Position{Commit: at[4].Commit + 1, Prepare: at[4].Commit + 1}
		if _, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{From: astray}, 1)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v, want an invalid position", err)
		}
	})
}

func TestALogWithoutEventsReadsAsNothing(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, o := range []esdb.ReadAllOptions{{}, {From: esdb.End{}, Direction: esdb.Backwards}} {
		if all, err := readEvents(c.ReadAll(t.Context(), o, 10)); err != nil || len(all) != 0 {
			t.Errorf("got %d events, %v", len(all), err)
		}
	}
}
