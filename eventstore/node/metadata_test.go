package node_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore/node"
)

func setMetadata(t *testing.T, c *esdb.Client, stream string, set func(*esdb.StreamMetadata)) {
	t.Helper()
	var m esdb.StreamMetadata
	set(&m)
	if _, err := c.SetStreamMetadata(t.Context(), stream, esdb.AppendToStreamOptions{}, m); err != nil {
		t.Fatal(err)
	}
}

func deleteStream(t *testing.T, c *esdb.Client, stream string) {
	t.Helper()
	done, err := c.DeleteStream(t.Context(), stream, esdb.DeleteStreamOptions{})
	if err != nil || done.Position.Commit == 0 {
		t.Fatalf("delete %s: %+v, %v", stream, done, err)
	}
}

func TestMetadataSaysWhichEventsAreRead(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, x := range []struct {
		name string
		set  func(*esdb.StreamMetadata)
		want []uint64
	}{
		{"nothing", func(m *esdb.StreamMetadata) { m.AddCustomProperty("owner", "x") }, []uint64{0, 1, 2, 3, 4}},
		{"a count", func(m *esdb.StreamMetadata) { m.SetMaxCount(2) }, []uint64{3, 4}},
		{"a greater count", func(m *esdb.StreamMetadata) { m.SetMaxCount(99) }, []uint64{0, 1, 2, 3, 4}},
		{"an age", func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Hour) }, []uint64{0, 1, 2, 3, 4}},
		{"a beginning", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(3) }, []uint64{3, 4}},
		{"a beginning after the end", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(5) }, []uint64{}},
		{"the strictest of both", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(1); m.SetMaxCount(1) }, []uint64{4}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			stream := "m-" + x.name
			mustAppend(t, c, stream, esdb.NoStream{}, newEvents(5)...)
			setMetadata(t, c, stream, x.set)
			if got := revisions(t, c, stream); !slices.Equal(got, x.want) {
				t.Errorf("forwards %v, want %v", got, x.want)
			}
			back, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}, 99))
			got := revisionsOf(back)
			slices.Reverse(got)
			if err != nil || !slices.Equal(got, x.want) {
				t.Errorf("backwards %v, %v, want %v", got, err, x.want)
			}
		})
	}
}

func TestEventsOlderThanTheGreatestAgeAreNotRead(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	t.Cleanup(s.stop)
	c := s.client(t)
	mustAppend(t, c, "age-1", esdb.NoStream{}, newEvents(5)...)
	setMetadata(t, c, "age-1", func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Hour) })
	if got := revisions(t, c, "age-1"); len(got) != 5 {
		t.Errorf("young: got %v", got)
	}
	ahead.Store(int64(2 * time.Hour))
	if got := revisions(t, c, "age-1"); len(got) != 0 {
		t.Errorf("old: got %v", got)
	}
	if all, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{}, 99)); err != nil || len(all) != 6 {
		t.Errorf("the log shows %d events, %v, want 6", len(all), err)
	}
}

func TestMetadataIsReadAsItWasSetAndOnlyTheLast(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	setMetadata(t, c, "m-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(1) })
	setMetadata(t, c, "m-1", func(m *esdb.StreamMetadata) {
		m.SetMaxCount(7)
		m.SetMaxAge(2 * time.Second)
		m.SetTruncateBefore(3)
		m.AddCustomProperty("owner", "x")
	})
	m, err := c.GetStreamMetadata(t.Context(), "m-1", esdb.ReadStreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *m.MaxCount() != 7 || *m.MaxAge() != 2*time.Second || *m.TruncateBefore() != 3 || m.CustomProperty("owner") != "x" {
		t.Errorf("got %+v", m)
	}
	if got := revisions(t, c, "$$m-1"); !slices.Equal(got, []uint64{1}) {
		t.Errorf("metadata stream shows %v, want [1]", got)
	}
}

func TestADeletedStreamIsNotFoundUntilItIsWrittenToAgain(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, x := range []struct {
		name     string
		expected esdb.ExpectedRevision
	}{{"any", esdb.Any{}}, {"no stream", esdb.NoStream{}}, {"its revision", esdb.Revision(2)}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			stream := "d-" + x.name
			old := newEvents(3)
			mustAppend(t, c, stream, esdb.NoStream{}, old...)
			deleteStream(t, c, stream)
			if _, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 9)); errorCode(err) != esdb.ErrorCodeResourceNotFound {
				t.Fatalf("deleted: got %v, want not found", err)
			}
			_, err := c.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.StreamExists{}}, newEvent("e"))
			if errorCode(err) != esdb.ErrorCodeStreamDeleted {
				t.Errorf("append where it exists: got %v, want deleted", err)
			}
			if again := mustAppend(t, c, stream, esdb.NoStream{}, old...); again.NextExpectedVersion != 2 {
				t.Errorf("an old append again: got %+v", again)
			}
			if done := mustAppend(t, c, stream, x.expected, newEvents(2)...); done.NextExpectedVersion != 4 {
				t.Errorf("goes on to %d, want 4", done.NextExpectedVersion)
			}
			if got := revisions(t, c, stream); !slices.Equal(got, []uint64{3, 4}) {
				t.Errorf("got %v, want [3 4]", got)
			}
			m, err := c.GetStreamMetadata(t.Context(), stream, esdb.ReadStreamOptions{})
			if err != nil || m.TruncateBefore() == nil || *m.TruncateBefore() != 3 {
				t.Errorf("metadata %+v, %v, want $tb 3", m, err)
			}
		})
	}
}

