package node_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
)

func TestWhatIsAskedInASilenceIsAnsweredAfterItOnTheSameConnection(t *testing.T) {
	t.Parallel()
	var silence faulttest.Silence
	s := serveFaulty(t, open(t, t.TempDir()), faulttest.Faults{Silence: &silence})
	t.Cleanup(s.stop)
	conn := s.conn(t)
	if _, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage()); err != nil {
		t.Fatal(err)
	}
	silence.Begin()
	answered := make(chan error, 1)
	go func() {
		_, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage())
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered in the silence: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if n := conn.GetState(); n != connectivity.Ready {
		t.Errorf("the connection is %v", n)
	}
	silence.End()
	if err := <-answered; err != nil {
		t.Errorf("after the silence: %v", err)
	}
}

func TestASilentNodeStops(t *testing.T) {
	t.Parallel()
	var silence faulttest.Silence
	s := serveWith(t, open(t, t.TempDir()), socketAddress(t), node.Options{StopTimeout: 100 * time.Millisecond}, faulttest.Faults{Silence: &silence})
	mustAppend(t, s.client(t), "x-1", esdb.Any{}, newEvent("e"))
	silence.Begin()
	s.stop()
}

// blockingLog is a log whose appends wait until the test releases them.
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

func serveBlockingLog(t *testing.T, faults faulttest.Faults) (nodeServer, *blockingLog) {
	t.Helper()
	log := &blockingLog{open(t, t.TempDir()), make(chan struct{}, 10), make(chan struct{}, 10)}
	s := serveFaulty(t, log, faults)
	t.Cleanup(s.stop)
	return s, log
}

func TestARepeatOfAnAppendInFlightCanBeDropped(t *testing.T) {
	t.Parallel()
	s, log := serveBlockingLog(t, faulttest.Faults{RepeatTimeout: time.Millisecond})
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

func TestAReadFromInsideARecordCanFailAsOnEventStoreDB(t *testing.T) {
	t.Parallel()
	for inside, want := range map[faulttest.InsideRecord]codes.Code{
		faulttest.InsideRecordRefused: codes.InvalidArgument, faulttest.InsideRecordFailed: codes.Unknown, faulttest.InsideRecordSilent: codes.DeadlineExceeded,
	} {
		s := serveFaulty(t, open(t, t.TempDir()), faulttest.Faults{InsideRecord: inside})
		t.Cleanup(s.stop)
		at := mustAppend(t, s.client(t), "a-1", esdb.NoStream{}, newEvent("e")).CommitPosition
		mustAppend(t, s.client(t), "a-1", esdb.Any{}, newEvent("e"))
		patience := time.Minute
		if inside == faulttest.InsideRecordSilent {
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

// failingLog is a log whose next appends and scans fail, or crash when the failure is nil.
type failingLog struct {
	node.Log
	failure atomic.Pointer[error]
}

func (s *failingLog) nextError() error {
	err := s.failure.Load()
	if err != nil && *err == nil {
		panic("a crash in the log")
	}
	if err != nil {
		return *err
	}
	return nil
}

func (s *failingLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := s.nextError(); err != nil {
		return eventstore.AppendResult{}, err
	}
	return s.Log.Append(ctx, stream, expected, events)
}

func (s *failingLog) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	if err := s.nextError(); err != nil {
		return func(yield func(eventstore.RecordedEvent, error) bool) { yield(eventstore.RecordedEvent{}, err) }
	}
	return s.Log.Scan(ctx, from, dir)
}

func TestAnErrorOfTheLogGetsTheServersStatus(t *testing.T) {
	t.Parallel()
	log := &failingLog{Log: open(t, t.TempDir())}
	s := serveLog(t, log, socketAddress(t), node.Options{})
	t.Cleanup(s.stop)
	conn := s.conn(t)
	for name, x := range map[string]struct {
		err          error
		append, read codes.Code
	}{
		"unknown":                     {eventstore.ErrUnknown, codes.Aborted, codes.Aborted},
		"unavailable":                 {eventstore.ErrUnavailable, codes.Unavailable, codes.Unavailable},
		"closed":                      {eventstore.ErrClosed, codes.Unavailable, codes.Unavailable},
		"unknown, for the log closed": {errors.Join(eventstore.ErrUnknown, eventstore.ErrClosed), codes.Aborted, codes.Aborted},
		"damaged":                     {&eventstore.CorruptError{Position: 7, Reason: "bits"}, codes.Internal, codes.Internal},
		"crashed":                     {nil, codes.Internal, codes.Internal},
	} {
		log.failure.Store(&x.err)
		_, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage())
		if status.Code(err) != x.append {
			t.Errorf("%s: append got %v, want %v", name, err, x.append)
		}
		if _, err := collectResponses(t, conn, newReadRequest()); status.Code(err) != x.read {
			t.Errorf("%s: read got %v, want %v", name, err, x.read)
		}
		resp := sendBatch(t, openPipeline(t, s), batch("x-1", 1))
		if got := codes.Code(resp.GetError().GetCode()); got != x.append && (x.append != codes.Aborted || got != codes.DeadlineExceeded) {
			t.Errorf("%s: batch got %v, want %v", name, got, x.append)
		}
	}
	log.failure.Store(nil)
	mustAppend(t, s.client(t), "x-1", esdb.Any{}, newEvent("e"))
}

func TestANodeStopsAlthoughACallHangs(t *testing.T) {
	t.Parallel()
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{StopTimeout: 200 * time.Millisecond})
	call, err := api.NewStreamsClient(s.conn(t)).Append(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Send(appendHeader("x-1")); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s.client(t), "x-2", esdb.Any{}, newEvent("e")) // by now the call has begun
	s.stop()
	if _, err := call.CloseAndRecv(); status.Code(err) == codes.OK {
		t.Error("the call ended well")
	}
}

func TestAPipelineEndsWithItsNode(t *testing.T) {
	t.Parallel()
	s := serveLog(t, open(t, t.TempDir()), socketAddress(t), node.Options{})
	call := openPipeline(t, s)
	if got := sendBatch(t, call, batch("x-1", 1)); got.GetSuccess() == nil {
		t.Fatalf("got %v", got)
	}
	begun := time.Now()
	s.stop()
	if _, err := call.Recv(); status.Code(err) != codes.Unavailable || time.Since(begun) >= grace {
		t.Errorf("got %v after %v, want unavailable at once", err, time.Since(begun))
	}
}

func TestServeReturnsTheErrorOfItsListener(t *testing.T) {
	t.Parallel()
	log := open(t, t.TempDir())
	t.Cleanup(func() { _ = log.Close() })
	ln, err := node.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := node.New(log, node.Options{Logger: quiet()}).Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that the listener is closed", err)
	}
}

func TestAnIdleClientMayPingEveryTenSeconds(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "") // it waits for 45 seconds
	conn, err := grpc.NewClient(startServer(t).addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(45*time.Second))
	defer cancel()
	if conn.WaitForStateChange(ctx, connectivity.Ready) {
		t.Errorf("the connection is %v", conn.GetState())
	}
}
