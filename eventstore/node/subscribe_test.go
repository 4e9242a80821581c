package node_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestASubscriptionToAStreamHearsWhatIsThereAndWhatComes(t *testing.T) {
	t.Parallel()
	c := started(t)
	put(t, c, "s-1", esdb.NoStream{}, events(3)...)
	put(t, c, "s-2", esdb.NoStream{}, events(3)...)
	all, some := toStream(t, c, "s-1", esdb.Start{}), toStream(t, c, "s-1", esdb.Revision(1))
	fresh, ahead := toStream(t, c, "s-1", esdb.End{}), toStream(t, c, "s-1", esdb.Revision(3))
	none := toStream(t, c, "s-3", esdb.Start{})
	hears(t, all, "s-1@0", "s-1@1", "s-1@2", "caught up")
	hears(t, some, "s-1@2", "caught up")
	for _, s := range []*esdb.Subscription{fresh, ahead} {
		hears(t, s, "caught up")
	}
	put(t, c, "s-2", esdb.Any{}, event("e"))
	put(t, c, "s-1", esdb.Any{}, events(2)...)
	put(t, c, "s-3", esdb.Any{}, event("e"))
	for _, s := range []*esdb.Subscription{all, some, fresh} {
		hears(t, s, "s-1@3", "s-1@4")
	}
	hears(t, ahead, "s-1@4")
	hears(t, none, "s-3@0", "caught up") // a stream that is not there has no end to reach
}

func TestASubscriptionToAStreamHearsOnlyWhatItsMetadataShows(t *testing.T) {
	t.Parallel()
	c := started(t)
	put(t, c, "s-1", esdb.NoStream{}, events(5)...)
	setMeta(t, c, "s-1", func(m *esdb.StreamMetadata) { m.SetMaxCount(2) })
	hears(t, toStream(t, c, "s-1", esdb.Start{}), "s-1@3", "s-1@4", "caught up")
	remove(t, c, "s-1")
	s := toStream(t, c, "s-1", esdb.Start{})
	put(t, c, "s-1", esdb.Any{}, event("e"))
	hears(t, s, "s-1@5", "caught up")
	put(t, c, "s-1", esdb.Any{}, event("e"))
	hears(t, s, "s-1@6")
}

func TestATombstoneEndsASubscription(t *testing.T) {
	t.Parallel()
	c := started(t)
	put(t, c, "s-1", esdb.NoStream{}, event("e"))
	s := toStream(t, c, "s-1", esdb.End{})
	hears(t, s, "caught up")
	if _, err := c.TombstoneStream(t.Context(), "s-1", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	hears(t, s, fmt.Sprintf("s-1@%d", uint64(1<<63-1)))
	if got := next(t, s); got.kind != "dropped" || status.Code(got.err) != codes.FailedPrecondition {
		t.Errorf("got %s, %v", got, got.err)
	}
}

func TestASubscriptionToTheLogGoesOnAfterAPosition(t *testing.T) {
	t.Parallel()
	c := started(t)
	put(t, c, "a-1", esdb.NoStream{}, event("e"))
	second := put(t, c, "$b", esdb.NoStream{}, event("e"))
	third := put(t, c, "a-1", esdb.Any{}, event("e"))
	hears(t, toAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}}), "a-1@0", "$b@0", "a-1@1", "caught up")
	hears(t, toAll(t, c, esdb.SubscribeToAllOptions{From: position(second)}), "a-1@1", "caught up")
	last := toAll(t, c, esdb.SubscribeToAllOptions{From: position(third)})
	end := toAll(t, c, esdb.SubscribeToAllOptions{From: esdb.End{}})
	hears(t, last, "caught up")
	hears(t, end, "caught up")
	put(t, c, "a-2", esdb.Any{}, event("e"))
	hears(t, last, "a-2@0")
	hears(t, end, "a-2@0")
}

