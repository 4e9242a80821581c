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
	path := filepath.Join(short(t), "s")
	s := dial(t, "esdb+unix://"+path)
	for name, call := range calls(s) {
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
	serve(t, t.TempDir(), "unix:"+path)
	land(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

// calls are all the calls that ask the server once.
func calls(s *esdb.Store) map[string]func(context.Context) error {
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
			for _, err := range s.ReadAll(ctx, eventstore.Mark{}, nil) {
				return err
			}
			return nil
		},
	}
}

func TestNoCallOutlivesItsContextOnAStalledServer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	p.stall()
	for name, call := range calls(s) {
		began := time.Now()
		err := call(within(t, 200*time.Millisecond))
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
	p.flow()
	land(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

func TestACallWithoutDeadlineEndsSoonAfterTheServerStalls(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	p.mute.Store(true) // the server gets the append, its answer is lost
	batch := proposals(2)
	began := time.Now()
	if _, err := s.Append(t.Context(), "a-1", 0, batch); !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("got %v, want unknown", err)
	}
	if took := time.Since(began); took < 9*time.Second || took > 15*time.Second {
		t.Errorf("took %v, want the ten seconds after which a silent server is given up", took)
	}
	p.flow()
	c, err := settle(within(t, limit), s, "a-1", 0, batch)
	if err != nil || c.Revision != 2 {
		t.Errorf("sent again: %+v, %v, want revision 2", c, err)
	}
	if n := count(t, s, "a-1"); n != 3 {
		t.Errorf("stream holds %d events, want 3", n)
	}
}

func TestAppendsLandOnceThroughCutsAndRestarts(t *testing.T) {
	t.Parallel()
	const writers = 8
	each, ctx := 40, within(t, limit)
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		each, ctx = 4000, within(t, 10*time.Minute)
	}
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	go func() { told <- collect(ctx, s, mark, writers*each, &seen) }()
	var writing errgroup.Group
	for w := range writers {
		writing.Go(func() error { return write(ctx, s, fmt.Sprintf("a-%d", w), each, w%2 == 0) })
	}
	done := make(chan error, 1)
	go func() { done <- writing.Wait() }()
	for i := 0; ; i++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d faults: %v", i, err)
			}
			check(t, s, mark, told, &seen, writers*each)
			return
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
			r = misbehave(t, p, r, i)
		}
	}
}

// misbehave does the i-th bad thing to the server.
func misbehave(t *testing.T, p *proxy, r *running, i int) *running {
	t.Helper()
	switch i % 5 {
	case 0, 2:
		p.cut()
	case 1: // what was asked is done, the answers are lost
		p.mute.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.cut()
		p.flow()
	case 3: // nothing that was asked arrives
		p.deaf.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.cut()
		p.flow()
	case 4:
		r.stop()
		r = serve(t, r.dir, "127.0.0.1:0")
		up := r.at
		p.upstream.Store(&up)
		p.cut()
	}
	return r
}

func TestAServerThatNeverAnswersIsUnavailable(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	p.stall()
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
	p.flow()
	land(t, s, "a-1", proposals(1))
}

// A server that takes every connection and soon hangs up must not be run down by a client that comes back at once.
func TestAConnectionThatNeverLastsIsMadeAgainEverMoreRarely(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s := dial(t, p.connection())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(2 * time.Second); ; {
		select {
		case <-tick.C:
			if s.Health() == nil {
				p.cut()
			}
			continue
		case <-over:
		}
		break
	}
	if n := p.accepted.Load(); n > 20 {
		t.Errorf("%d connections in 2 s", n)
	}
	land(t, s, "a-1", proposals(1))
}
