package node_test

import (
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// heard is what a subscription said.
type heard struct {
	kind  string // event, checkpoint, caught up, dropped
	event *esdb.RecordedEvent
	at    uint64
	err   error
}

func (h heard) String() string {
	if h.event != nil {
		return fmt.Sprintf("%s@%d", h.event.StreamID, h.event.EventNumber)
	}
	return h.kind
}

func next(t *testing.T, s *esdb.Subscription) heard {
	t.Helper()
	got := make(chan *esdb.SubscriptionEvent, 1)
	go func() { got <- s.Recv() }()
	select {
	case e := <-got:
		switch {
		case e.EventAppeared != nil:
			o := e.EventAppeared.OriginalEvent()
			return heard{kind: "event", event: o, at: o.Position.Commit}
		case e.CheckPointReached != nil:
			return heard{kind: "checkpoint", at: e.CheckPointReached.Commit}
		case e.CaughtUp != nil:
			return heard{kind: "caught up"}
		}
		return heard{kind: "dropped", err: e.SubscriptionDropped.Error}
	case <-t.Context().Done():
		t.Fatal("nothing was said")
		return heard{}
	}
}

// hears checks what a subscription says next, word for word.
func hears(t *testing.T, s *esdb.Subscription, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(t, s).String(); got != w {
			t.Fatalf("heard %s, want %s", got, w)
		}
	}
}

func toAll(t *testing.T, c *esdb.Client, o esdb.SubscribeToAllOptions) *esdb.Subscription {
	t.Helper()
	s, err := c.SubscribeToAll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func toStream(t *testing.T, c *esdb.Client, stream string, from esdb.StreamPosition) *esdb.Subscription {
	t.Helper()
	s, err := c.SubscribeToStream(t.Context(), stream, esdb.SubscribeToStreamOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func position(w *esdb.WriteResult) esdb.Position {
	return esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}
}
