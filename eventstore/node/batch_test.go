package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	api "github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func textUUID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
}

// batch is a final one of n events to stream, anywhere, then changed.
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

// sendBatch sends one batch and takes its answer.
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

func TestPipelinedBatchesKeepTheOrderOfTheirStream(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	call := openPipeline(t, s)
	const rounds, lanes = 50, 4
	for i := range uint64(rounds) {
		for lane := range lanes {
			b := batch(fmt.Sprintf("p-%d", lane), 2, atRevision(2*i-1))
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
	for range rounds * lanes {
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

// The official client for Node.js dies of an answer that names no stream.
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
