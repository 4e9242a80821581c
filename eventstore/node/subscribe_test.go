package node_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// subscriptionSignal is one message of a subscription.
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

// requireSignals checks the next messages of a subscription, in order.
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

func TestASubscriptionToAStreamSendsItsEventsAndThoseToCome(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "s-1", esdb.NoStream{}, newEvents(3)...)
	mustAppend(t, c, "s-2", esdb.NoStream{}, newEvents(3)...)
	all, some := subscribeToStream(t, c, "s-1", esdb.Start{}), subscribeToStream(t, c, "s-1", esdb.Revision(1))
	fresh, ahead := subscribeToStream(t, c, "s-1", esdb.End{}), subscribeToStream(t, c, "s-1", esdb.Revision(3))
	none := subscribeToStream(t, c, "s-3", esdb.Start{})
	requireSignals(t, all, "s-1@0", "s-1@1", "s-1@2", "caught up")
	requireSignals(t, some, "s-1@2", "caught up")
	for _, s := range []*esdb.Subscription{fresh, ahead} {
		requireSignals(t, s, "caught up")
	}
	mustAppend(t, c, "s-2", esdb.Any{}, newEvent("e"))
	mustAppend(t, c, "s-1", esdb.Any{}, newEvents(2)...)
	mustAppend(t, c, "s-3", esdb.Any{}, newEvent("e"))
	for _, s := range []*esdb.Subscription{all, some, fresh} {
		requireSignals(t, s, "s-1@3", "s-1@4")
	}
	requireSignals(t, ahead, "s-1@4")
	requireSignals(t, none, "s-3@0", "caught up") // a stream that is not there has no end to reach
}

func TestASubscriptionToAStreamSendsOnlyWhatItsMetadataLetsRead(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "s-1", esdb.NoStream{}, newEvents(5)...)
	setMetadata(t, c, "s-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(2) })
	requireSignals(t, subscribeToStream(t, c, "s-1", esdb.Start{}), "s-1@3", "s-1@4", "caught up")
	deleteStream(t, c, "s-1")
	s := subscribeToStream(t, c, "s-1", esdb.Start{})
	mustAppend(t, c, "s-1", esdb.Any{}, newEvent("e"))
	requireSignals(t, s, "s-1@5", "caught up")
	mustAppend(t, c, "s-1", esdb.Any{}, newEvent("e"))
	requireSignals(t, s, "s-1@6")
}

func TestATombstoneEndsASubscription(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "s-1", esdb.NoStream{}, newEvent("e"))
	s := subscribeToStream(t, c, "s-1", esdb.End{})
	requireSignals(t, s, "caught up")
	if _, err := c.TombstoneStream(t.Context(), "s-1", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	requireSignals(t, s, fmt.Sprintf("s-1@%d", uint64(1<<63-1)))
	if got := receiveSignal(t, s); got.kind != "dropped" || status.Code(got.err) != codes.FailedPrecondition {
		t.Errorf("got %s, %v", got, got.err)
	}
}

func TestASubscriptionToTheLogGoesOnAfterAPosition(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "a-1", esdb.NoStream{}, newEvent("e"))
	second := mustAppend(t, c, "$b", esdb.NoStream{}, newEvent("e"))
	third := mustAppend(t, c, "a-1", esdb.Any{}, newEvent("e"))
	requireSignals(t, subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}}), "a-1@0", "$b@0", "a-1@1", "caught up")
	requireSignals(t, subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: writePosition(second)}), "a-1@1", "caught up")
	last := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: writePosition(third)})
	end := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: esdb.End{}})
	requireSignals(t, last, "caught up")
	requireSignals(t, end, "caught up")
	mustAppend(t, c, "a-2", esdb.Any{}, newEvent("e"))
	requireSignals(t, last, "a-2@0")
	requireSignals(t, end, "a-2@0")
}

func TestASubscriptionFromWhereNoEventStandsIsRefused(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	at := mustAppend(t, c, "a-1", esdb.NoStream{}, newEvent("e"))
	mustAppend(t, c, "a-1", esdb.Any{}, newEvent("e"))
	s := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: at.CommitPosition + 1, Prepare: at.CommitPosition + 1}})
	if got := receiveSignal(t, s); got.kind != "dropped" || status.Code(got.err) != codes.InvalidArgument {
		t.Errorf("got %s, %v", got, got.err)
	}
}

