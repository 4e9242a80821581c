package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

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

// serverCalls are all the serverCalls that ask the server once.
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

// injectFault does the i-th bad thing to the server.
func injectFault(t *testing.T, p *proxy, r *runningNode, i int) *runningNode {
	t.Helper()
	switch i % 5 {
	case 0, 2:
		p.closeAll()
	case 1: // what was asked is done, the answers are lost
		p.holdsResponses.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.closeAll()
		p.releaseAll()
	case 3: // nothing that was asked arrives
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

// A server that takes every connection and soon hangs up must not be run down by a client that comes back at once.
func TestAConnectionThatNeverLastsIsMadeAgainEverMoreRarely(t *testing.T) {
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
