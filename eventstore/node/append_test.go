package node_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/node"
)

func TestAnAppendIsMadeOnlyWhereItIsExpected(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, x := range []struct {
		name     string
		held     int // events in the stream before
		expected esdb.ExpectedRevision
		want     bool
	}{
		{"no stream, and there is none", 0, esdb.NoStream{}, true},
		{"no stream, but there is one", 1, esdb.NoStream{}, false},
		{"any, none", 0, esdb.Any{}, true},
		{"any, one", 1, esdb.Any{}, true},
		{"exists, none", 0, esdb.StreamExists{}, false},
		{"exists, one", 1, esdb.StreamExists{}, true},
		{"revision, at it", 3, esdb.Revision(2), true},
		{"revision, behind it", 2, esdb.Revision(2), false},
		{"revision, beyond it", 4, esdb.Revision(2), false},
		{"revision, none", 0, esdb.Revision(0), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			stream := "e-" + x.name
			if x.held > 0 {
				mustAppend(t, c, stream, esdb.NoStream{}, newEvents(x.held)...)
			}
			done, err := c.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: x.expected}, newEvents(2)...)
			if !x.want {
				if errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
					t.Fatalf("got %v, want a wrong version", err)
				}
				return
			}
			if err != nil || done.NextExpectedVersion != uint64(x.held)+1 || done.CommitPosition == 0 || done.CommitPosition != done.PreparePosition {
				t.Fatalf("got %+v, %v", done, err)
			}
		})
	}
}

func TestTheSameAppendAgainAddsNothing(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for i, expected := range []esdb.ExpectedRevision{esdb.NoStream{}, esdb.Any{}, esdb.Revision(1), esdb.StreamExists{}} {
		t.Run(fmt.Sprintf("%T", expected), func(t *testing.T) {
			t.Parallel()
			stream := fmt.Sprintf("again-%d", i)
			if i > 1 {
				mustAppend(t, c, stream, esdb.NoStream{}, newEvents(2)...)
			}
			batch := newEvents(3)
			first := mustAppend(t, c, stream, expected, batch...)
			mustAppend(t, c, stream, esdb.Any{}, newEvent("later"))
			if again := mustAppend(t, c, stream, expected, batch...); *again != *first {
				t.Errorf("got %+v, want %+v", again, first)
			}
			if got, want := len(revisions(t, c, stream)), int(first.NextExpectedVersion)+2; got != want {
				t.Errorf("%d events, want %d", got, want)
			}
		})
	}
}

func TestAnIDThatComesBackInAnotherAppendIsRefused(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	batch := newEvents(2)
	mustAppend(t, c, "reuse-1", esdb.NoStream{}, batch...)
	_, err := c.AppendToStream(t.Context(), "reuse-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, batch[0], newEvent("other"))
	if errorCode(err) != esdb.ErrorCodeWrongExpectedVersion {
		t.Errorf("behind the stream: got %v, want a wrong version", err)
	}
	_, err = c.AppendToStream(t.Context(), "reuse-1", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Revision(1)}, batch[0], newEvent("other"))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("at its end: got %v, want an invalid transaction", err)
	}
	if got := revisions(t, c, "reuse-1"); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

