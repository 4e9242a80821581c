package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	"lieudit/eventstore/esdb"
)

func TestCallsFailAtOnceWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortTempDir(t), "s")
	s := dial(t, "esdb+unix://"+path)
	for name, call := range serverCalls(s) {
		for i, most := range []time.Duration{time.Second, 100 * time.Millisecond} {
			began := time.Now()
			if err := call(t.Context()); !errors.Is(err, eventstore.ErrUnavailable) {
				t.Errorf("%s: got %v, want unavailable", name, err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("%s, time %d, took %v, want at most %v", name, i+1, took, most)
			}
		}
	}
	if s.Health() == nil {
		t.Error("healthy without a server")
	}
	serveFolder(t, t.TempDir(), "unix:"+path)
	mustAppend(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

// serverCalls are the calls of a Store that each ask the server once.
func serverCalls(s *esdb.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error { _, err := s.Identity(ctx); return err },
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, "a-1", eventstore.Any, proposals(1))
			return err
		},
		"read of a stream": func(ctx context.Context) error {
			for _, err := range s.ReadStream(ctx, "a-1", 0, eventstore.Forward) {
				return err
			}
			return nil
		},
		"read of the log": func(ctx context.Context) error {
			for _, err := range s.ReadAll(ctx, eventstore.Checkpoint{}, nil) {
				return err
			}
			return nil
		},
	}
}

func TestNoCallOutlivesItsContextOnAStalledServer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").addr)
	s := dial(t, p.connection())
	mustAppend(t, s, "a-1", proposals(1))
	p.holdAll()
	for name, call := range serverCalls(s) {
		began := time.Now()
		err := call(withTimeout(t, 200*time.Millisecond))
		if err == nil {
			t.Errorf("%s succeeded on a stalled server", name)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("%s outlived its context: %v", name, took)
		}
	}
	eventually(t, "a stall is noticed", func() error {
		if s.Health() == nil {
			return errors.New("still healthy")
		}
		return nil
	})
	p.releaseAll()
	mustAppend(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

func TestACallWithoutDeadlineEndsSoonAfterTheServerStalls(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").addr)
	s := dial(t, p.connection())
	mustAppend(t, s, "a-1", proposals(1))
	p.holdsResponses.Store(true) // the server gets the append, its answer is lost
	batch := proposals(2)
	began := time.Now()
	if _, err := s.Append(t.Context(), "a-1", 0, batch); !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("got %v, want unknown", err)
	}
	if took := time.Since(began); took < 9*time.Second || took > 15*time.Second {
		t.Errorf("took %v, want the ten seconds after which a silent server is given up", took)
	}
	p.releaseAll()
	c, err := appendUntilKnown(withTimeout(t, limit), s, "a-1", 0, batch)
	if err != nil || c.Revision != 2 {
		t.Errorf("sent again: %+v, %v, want revision 2", c, err)
	}
	if n := countEvents(t, s, "a-1"); n != 3 {
		t.Errorf("stream holds %d events, want 3", n)
	}
}

func TestAppendsLandOnceThroughCutsAndRestarts(t *testing.T) {
	t.Parallel()
	const writers = 8
	each, ctx := 40, withTimeout(t, limit)
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		each, ctx = 4000, withTimeout(t, 10*time.Minute)
	}
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.addr)
	s := dial(t, p.connection())
	checkpoint := mustCheckpoint(t, s)
	collected := make(chan error, 1)
	var seen []uuid.UUID
	go func() { collected <- collect(ctx, s, checkpoint, writers*each, &seen) }()
	var writing errgroup.Group
	for w := range writers {
		writing.Go(func() error { return appendMany(ctx, s, fmt.Sprintf("a-%d", w), each, w%2 == 0) })
	}
	done := make(chan error, 1)
	go func() { done <- writing.Wait() }()
	for i := 0; ; i++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d faults: %v", i, err)
			}
			requireSameEvents(t, s, checkpoint, collected, &seen, writers*each)
			return
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
			r = injectFault(t, p, r, i)
		}
	}
}

