package esdb_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"lieudit/eventstore"
)

func TestManyUnavailableAnswersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	p := newProxy(t, re.ln.Addr())
	s := dial(t, p.connection())
	mustAppend(t, s, "a-1", proposals(1))
	before := p.accepted.Load()
	for name, storm := range refusalCases(t) {
		re.setScript(storm.refuse, storm.reply)
		for range 200 {
			_, err := s.Append(t.Context(), "a-1", eventstore.Any, proposals(1))
			if !errors.Is(err, eventstore.ErrUnavailable) && (storm.isCertain || !errors.Is(err, eventstore.ErrUnknown)) {
				t.Fatalf("%s: got %v, want unavailable", name, err)
			}
		}
	}
	if s.Health() == nil {
		t.Error("healthy while every append is refused")
	}
	if n := p.accepted.Load() - before; n > 2 {
		t.Errorf("%d new connections", n)
	}
	re.setScript(nil, nil)
	mustAppend(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

type refusalCase struct {
	refuse    func(string, metadata.MD) (metadata.MD, error)
	reply     func(string, []byte) ([]byte, error)
	isCertain bool // that nothing was added
}

// refusalCases are the ways a server may refuse appends: each by itself, or the call that carries them.
func refusalCases(t *testing.T) map[string]refusalCase {
	t.Helper()
	return map[string]refusalCase{
		"each append": {isCertain: true, reply: func(method string, payload []byte) ([]byte, error) {
			if method != "BatchAppend" {
				return payload, nil
			}
			return rewriteResponse(payload, func(resp *streams.BatchAppendResp) {
				resp.Result = &streams.BatchAppendResp_Error{Error: &rpc.Status{Code: int32(codes.Unavailable), Message: "Server Is Too Busy"}}
			})
		}},
		"the call": {refuse: func(method string, _ metadata.MD) (metadata.MD, error) {
			if method == "BatchAppend" {
				return nil, status.Error(codes.Unavailable, "no room")
			}
			return nil, nil
		}, reply: func(method string, payload []byte) ([]byte, error) {
			if method == "BatchAppend" {
				return nil, status.Error(codes.Unavailable, "no room any more")
			}
			return payload, nil
		}},
	}
}

// rewriteResponse changes the answer to an append.
func rewriteResponse(payload []byte, change func(*streams.BatchAppendResp)) ([]byte, error) {
	var resp streams.BatchAppendResp
	if err := proto.Unmarshal(payload, &resp); err != nil {
		return nil, err
	}
	change(&resp)
	return proto.Marshal(&resp)
}

func TestASilentSubscriptionIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	checkpoint := mustCheckpoint(t, s)
	collected := make(chan error, 1)
	var seen []uuid.UUID
	ready := make(chan struct{})
	go func() {
		close(ready)
		collected <- collect(withTimeout(t, limit), s, checkpoint, 20, &seen)
	}()
	<-ready
	mustAppend(t, s, "a-1", proposals(10))
	var silent atomic.Int32
	re.setScript(nil, func(method string, payload []byte) ([]byte, error) {
		if method == "Read" && isEventOf(payload, "a-2") && silent.Add(1) <= 12 {
			return nil, nil // swallowed: by the subscription, and by its first look
		}
		return payload, nil
	})
	mustAppend(t, s, "a-2", proposals(10))
	requireSameEvents(t, s, checkpoint, collected, &seen, 20)
}

// isEventOf says whether a reply is an event of the stream.
func isEventOf(payload []byte, stream string) bool {
	var resp streams.ReadResp
	return proto.Unmarshal(payload, &resp) == nil &&
		string(resp.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) == stream
}

func TestALostAnswerIsUnknownAndTheSameAppendSettlesIt(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	for i, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unknown} {
		re.setScript(nil, func(method string, payload []byte) ([]byte, error) {
			if method == "BatchAppend" {
				return nil, status.Error(code, "lost")
			}
			return payload, nil
		})
		batch, stream := proposals(2), "a-"+strconv.Itoa(i)
		if _, err := s.Append(t.Context(), stream, eventstore.NoStream, batch); !errors.Is(err, eventstore.ErrUnknown) {
			t.Errorf("%v: got %v, want unknown", code, err)
		}
		re.setScript(nil, nil)
		c, err := appendUntilKnown(withTimeout(t, limit), s, stream, eventstore.NoStream, batch)
		if err != nil || c.Revision != 1 || countEvents(t, s, stream) != 2 {
			t.Errorf("%v, sent again: %+v, %v, want revision 1 of 2 events", code, c, err)
		}
	}
}

func TestAnAnswerWithoutAPositionIsCompleted(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	batch := proposals(3)
	first := mustAppend(t, s, "a-1", batch)
	re.setScript(nil, func(method string, payload []byte) ([]byte, error) {
		if method != "BatchAppend" {
			return payload, nil
		}
		return rewriteResponse(payload, func(resp *streams.BatchAppendResp) {
			resp.GetSuccess().PositionOption = &streams.BatchAppendResp_Success_NoPosition{}
		})
	})
	if again := mustAppend(t, s, "a-1", batch); again != first {
		t.Errorf("got %+v, want %+v", again, first)
	}
}

// Nobody waits long enough to see that no answer ever comes, and reads go on: the callers together must notice.
func TestAPipelineThatForgetsItsAppendsIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	const everyLane = 16
	for range everyLane {
		mustAppend(t, s, "a-1", proposals(1))
	}
	re.unansweredCalls.Store(re.calls.Load())
	var work errgroup.Group
	for w := range everyLane {
		work.Go(func() error {
			batch, ctx := proposals(1), withTimeout(t, 10*time.Second)
			for {
				brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				_, err := s.Append(brief, "b-"+strconv.Itoa(w), eventstore.NoStream, batch)
				cancel()
				if err == nil || ctx.Err() != nil {
					return err
				}
			}
		})
	}
	if err := work.Wait(); err != nil {
		t.Errorf("no append succeeds any more: %v", err)
	}
}

func TestWhatCannotBeAnAppendIsRefusedAndHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := dial(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").connectionString)
	mustAppend(t, s, "a-1", proposals(2))
	broken := proposals(1)
	broken[0].Type = "\xff"
	for name, batch := range map[string][]eventstore.ProposedEvent{"no events": nil, "a type that is no text": broken} {
		for _, expected := range []eventstore.Revision{eventstore.NoStream, 0, eventstore.Any} {
			_, err := s.Append(withTimeout(t, limit), "a-1", expected, batch)
			if err == nil || errors.Is(err, eventstore.ErrUnknown) || errors.Is(err, eventstore.ErrUnavailable) {
				t.Errorf("%s, expecting %d: got %v, want a refusal", name, expected, err)
			}
		}
	}
	if got := countEvents(t, s, "a-1"); got != 2 {
		t.Errorf("the stream holds %d events, want 2", got)
	}
}