func TestWhatIsAppendedIsReadAsItWas(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	batch := []esdb.EventData{
		newEvent("plain"),
		{EventType: "empty", ContentType: esdb.ContentTypeJson},
		{EventType: "binary", ContentType: esdb.ContentTypeBinary, Data: []byte{0, 1, 0xff}, Metadata: []byte{0, 1, 2}},
		{EventType: "binary, no metadata", ContentType: esdb.ContentTypeBinary, Data: []byte("x")},
		{EventType: "marks 0", ContentType: esdb.ContentTypeJson, Data: []byte("{}"), Metadata: []byte{0, 'x'}},
		{EventType: "marks 1", ContentType: esdb.ContentTypeJson, Data: []byte("{}"), Metadata: []byte{1}},
		{EventType: "été \x01", ContentType: esdb.ContentTypeJson, Data: []byte("null")},
	}
	stream := "été-1 / ☃"
	mustAppend(t, c, stream, esdb.NoStream{}, batch...)
	got, err := readEvents(c.ReadStream(t.Context(), stream, esdb.ReadStreamOptions{}, 100))
	if err != nil || len(got) != len(batch) {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	for i, want := range batch {
		e := got[i]
		content := "application/octet-stream"
		if want.ContentType == esdb.ContentTypeJson {
			content = "application/json"
		}
		if e.EventType != want.EventType || e.ContentType != content || !bytes.Equal(e.Data, want.Data) || !bytes.Equal(e.UserMetadata, want.Metadata) {
			t.Errorf("got %q %s %q %q, want %+v", e.EventType, e.ContentType, e.Data, e.UserMetadata, want)
		}
		if e.StreamID != stream || e.EventNumber != uint64(i) || e.CreatedDate.IsZero() {
			t.Errorf("got %s@%d of %v", e.StreamID, e.EventNumber, e.CreatedDate)
		}
	}
}

func TestAnAppendOfTheGreatestSizeIsMadeAndALargerOneRefused(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	e := newEvent("big")
	e.Data = bytes.Repeat([]byte("x"), eventstore.MaxAppendBytes-len(e.EventType)-len(e.Metadata))
	mustAppend(t, c, "big-1", esdb.NoStream{}, e)
	got, err := readEvents(c.ReadStream(t.Context(), "big-1", esdb.ReadStreamOptions{}, 1))
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, e.Data) {
		t.Fatalf("read %d events, %v", len(got), err)
	}
	for _, more := range []int{1, 1 << 20, 4 << 20} {
		big := newEvent("big")
		big.Data = append(bytes.Clone(e.Data), make([]byte, more)...)
		if _, err := c.AppendToStream(t.Context(), "big-1", esdb.AppendToStreamOptions{}, big); err == nil {
			t.Errorf("%d bytes too many were taken", more)
		}
	}
	if got := revisions(t, c, "big-1"); len(got) != 1 {
		t.Errorf("%d events, want 1", len(got))
	}
}

