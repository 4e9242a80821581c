package node_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/deadlinetest"
)

// restart stops a node and starts another on the same folder, at the same address.
func restart(t *testing.T, s nodeServer) nodeServer {
	t.Helper()
	s.stop()
	again := serveFolder(t, s.dir, s.addr)
	t.Cleanup(again.stop)
	return again
}

// reopen is restart for the contract.
func reopen(t *testing.T, s eventstore.Store) eventstore.Store {
	t.Helper()
	old := s.(*officialStore)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	return restart(t, old.server).asStore(t)
}

func TestWhatANodeKeepsBesideEventsSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	binary := func() esdb.EventData {
		return esdb.EventData{EventType: "e", ContentType: esdb.ContentTypeBinary, Metadata: []byte{0}}
	}
	for _, stream := range []string{"cut-1", "deleted-1", "ended-1", "back-1"} {
		mustAppend(t, c, stream, esdb.NoStream{}, newEvent("e"), newEvent("e"), binary())
	}
	setMetadata(t, c, "cut-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(1) })
	deleteStream(t, c, "deleted-1")
	deleteStream(t, c, "back-1")
	mustAppend(t, c, "back-1", esdb.Any{}, binary())
	if _, err := c.TombstoneStream(t.Context(), "ended-1", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	c = restart(t, s).client(t)
	for stream, want := range map[string][]uint64{"cut-1": {2}, "back-1": {3}} {
		got, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 99))
		if err != nil || !slices.Equal(revisionsOf(got), want) {
			t.Fatalf("%s: got %v, %v, want %v", stream, revisionsOf(got), err, want)
		}
		if got[0].ContentType != "application/octet-stream" || !slices.Equal(got[0].UserMetadata, []byte{0}) {
			t.Errorf("%s: got %s, %q", stream, got[0].ContentType, got[0].UserMetadata)
		}
	}
	if _, err := readEvents(c.ReadStream(t.Context(), "deleted-1", esdb.ReadStreamOptions{}, 9)); errorCode(err) != esdb.ErrorCodeResourceNotFound {
		t.Errorf("deleted: got %v, want not found", err)
	}
	if _, err := c.AppendToStream(t.Context(), "ended-1", esdb.AppendToStreamOptions{}, binary()); errorCode(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("tombstoned: got %v, want stream deleted", err)
	}
}

// TestAStreamThatComesBackIsReadWithoutItsMetadata: the node died between the event and the metadata that is due.
func TestAStreamThatComesBackIsReadWithoutItsMetadata(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	for _, stream := range []string{"written-1", "set-1"} {
		mustAppend(t, c, stream, esdb.NoStream{}, newEvents(3)...)
		deleteStream(t, c, stream)
	}
	direct := func(stream, kind, data string) {
		t.Helper()
		e := eventstore.ProposedEvent{ID: uuid.New(), Type: kind, Data: []byte(data)}
		if _, err := s.log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{e}); err != nil {
			t.Fatal(err)
		}
	}
	direct("written-1", "e", "{}")
	direct("$$set-1", "$metadata", `{"$maxCount":9}`)
	for stream, want := range map[string][]uint64{"written-1": {3}, "set-1": {}} {
		if got := revisions(t, c, stream); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", stream, got, want)
		}
		mustAppend(t, c, stream, esdb.Any{}, newEvent("later"))
		m, err := c.GetStreamMetadata(t.Context(), stream, esdb.ReadStreamOptions{})
		if err != nil || m.TruncateBefore() == nil || *m.TruncateBefore() != 3 {
			t.Errorf("%s: metadata %+v, %v, want $tb 3", stream, m, err)
		}
		if got := revisions(t, c, stream); len(got) != len(want)+1 {
			t.Errorf("%s: then got %v", stream, got)
		}
	}
}

// appendUntilKnown sends one append until its fate is known.
func appendUntilKnown(ctx context.Context, c *esdb.Client, stream string, expected esdb.ExpectedRevision, e esdb.EventData) error {
	for {
		_, err := c.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, e)
		if err == nil || ctx.Err() != nil || errorCode(err) == esdb.ErrorCodeWrongExpectedVersion {
			return err
		}
	}
}

func TestNoAcknowledgedAppendIsLostOrDoubledByARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
	c := connect(t, "esdb://unused?tls=false&maxDiscoverAttempts=10000&discoveryInterval=5", s.addr)
	const writers, each = 4, 60
	ended := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			var expected esdb.ExpectedRevision = esdb.NoStream{}
			for i := 0; i < each && err == nil; i++ {
				err = appendUntilKnown(ctx, c, fmt.Sprintf("w-%d", w), expected, newEvent(fmt.Sprint(i)))
				expected = esdb.Revision(uint64(i))
			}
			ended <- err
		}()
	}
	for range 3 {
		if _, err := s.log.Wait(ctx, s.log.LastCheckpoint().Position); err != nil {
			t.Fatal(err)
		}
		s = restart(t, s)
	}
	for range writers {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for w := range writers {
		if got := revisions(t, c, fmt.Sprintf("w-%d", w)); len(got) != each {
			t.Errorf("writer %d: %d events, want %d", w, len(got), each)
		}
	}
}
