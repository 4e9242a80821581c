package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"lieudit/eventstore"
	"lieudit/eventstore/node"
)

// slow is a log that holds each append until it is let go.
type slow struct {
	node.Log
	arrived chan struct{}
	letGo   chan struct{}
}

func (s *slow) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	s.arrived <- struct{}{}
	<-s.letGo
	return s.Log.Append(ctx, stream, expected, events)
}

func serveSlow(t *testing.T, faults node.Faults) (server, *slow) {
	t.Helper()
	log := &slow{open(t, t.TempDir()), make(chan struct{}, 10), make(chan struct{}, 10)}
	s := serve(t, log, socket(t), node.Options{Faults: faults})
	t.Cleanup(s.stop)
	return s, log
}

func TestARepeatOfWhatIsOnItsWayCanBeDropped(t *testing.T) {
	t.Parallel()
	s, log := serveSlow(t, node.Faults{DropRepeats: time.Millisecond})
	first, other := pipeline(t, s), pipeline(t, s)
	b := batch("p-1", 2)
	if err := first.Send(b); err != nil {
		t.Fatal(err)
	}
	<-log.arrived
	for range 2 {
		if got := ask(t, other, b).GetError(); got.GetCode() != int32(code.Code_DEADLINE_EXCEEDED) || got.GetMessage() != "Timeout" {
			t.Errorf("a repeat on its way: got %v, want a timeout", got)
		}
	}
	log.letGo <- struct{}{}
	landed, err := first.Recv()
	if err != nil || landed.GetSuccess().GetCurrentRevision() != 1 {
		t.Fatalf("the original: got %v, %v", landed, err)
	}
	log.letGo <- struct{}{}
	if again := ask(t, other, b); again.GetSuccess().String() != landed.GetSuccess().String() {
		t.Errorf("sent again later: got %v, want %v", again, landed)
	}
	if got := revisions(t, s.client(t), "p-1"); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

func TestAnAppendCanBeGivenUpBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	s, log := serveSlow(t, node.Faults{EarlyTimeout: time.Hour})
	for range 10 {
		log.letGo <- struct{}{}
	}
	b := batch("p-1", 1, func(b *api.BatchAppendReq) {
		b.Options.DeadlineOption = &api.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(time.Hour + time.Nanosecond)}
	})
	if got := ask(t, pipeline(t, s), b).GetError(); got.GetCode() != int32(code.Code_DEADLINE_EXCEEDED) {
		t.Errorf("got %v, want a timeout", got)
	}
}

func TestAReadFromInsideARecordCanFailAsEventStoreDBs(t *testing.T) {
	t.Parallel()
	for inside, want := range map[node.InsideRecord]codes.Code{
		node.RefusedInside: codes.InvalidArgument, node.FailedInside: codes.Unknown, node.SilentInside: codes.DeadlineExceeded,
	} {
		s := serve(t, open(t, t.TempDir()), socket(t), node.Options{Faults: node.Faults{InsideRecord: inside}})
		t.Cleanup(s.stop)
		at := put(t, s.client(t), "a-1", esdb.NoStream{}, event("e")).CommitPosition
		put(t, s.client(t), "a-1", esdb.Any{}, event("e"))
		patience := time.Minute
		if inside == node.SilentInside {
			patience = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, req := range []*api.ReadReq{reading(positioned(at+1, at+1)), reading(positioned(at+1, at+1), following)} {
			call, err := api.NewStreamsClient(s.conn(t)).Read(ctx, req)
			for err == nil {
				_, err = call.Recv()
			}
			if status.Code(err) != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if all, err := collect(t, s.conn(t), reading(positioned(at, at))); err != nil || len(all) != 2 {
			t.Errorf("from an event's place: got %d events, %v", len(all), err)
		}
	}
}