func TestALogWithoutEventsIsCaughtUpWithAtOnce(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, from := range []esdb.AllPosition{esdb.Start{}, esdb.End{}, esdb.Position{}} {
		s := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: from})
		requireSignals(t, s, "caught up")
	}
}

func TestAFilterLetsThroughWhatItNames(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	for _, s := range []string{"account-1", "accounts-1", "sync-1", "$$sync-1"} {
		mustAppend(t, c, s, esdb.NoStream{}, newEvent("e."+s))
	}
	for name, x := range map[string]struct {
		filter esdb.SubscriptionFilter
		want   []string
	}{
		"stream prefixes":   {esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"account-", "sy"}}, []string{"account-1@0", "sync-1@0"}},
		"a stream regex":    {esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^accounts?-[0-9]+$"}, []string{"account-1@0", "accounts-1@0"}},
		"every stream":      {esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "."}, []string{"account-1@0", "accounts-1@0", "sync-1@0", "$$sync-1@0"}},
		"type prefixes":     {esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"e.a", "x"}}, []string{"account-1@0", "accounts-1@0"}},
		"a type regex":      {esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "sync"}, []string{"sync-1@0", "$$sync-1@0"}},
		"what nobody wrote": {esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "^$"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &x.filter})
			requireSignals(t, s, append(x.want, "checkpoint", "caught up")...)
		})
	}
}

func TestAFilteredSubscriptionGetsCheckpoints(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	none := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"wanted-"}}
	var at []uint64
	for range 25 {
		at = append(at, mustAppend(t, c, "other-1", esdb.Any{}, newEvent("e")).CommitPosition)
	}
	o := esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: none, MaxSearchWindow: 5, CheckpointInterval: 2}
	s := subscribeToAll(t, c, o)
	for _, want := range []uint64{at[9], at[19], at[24]} {
		if got := receiveSignal(t, s); got.kind != "checkpoint" || got.at != want {
			t.Fatalf("got %s at %d, want a checkpoint at %d", got, got.at, want)
		}
	}
	requireSignals(t, s, "caught up")
	for range 10 {
		at = append(at, mustAppend(t, c, "other-1", esdb.Any{}, newEvent("e")).CommitPosition)
	}
	live := receiveSignal(t, s)
	if live.kind != "checkpoint" || live.at != at[34] {
		t.Fatalf("live: got %s at %d, want a checkpoint at %d", live, live.at, at[34])
	}
	mustAppend(t, c, "wanted-1", esdb.Any{}, newEvent("e"))
	requireSignals(t, s, "wanted-1@0")
	o.From = esdb.Position{Commit: live.at, Prepare: live.at}
	requireSignals(t, subscribeToAll(t, c, o), "wanted-1@0", "checkpoint", "caught up")
}

func TestABurstIsFollowedByCaughtUpAgain(t *testing.T) {
	t.Parallel()
	c := startClient(t)
	mustAppend(t, c, "a-1", esdb.NoStream{}, newEvent("e"))
	s := subscribeToAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	one := subscribeToStream(t, c, "a-1", esdb.Start{})
	requireSignals(t, s, "a-1@0", "caught up")
	requireSignals(t, one, "a-1@0", "caught up")
	mustAppend(t, c, "a-1", esdb.Any{}, newEvents(100)...)
	for _, s := range []*esdb.Subscription{s, one} {
		for i := range 100 {
			requireSignals(t, s, fmt.Sprintf("a-1@%d", i+1))
		}
		requireSignals(t, s, "caught up")
	}
}

func TestASubscriptionEndsWithItsClientOrItsNode(t *testing.T) {
	t.Parallel()
	s := serveFolder(t, t.TempDir(), socketAddress(t))
	c := s.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone, err := c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remaining := subscribeToAll(t, c, esdb.SubscribeToAllOptions{})
	requireSignals(t, remaining, "caught up")
	requireSignals(t, gone, "caught up")
	cancel()
	if got := receiveSignal(t, gone); got.kind != "dropped" {
		t.Errorf("got %s after the client went", got)
	}
	s.stop()
	if got := receiveSignal(t, remaining); got.kind != "dropped" || status.Code(got.err) != codes.Unavailable {
		t.Errorf("got %s, %v after the node went, want unavailable", got, got.err)
	}
}