func TestMetadataSetOnADeletedStreamBringsItBackEmpty(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "d-1", esdb.NoStream{}, newEvents(3)...)
	deleteStream(t, c, "d-1")
	setMetadata(t, c, "d-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(5) })
	if got := revisions(t, c, "d-1"); len(got) != 0 {
		t.Errorf("got %v, want no events", got)
	}
	m, err := c.GetStreamMetadata(t.Context(), "d-1", esdb.ReadStreamOptions{})
	if err != nil || *m.MaxCount() != 5 || m.TruncateBefore() == nil || *m.TruncateBefore() != 3 {
		t.Errorf("metadata %+v, %v", m, err)
	}
	setMetadata(t, c, "d-1", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(0) })
	if got := revisions(t, c, "d-1"); len(got) != 3 {
		t.Errorf("told to show everything: got %v", got)
	}
}

func TestADeletionIsMadeOnlyWhereItIsExpected(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "d-1", esdb.NoStream{}, newEvents(3)...)
	type call func(context.Context, string, esdb.ExpectedRevision) error
	for name, end := range map[string]call{
		"delete": func(ctx context.Context, stream string, r esdb.ExpectedRevision) error {
			_, err := c.DeleteStream(ctx, stream, esdb.DeleteStreamOptions{ExpectedRevision: r})
			return err
		},
		"tombstone": func(ctx context.Context, stream string, r esdb.ExpectedRevision) error {
			_, err := c.TombstoneStream(ctx, stream, esdb.TombstoneStreamOptions{ExpectedRevision: r})
			return err
		},
	} {
		for _, r := range []esdb.ExpectedRevision{esdb.NoStream{}, esdb.Revision(1), esdb.Revision(3)} {
			if err := end(t.Context(), "d-1", r); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("%s at %v: got %v, want a failed precondition", name, r, err)
			}
		}
		if err := end(t.Context(), "none-1", esdb.StreamExists{}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s of none: got %v, want a failed precondition", name, err)
		}
	}
	if got := revisions(t, c, "d-1"); len(got) != 3 {
		t.Errorf("%d events, want 3", len(got))
	}
	if _, err := c.DeleteStream(t.Context(), "d-1", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(2)}); err != nil {
		t.Error(err)
	}
}

func TestATombstonedStreamIsDeletedEverywhere(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	first := newEvents(2)
	mustAppend(t, c, "t-1", esdb.NoStream{}, first...)
	end, err := c.TombstoneStream(t.Context(), "t-1", esdb.TombstoneStreamOptions{})
	if err != nil || end.Position.Commit == 0 {
		t.Fatalf("got %+v, %v", end, err)
	}
	calls := map[string]func() error{
		"read": func() error {
			_, err := readEvents(c.ReadStream(t.Context(), "t-1", esdb.ReadStreamOptions{}, 9))
			return err
		},
		"read metadata": func() error {
			_, err := readEvents(c.ReadStream(t.Context(), "$$t-1", esdb.ReadStreamOptions{}, 9))
			return err
		},
		"set metadata": func() error {
			_, err := c.SetStreamMetadata(t.Context(), "t-1", esdb.AppendToStreamOptions{}, esdb.StreamMetadata{})
			return err
		},
		"subscribe": func() error {
			_, err := c.SubscribeToStream(t.Context(), "t-1", esdb.SubscribeToStreamOptions{})
			return err
		},
		"delete": func() error { _, err := c.DeleteStream(t.Context(), "t-1", esdb.DeleteStreamOptions{}); return err },
		"tombstone": func() error {
			_, err := c.TombstoneStream(t.Context(), "t-1", esdb.TombstoneStreamOptions{})
			return err
		},
	}
	for _, r := range []esdb.ExpectedRevision{esdb.Any{}, esdb.NoStream{}, esdb.StreamExists{}, esdb.Revision(1), esdb.Revision(2)} {
		calls["append"] = func() error {
			_, err := c.AppendToStream(t.Context(), "t-1", esdb.AppendToStreamOptions{ExpectedRevision: r}, first...)
			return err
		}
		for name, call := range calls {
			if err := call(); errorCode(err) != esdb.ErrorCodeStreamDeleted {
				t.Errorf("%s: got %v, want stream deleted", name, err)
			}
		}
	}
	all, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{}, 9))
	if err != nil || len(all) != 3 || all[2].EventType != "$streamDeleted" || all[2].EventNumber != 1<<63-1 {
		t.Errorf("the log holds %v, %v", all, err)
	}
}