func TestASubscriptionFromWhereNoEventStandsIsRefused(t *testing.T) {
	t.Parallel()
	c := started(t)
	at := put(t, c, "a-1", esdb.NoStream{}, event("e"))
	put(t, c, "a-1", esdb.Any{}, event("e"))
	s := toAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: at.CommitPosition + 1, Prepare: at.CommitPosition + 1}})
	if got := next(t, s); got.kind != "dropped" || status.Code(got.err) != codes.InvalidArgument {
		t.Errorf("got %s, %v", got, got.err)
	}
}

func TestALogWithoutEventsIsCaughtUpWithAtOnce(t *testing.T) {
	t.Parallel()
	c := started(t)
	for _, from := range []esdb.AllPosition{esdb.Start{}, esdb.End{}, esdb.Position{}} {
		s := toAll(t, c, esdb.SubscribeToAllOptions{From: from})
		hears(t, s, "caught up")
	}
}

func TestAFilterLetsThroughWhatItNames(t *testing.T) {
	t.Parallel()
	c := started(t)
	for _, s := range []string{"account-1", "accounts-1", "sync-1", "$$sync-1", "$epoch-information"} {
		put(t, c, s, esdb.NoStream{}, event("e."+s))
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
			s := toAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &x.filter})
			hears(t, s, append(x.want, "checkpoint", "caught up")...)
		})
	}
}

func TestAFilteredSubscriptionIsToldHowFarItIs(t *testing.T) {
	t.Parallel()
	c := started(t)
	none := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"wanted-"}}
	var at []uint64
	for range 25 {
		at = append(at, put(t, c, "other-1", esdb.Any{}, event("e")).CommitPosition)
	}
	o := esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: none, MaxSearchWindow: 5, CheckpointInterval: 2}
	s := toAll(t, c, o)
	for _, want := range []uint64{at[9], at[19], at[24]} {
		if got := next(t, s); got.kind != "checkpoint" || got.at != want {
			t.Fatalf("got %s at %d, want a checkpoint at %d", got, got.at, want)
		}
	}
	hears(t, s, "caught up")
	for range 10 {
		at = append(at, put(t, c, "other-1", esdb.Any{}, event("e")).CommitPosition)
	}
	live := next(t, s)
	if live.kind != "checkpoint" || live.at != at[34] {
		t.Fatalf("live: got %s at %d, want a checkpoint at %d", live, live.at, at[34])
	}
	put(t, c, "wanted-1", esdb.Any{}, event("e"))
	hears(t, s, "wanted-1@0")
	o.From = esdb.Position{Commit: live.at, Prepare: live.at}
	hears(t, toAll(t, c, o), "wanted-1@0", "checkpoint", "caught up")
}

func TestABurstIsFollowedByCaughtUpAgain(t *testing.T) {
	t.Parallel()
	c := started(t)
	put(t, c, "a-1", esdb.NoStream{}, event("e"))
	s := toAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	one := toStream(t, c, "a-1", esdb.Start{})
	hears(t, s, "a-1@0", "caught up")
	hears(t, one, "a-1@0", "caught up")
	put(t, c, "a-1", esdb.Any{}, events(100)...)
	for _, s := range []*esdb.Subscription{s, one} {
		for i := range 100 {
			hears(t, s, fmt.Sprintf("a-1@%d", i+1))
		}
		hears(t, s, "caught up")
	}
}

func TestASubscriptionEndsWithItsClientOrItsNode(t *testing.T) {
	t.Parallel()
	s := launch(t, t.TempDir(), socket(t))
	c := s.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone, err := c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := toAll(t, c, esdb.SubscribeToAllOptions{})
	hears(t, left, "caught up")
	hears(t, gone, "caught up")
	cancel()
	if got := next(t, gone); got.kind != "dropped" {
		t.Errorf("got %s after the client went", got)
	}
	s.stop()
	if got := next(t, left); got.kind != "dropped" || status.Code(got.err) != codes.Unavailable {
		t.Errorf("got %s, %v after the node went, want unavailable", got, got.err)
	}
}
