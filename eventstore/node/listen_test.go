package node_test

import (
	"net"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"lieudit/eventstore/node"
)

func TestBothConnectionStringsReachANode(t *testing.T) {
	t.Parallel()
	s := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(s.stop)
	if _, _, err := net.SplitHostPort(s.addr); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"esdb://", "esdb+discover://"} {
		mustAppend(t, connect(t, scheme+s.addr+"?tls=false", ""), "a-1", esdb.Any{}, newEvent("e"))
	}
}

func TestANodeReplacesTheSocketOfADeadOneOnly(t *testing.T) {
	t.Parallel()
	path := socketAddress(t)
	ln, err := node.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Listen(t.Context(), path); err == nil {
		t.Fatal("took the socket of a node that answers")
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as kill -9 leaves it
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := node.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