func TestAnAppendOfThousandsStaysTogether(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	done := mustAppend(t, c, "many-1", esdb.NoStream{}, newEvents(2000)...)
	if done.NextExpectedVersion != 1999 {
		t.Fatalf("ends at %d, want 1999", done.NextExpectedVersion)
	}
	got, err := readEvents(c.ReadStream(t.Context(), "many-1", esdb.ReadStreamOptions{}, 5000))
	if err != nil || len(got) != 2000 {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	for i, e := range got {
		if e.EventType != fmt.Sprintf("e%d", i) {
			t.Fatalf("event %d is %s", i, e.EventType)
		}
	}
	if last := got[1999].Position.Commit; last != done.CommitPosition {
		t.Errorf("committed at %d, last event at %d", done.CommitPosition, last)
	}
}

func TestOfConcurrentAppendsAtOneRevisionOneIsMade(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := map[uint64]int{}
	for range 8 {
		wg.Go(func() {
			for r := range uint64(20) {
				var expected esdb.ExpectedRevision = esdb.NoStream{}
				if r > 0 {
					expected = esdb.Revision(r - 1)
				}
				_, err := c.AppendToStream(t.Context(), "race-1", esdb.AppendToStreamOptions{ExpectedRevision: expected}, newEvent("e"))
				switch {
				case err == nil:
					mu.Lock()
					won[r]++
					mu.Unlock()
				case errorCode(err) != esdb.ErrorCodeWrongExpectedVersion:
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for r, n := range won {
		if n != 1 {
			t.Errorf("%d appends made at %d", n, r)
		}
	}
	if got, want := len(revisions(t, c, "race-1")), len(won); got != want {
		t.Errorf("%d events, %d appends made", got, want)
	}
}

func TestConcurrentAppendsToManyStreamsAreAllKept(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for range 25 {
				if _, err := c.AppendToStream(t.Context(), fmt.Sprintf("w-%d", w%4), esdb.AppendToStreamOptions{}, newEvents(2)...); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	all, err := readEvents(c.ReadAll(t.Context(), esdb.ReadAllOptions{}, 10_000))
	if err != nil || len(all) != 800 {
		t.Fatalf("got %d events, %v, want 800", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b *esdb.RecordedEvent) int { return int(a.Position.Commit) - int(b.Position.Commit) }) {
		t.Error("positions do not grow")
	}
}

func textUUID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
}

// batch is the only request of an append of n events to stream with Any, after the changes.
func batch(stream string, n int, changes ...func(*api.BatchAppendReq)) *api.BatchAppendReq {
	r := &api.BatchAppendReq{
		CorrelationId: textUUID(uuid.New()),
		Options: &api.BatchAppendReq_Options{
			StreamIdentifier: testStreamIdentifier(stream), ExpectedStreamPosition: &api.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
		},
		IsFinal: true,
	}
	for range n {
		r.ProposedMessages = append(r.ProposedMessages, &api.BatchAppendReq_ProposedMessage{
			Id: textUUID(uuid.New()), Metadata: map[string]string{"type": "e", "content-type": "application/json"}, Data: []byte("{}"),
		})
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func atRevision(r uint64) func(*api.BatchAppendReq) {
	return func(b *api.BatchAppendReq) {
		b.Options.ExpectedStreamPosition = &api.BatchAppendReq_Options_StreamPosition{StreamPosition: r}
	}
}

func openPipeline(t testing.TB, s nodeServer) api.Streams_BatchAppendClient {
	t.Helper()
	call, err := api.NewStreamsClient(s.conn(t)).BatchAppend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// sendBatch sends one batch and returns its answer.
func sendBatch(t *testing.T, call api.Streams_BatchAppendClient, r *api.BatchAppendReq) *api.BatchAppendResp {
	t.Helper()
	if err := call.Send(r); err != nil {
		t.Fatal(err)
	}
	resp, err := call.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.GetCorrelationId().GetString_(), r.GetCorrelationId().GetString_(); got != want {
		t.Fatalf("answer to %s, want one to %s", got, want)
	}
	return resp
}

// A handler that stayed would keep its memory until the node stops, and a client that reconnects has eight each time.
func TestACancelledPipelineEndsInTheNodeToo(t *testing.T) {
	t.Parallel()
	var running atomic.Int64
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{
		StreamInterceptor: func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			running.Add(1)
			defer running.Add(-1)
			return handle(srv, stream)
		},
	})
	t.Cleanup(s.stop)
	client := api.NewStreamsClient(s.conn(t))
	for range 64 { // which of two reasons to end the receiver sees first is chance
		ctx, cancel := context.WithCancel(t.Context())
		call, err := client.BatchAppend(ctx)
		if err != nil {
			t.Fatal(err)
		}
		sendBatch(t, call, batch("c", 1))
		cancel()
	}
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "the end of all handlers", func() bool { return running.Load() == 0 })
}

func TestPipelinedBatchesKeepTheOrderOfTheirStream(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	call := openPipeline(t, s)
	const rounds, streams = 50, 4
	for i := range uint64(rounds) {
		for n := range streams {
			b := batch(fmt.Sprintf("p-%d", n), 2, atRevision(2*i-1))
			if i == 0 {
				b.Options.ExpectedStreamPosition = &api.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
			}
			if err := call.Send(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for range rounds * streams {
		resp, err := call.Recv()
		if err != nil || resp.GetSuccess() == nil || resp.GetSuccess().GetPosition().GetCommitPosition() == 0 {
			t.Fatalf("got %v, %v", resp, err)
		}
	}
	if got := revisions(t, s.client(t), "p-0"); len(got) != 2*rounds {
		t.Errorf("%d events, want %d", len(got), 2*rounds)
	}
}

func TestABatchMayComeInPieces(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	call := openPipeline(t, s)
	first := batch("p-1", 3, func(b *api.BatchAppendReq) { b.IsFinal = false })
	if err := call.Send(first); err != nil {
		t.Fatal(err)
	}
	if other := sendBatch(t, call, batch("p-2", 1)); other.GetSuccess().GetCurrentRevision() != 0 {
		t.Errorf("meanwhile: got %v", other)
	}
	rest := batch("", 2, func(b *api.BatchAppendReq) { b.Options, b.CorrelationId = nil, first.CorrelationId })
	if got := sendBatch(t, call, rest); got.GetSuccess().GetCurrentRevision() != 4 || string(got.GetStreamIdentifier().GetStreamName()) != "p-1" {
		t.Errorf("got %v", got)
	}
	if again := sendBatch(t, call, batch("p-3", 1)); again.GetSuccess() == nil {
		t.Errorf("got %v", again)
	}
}

// A batch in two pieces has a minute from the first one, although the server's clock is set before the second.
func TestADeadlineDoesNotMoveWithTheWallClock(t *testing.T) {
	t.Parallel()
	begun := time.Date(2031, 3, 30, 1, 59, 59, 0, time.UTC)
	for name, setDeadline := range map[string]func(*api.BatchAppendReq_Options){
		"a duration": func(o *api.BatchAppendReq_Options) {
			o.DeadlineOption = &api.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(time.Minute)}
		},
		"a time": func(o *api.BatchAppendReq_Options) {
			o.DeadlineOption = &api.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(begun.Add(time.Minute))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			clock := func() time.Time { return begun.Add(time.Duration(ahead.Load())) }
			s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{Clock: clock})
			t.Cleanup(s.stop)
			call := openPipeline(t, s)
			first := batch("p-1", 1, func(b *api.BatchAppendReq) { b.IsFinal = false })
			setDeadline(first.Options)
			if err := call.Send(first); err != nil {
				t.Fatal(err)
			}
			sendBatch(t, call, batch("p-2", 1)) // once it is answered the server has the first piece
			ahead.Store(int64(time.Hour))
			rest := batch("", 1, func(b *api.BatchAppendReq) { b.Options, b.CorrelationId = nil, first.CorrelationId })
			if got := sendBatch(t, call, rest); got.GetSuccess() == nil {
				t.Errorf("got %v, want success", got)
			}
		})
	}
}

func TestABatchThatCannotBeMadeIsAnsweredAlone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.client(t)
	mustAppend(t, c, "held-1", esdb.NoStream{}, newEvents(3)...)
	mustAppend(t, c, "gone-1", esdb.NoStream{}, newEvent("e"))
	if _, err := c.TombstoneStream(t.Context(), "gone-1", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	call := openPipeline(t, s)
	for name, x := range map[string]struct {
		req  *api.BatchAppendReq
		want code.Code
	}{
		"a wrong revision": {batch("held-1", 1, atRevision(0)), code.Code_ALREADY_EXISTS},
		"a tombstone":      {batch("gone-1", 1), code.Code_NOT_FOUND},
		"too big":          {batch("x-1", 1, func(b *api.BatchAppendReq) { b.ProposedMessages[0].Data = make([]byte, 1<<20) }), code.Code_INVALID_ARGUMENT},
		"no type":          {batch("x-1", 1, func(b *api.BatchAppendReq) { b.ProposedMessages[0].Metadata = nil }), code.Code_INVALID_ARGUMENT},
		"no stream":        {batch("", 1), code.Code_INVALID_ARGUMENT},
		"no expectation":   {batch("x-1", 1, func(b *api.BatchAppendReq) { b.Options.ExpectedStreamPosition = nil }), code.Code_INVALID_ARGUMENT},
		"too late": {batch("x-1", 1, func(b *api.BatchAppendReq) {
			b.Options.DeadlineOption = &api.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(-1)}
		}), code.Code_DEADLINE_EXCEEDED},
		"too late, by the clock": {batch("x-1", 1, func(b *api.BatchAppendReq) {
			b.Options.DeadlineOption = &api.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Unix(0, 0))}
		}), code.Code_DEADLINE_EXCEEDED},
		"no correlation": {batch("x-1", 1, func(b *api.BatchAppendReq) { b.CorrelationId = nil }), code.Code_INVALID_ARGUMENT},
	} {
		if got := sendBatch(t, call, x.req).GetError().GetCode(); got != int32(x.want) {
			t.Errorf("%s: got %v, want %v", name, code.Code(got), x.want)
		}
	}
	if got := sendBatch(t, call, batch("held-1", 1, atRevision(2))); got.GetSuccess().GetCurrentRevision() != 3 {
		t.Errorf("a good one after them: got %v", got)
	}
}

// The official client for Node.js crashes on an answer that names no stream.
func TestTheAnswerToABatchNamesItsStreamEvenWithoutAName(t *testing.T) {
	t.Parallel()
	got := sendBatch(t, openPipeline(t, startServer(t)), batch("", 1))
	if got.GetError() == nil || got.GetStreamIdentifier() == nil || len(got.GetStreamIdentifier().GetStreamName()) != 0 {
		t.Errorf("got %v, want a refusal that names the stream as it was asked for", got)
	}
}

func TestABatchOfNothingIsAnsweredWithTheLogsEnd(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	end := mustAppend(t, s.client(t), "held-1", esdb.NoStream{}, newEvents(2)...)
	for stream, want := range map[string]string{"held-1": "current_revision:1", "missing-1": "no_stream:{}"} {
		ok := sendBatch(t, openPipeline(t, s), batch(stream, 0)).GetSuccess()
		if ok.GetPosition().GetCommitPosition() != end.CommitPosition || !strings.HasPrefix(ok.String(), want) {
			t.Errorf("%s: got %v, want %s at the log's end", stream, ok, want)
		}
	}
}

func TestTheSameBatchAgainAddsNothing(t *testing.T) {
	t.Parallel()
	call := openPipeline(t, startServer(t))
	b := batch("p-1", 2)
	first, again := sendBatch(t, call, b), sendBatch(t, call, b)
	if first.GetSuccess() == nil || first.GetSuccess().String() != again.GetSuccess().String() {
		t.Errorf("first %v, again %v", first, again)
	}
}
