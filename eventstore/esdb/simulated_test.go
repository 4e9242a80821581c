package esdb_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
	"lieudit/eventstore/storetest"
)

// openInMemory serves a log in memory and returns a Store on it, over connections in memory. Both end with the test.
func openInMemory(t *testing.T, faults faulttest.Faults) *esdb.Store {
	t.Helper()
	ln, served := bufconn.Listen(64<<10), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { served <- faults.Serve(ctx, memory.New(time.Now), node.Options{}, ln) }()
	s, err := esdb.OpenOver(t.Context(), func(ctx context.Context) (net.Conn, error) { return ln.DialContext(ctx) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAStoreAndItsServerRunOnAClockThatDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openInMemory(t, faulttest.Faults{})
		checkpoint := mustCheckpoint(t, s)
		subscribed, stop := context.WithTimeout(t.Context(), 2*time.Hour)
		defer stop()
		ended := make(chan error)
		var got []string
		go func() {
			var last error
			for signal, err := range s.Subscribe(subscribed, checkpoint, eventstore.Filter{"a"}) {
				if last = err; signal.Kind == eventstore.EventAppeared && err == nil {
					got = append(got, signal.Event.Stream)
				}
			}
			ended <- last
		}()
		time.Sleep(time.Hour) // pings, probes and deadlines pass
		if err := s.Health(); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		mustAppend(t, s, "a-1", proposals(1))
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the subscription ended with %v", err)
		}
		if len(got) != 1 {
			t.Errorf("the subscription yielded %v, want one event", got)
		}
	})
}

func TestASilentServerIsAStallOnAClockThatDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silence := &faulttest.Silence{}
		s := openInMemory(t, faulttest.Faults{Silence: silence})
		mustAppend(t, s, "a-1", proposals(1))
		silence.Begin()
		time.Sleep(4 * time.Second)
		if stall, ok := errors.AsType[*eventstore.StallError](s.Health()); !ok || stall.Duration < 3*time.Second {
			t.Errorf("after four seconds of silence health is %v, want a stall", s.Health())
		}
		silence.End()
		time.Sleep(time.Second)
		if err := s.Health(); err != nil {
			t.Errorf("a second after the silence: %v", err)
		}
		mustAppend(t, s, "a-1", proposals(1))
	})
}

func TestContractOnALogInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) eventstore.Store { return openInMemory(t, faulttest.Faults{}) }, storetest.Options{})
}
