package esdb_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"lieudit/eventstore"
)

func TestFollowsTheLeaderANodeNames(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	leader, other := newRelay(t, r.addr), newRelay(t, r.addr)
	other.setScript(redirectTo(leader.ln.Addr()), nil)
	s := dial(t, other.connection())
	mustAppend(t, s, "a-1", proposals(1))

	leader.setScript(redirectTo(other.ln.Addr()), nil) // the two change roles
	other.setScript(nil, nil)
	for i := range 3 {
		if _, err := s.Append(withTimeout(t, limit), "a-1", eventstore.Revision(i), proposals(1)); err != nil {
			t.Errorf("append %d after the leader changed: %v", i, err)
		}
	}
}

// redirectTo answers as a node that does not lead.
func redirectTo(leader net.Addr) func(string, metadata.MD) (metadata.MD, error) {
	host, port, _ := net.SplitHostPort(leader.String())
	return func(_ string, md metadata.MD) (metadata.MD, error) {
		if len(md.Get("requires-leader")) == 0 {
			return nil, status.Error(codes.InvalidArgument, "requires-leader is missing")
		}
		return metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port),
			status.Error(codes.NotFound, "Leader info available")
	}
}

func TestFindsTheLeaderByGossip(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	first, second := newRelay(t, r.addr), newRelay(t, r.addr)
	dead := r.addr.(*net.TCPAddr).AddrPort().Port() // nobody listens at port 1
	first.setScript(nil, gossipMembers(t, 1))
	second.setScript(nil, gossipMembers(t, dead))
	list := fmt.Sprintf("esdb://127.0.0.1:1,%s,%s?tls=false", first.ln.Addr(), second.ln.Addr())
	for _, connection := range []string{list, "esdb+discover://" + second.ln.Addr().String() + "?tls=false"} {
		s := dial(t, connection)
		mustAppend(t, s, "a-1", proposals(1))
	}
}

// gossipMembers makes gossip name a follower, a dead leader and the leader at a port.
func gossipMembers(t *testing.T, port uint16) func(string, []byte) ([]byte, error) {
	one := func(state gossip.MemberInfo_VNodeState, alive bool, port uint16) *gossip.MemberInfo {
		return &gossip.MemberInfo{State: state, IsAlive: alive, HttpEndPoint: &gossip.EndPoint{Address: "127.0.0.1", Port: uint32(port)}}
	}
	cluster, err := proto.Marshal(&gossip.ClusterInfo{Members: []*gossip.MemberInfo{
		one(gossip.MemberInfo_Follower, true, 2), one(gossip.MemberInfo_Leader, false, 3), one(gossip.MemberInfo_Leader, true, port),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(_ string, payload []byte) ([]byte, error) {
		var was gossip.ClusterInfo
		if proto.Unmarshal(payload, &was) == nil && len(was.GetMembers()) == 1 && was.GetMembers()[0].GetIsAlive() {
			return cluster, nil
		}
		return payload, nil
	}
}
