package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/connectivity"

	"lieudit/eventstore/node"
)

func TestWhatIsAskedInASilenceIsAnsweredAfterItOnTheSameConnection(t *testing.T) {
	t.Parallel()
	var silence node.Silence
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{Faults: node.Faults{Silence: &silence}})
	t.Cleanup(s.stop)
	conn := s.conn(t)
	if _, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage()); err != nil {
		t.Fatal(err)
	}
	silence.Begin()
	answered := make(chan error, 1)
	go func() {
		_, err := sendAppend(t.Context(), conn, nil, appendHeader("x-1"), proposedMessage())
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered in the silence: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if n := conn.GetState(); n != connectivity.Ready {
		t.Errorf("the connection is %v", n)
	}
	silence.End()
	if err := <-answered; err != nil {
		t.Errorf("after the silence: %v", err)
	}
}

func TestASilentNodeStops(t *testing.T) {
	t.Parallel()
	var silence node.Silence
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{Faults: node.Faults{Silence: &silence}, StopTimeout: 100 * time.Millisecond})
	mustAppend(t, s.client(t), "x-1", esdb.Any{}, newEvent("e"))
	silence.Begin()
	s.stop()
}

func TestARepeatedSilenceLeavesTheNodeSpeaking(t *testing.T) {
	t.Parallel()
	var silence node.Silence
	s := serveFolderWith(t, t.TempDir(), socketAddress(t), node.Options{Faults: node.Faults{Silence: &silence}})
	t.Cleanup(s.stop)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		silence.Repeat(ctx, 5*time.Millisecond, 10*time.Millisecond)
	}()
	c := s.client(t)
	for range 20 {
		mustAppend(t, c, "x-1", esdb.Any{}, newEvent("e"))
	}
	cancel()
	<-ended
	mustAppend(t, c, "x-1", esdb.Any{}, newEvent("e"))
}