// injectFault injects one of five faults in turn: it cuts connections, loses answers or requests, or restarts the
// server. It returns the node that runs afterwards.
func injectFault(t *testing.T, p *proxy, r *runningNode, i int) *runningNode {
	t.Helper()
	switch i % 5 {
	case 0, 2:
		p.closeAll()
	case 1: // requests are carried out, their answers are lost
		p.holdsResponses.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.closeAll()
		p.releaseAll()
	case 3: // requests are lost
		p.holdsRequests.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.closeAll()
		p.releaseAll()
	case 4:
		r.stop()
		r = serveFolder(t, r.dir, "127.0.0.1:0")
		up := r.addr
		p.upstream.Store(&up)
		p.closeAll()
	}
	return r
}

func TestAServerThatNeverAnswersIsUnavailable(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").addr)
	p.holdAll()
	s := dial(t, p.connection())
	for range 3 {
		began := time.Now()
		if _, err := s.Append(t.Context(), "a-1", eventstore.Any, proposals(1)); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
	}
	p.releaseAll()
	mustAppend(t, s, "a-1", proposals(1))
}

// A server that accepts every connection and soon closes it must not be flooded by a client that reconnects at once.
func TestAConnectionThatKeepsBreakingIsMadeAgainWithPauses(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").addr)
	s := dial(t, p.connection())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(2 * time.Second); ; {
		select {
		case <-tick.C:
			if s.Health() == nil {
				p.closeAll()
			}
			continue
		case <-over:
		}
		break
	}
	if n := p.accepted.Load(); n > 20 {
		t.Errorf("%d connections in 2 s", n)
	}
	mustAppend(t, s, "a-1", proposals(1))
}

func TestManyRefusedAppendsLeaveTheConnectionInUse(t *testing.T) {
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

// The server chooses how large its trailers are. Those over the limit fail their call, and are not kept in memory.
func TestTrailersOverTheLimitAreNotRead(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	mustAppend(t, s, "a-1", proposals(1))
	readOnce := func() error {
		for _, err := range s.ReadStream(withTimeout(t, limit), "a-1", 0, eventstore.Forward) {
			return err
		}
		return nil
	}
	for size, wantRead := range map[int]bool{0: true, 30 << 10: true, 100 << 10: false, 10 << 20: false} {
		re.setScript(func(method string, _ metadata.MD) (metadata.MD, error) {
			if method != "Read" {
				return nil, nil
			}
			return metadata.Pairs("exception", "stream-deleted", "stack", strings.Repeat("~", size)), status.Error(codes.NotFound, "gone")
		}, nil)
		err := readOnce()
		if got := err != nil && strings.Contains(err.Error(), "stream was deleted"); got != wantRead {
			t.Errorf("trailers of %d bytes: got %v, want that they are read: %t", size, err, wantRead)
		}
		if !wantRead && !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("trailers of %d bytes: got %v, want %v", size, err, eventstore.ErrUnavailable)
		}
	}
	re.setScript(nil, nil)
	eventually(t, "a read", readOnce)
}

type refusalCase struct {
	refuse    func(string, metadata.MD) (metadata.MD, error)
	reply     func(string, []byte) ([]byte, error)
	isCertain bool // that nothing was added
}

// refusalCases are the ways a server may refuse appends: each separately, or the call that carries them.
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

func TestASubscriptionThatMissesEventsIsMadeAgain(t *testing.T) {
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
			return nil, nil // withheld from the subscription and from its first check
		}
		return payload, nil
	})
	mustAppend(t, s, "a-2", proposals(10))
	requireSameEvents(t, s, checkpoint, collected, &seen, 20)
}

// isEventOf reports whether a response is an event of the stream.
func isEventOf(payload []byte, stream string) bool {
	var resp streams.ReadResp
	return proto.Unmarshal(payload, &resp) == nil &&
		string(resp.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) == stream
}

func TestALostAnswerIsUnknownUntilTheSameAppendIsSentAgain(t *testing.T) {
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

// Every caller's deadline is too short to notice that no answer ever comes, and reads are still answered: the connection
// itself has to notice.
func TestAPipelineThatForgetsItsAppendsIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.addr)
	s := dial(t, re.connection())
	const appenders = 16 // enough appends to use every pipeline
	for range appenders {
		mustAppend(t, s, "a-1", proposals(1))
	}
	re.unansweredCalls.Store(re.calls.Load())
	var work errgroup.Group
	for w := range appenders {
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
