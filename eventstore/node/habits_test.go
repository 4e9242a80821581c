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

// blockingLog is a log that holds each append until it is let go.
type blockingLog struct {
	node.Log
	arrived chan struct{}
	release chan struct{}
}

func (s *blockingLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	s.arrived <- struct{}{}
	<-s.release
	return s.Log.Append(ctx, stream, expected, events)
}

func serveBlockingLog(t *testing.T, faults node.Faults) (nodeServer, *blockingLog) {
	t.Helper()
	log := &blockingLog{open(t, t.TempDir()), make(chan struct{}, 10), make(chan struct{}, 10)}
	s := serveLog(t, log, socketAddress(t), node.Options{Faults: faults})
	t.Cleanup(s.stop)
	return s, log
}

func TestARepeatOfWhatIsOnItsWayCanBeDropped(t *testing.T) {
	t.Parallel()
	s, log := serveBlockingLog(t, node.Faults{RepeatTimeout: time.Millisecond})
	first, other := openPipeline(t, s), openPipeline(t, s)
	b := batch("p-1", 2)
	if err := first.Send(b); err != nil {
		t.Fatal(err)
	}
	<-log.arrived
	for range 2 {
		if got := sendBatch(t, other, b).GetError(); got.GetCode() != int32(code.Code_DEADLINE_EXCEEDED) || got.GetMessage() != "Timeout" {
			t.Errorf("a repeat on its way: got %v, want a timeout", got)
		}
	}
	log.release <- struct{}{}
	landed, err := first.Recv()
	if err != nil || landed.GetSuccess().GetCurrentRevision() != 1 {
		t.Fatalf("the original: got %v, %v", landed, err)
	}
	log.release <- struct{}{}
	if again := sendBatch(t, other, b); again.GetSuccess().String() != landed.GetSuccess().String() {
		t.Errorf("sent again later: got %v, want %v", again, landed)
	}
	if got := revisions(t, s.client(t), "p-1"); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

func TestAnAppendCanBeGivenUpBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	s, log := serveBlockingLog(t, node.Faults{EarlyTimeout: time.Hour})
	for range 10 {
		log.release <- struct{}{}
	}
	b := batch("p-1", 1, func(b *api.BatchAppendReq) {
		b.Options.DeadlineOption = &api.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(time.Hour + time.Nanosecond)}
	})
	if got := sendBatch(t, openPipeline(t, s), b).GetError(); got.GetCode() != int32(code.Code_DEADLINE_EXCEEDED) {
		t.Errorf("got %v, want a timeout", got)
	}
}

func TestAReadFromInsideARecordCanFailAsEventStoreDBs(t *testing.T) {
	t.Parallel()
	for inside, want := range map[node.InsideRecord]codes.Code{
		node.InsideRecordRefused: codes.InvalidArgument, node.InsideRecordFailed: codes.Unknown, node.InsideRecordSilent: codes.DeadlineExceeded,
	} {
		s := serveLog(t, open(t, t.TempDir()), socketAddress(t), node.Options{Faults: node.Faults{InsideRecord: inside}})
		t.Cleanup(s.stop)
		at := mustAppend(t, s.client(t), "a-1", esdb.NoStream{}, newEvent("e")).CommitPosition
		mustAppend(t, s.client(t), "a-1", esdb.Any{}, newEvent("e"))
		patience := time.Minute
		if inside == node.InsideRecordSilent {
			patience = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, req := range []*api.ReadReq{newReadRequest(atPosition(at+1, at+1)), newReadRequest(atPosition(at+1, at+1), asSubscription)} {
			call, err := api.NewStreamsClient(s.conn(t)).Read(ctx, req)
			for err == nil {
				_, err = call.Recv()
			}
			if status.Code(err) != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if all, err := collectResponses(t, s.conn(t), newReadRequest(atPosition(at, at))); err != nil || len(all) != 2 {
			t.Errorf("from an event's place: got %d events, %v", len(all), err)
		}
	}
}
