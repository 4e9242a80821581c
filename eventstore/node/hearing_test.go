package node_test

import (
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// subscriptionSignal is what a subscription said.
type subscriptionSignal struct {
	kind  string // event, checkpoint, caught up, dropped
	event *esdb.RecordedEvent
	at    uint64
	err   error
}

func (h subscriptionSignal) String() string {
	if h.event != nil {
		return fmt.Sprintf("%s@%d", h.event.StreamID, h.event.EventNumber)
	}
	return h.kind
}

func receiveSignal(t *testing.T, s *esdb.Subscription) subscriptionSignal {
	t.Helper()
	got := make(chan *esdb.SubscriptionEvent, 1)
	go func() { got <- s.Recv() }()
	select {
	case e := <-got:
		switch {
		case e.EventAppeared != nil:
			o := e.EventAppeared.OriginalEvent()
			return subscriptionSignal{kind: "event", event: o, at: o.Position.Commit}
		case e.CheckPointReached != nil:
			return subscriptionSignal{kind: "checkpoint", at: e.CheckPointReached.Commit}
		case e.CaughtUp != nil:
			return subscriptionSignal{kind: "caught up"}
		}
		return subscriptionSignal{kind: "dropped", err: e.SubscriptionDropped.Error}
	case <-t.Context().Done():
		t.Fatal("nothing was said")
		return subscriptionSignal{}
	}
}

// requireSignals checks what a subscription says next, word for word.
func requireSignals(t *testing.T, s *esdb.Subscription, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := receiveSignal(t, s).String(); got != w {
			t.Fatalf("heard %s, want %s", got, w)
		}
	}
}

func subscribeToAll(t *testing.T, c *esdb.Client, o esdb.SubscribeToAllOptions) *esdb.Subscription {
	t.Helper()
	s, err := c.SubscribeToAll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func subscribeToStream(t *testing.T, c *esdb.Client, stream string, from esdb.StreamPosition) *esdb.Subscription {
	t.Helper()
	s, err := c.SubscribeToStream(t.Context(), stream, esdb.SubscribeToStreamOptions{From: from})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func writePosition(w *esdb.WriteResult) esdb.Position {
	return esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}
}
