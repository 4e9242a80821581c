package node

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
)

// Version is the EventStoreDB whose behaviour a node follows.
const Version = "24.6.0"

type serverFeatures struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods names what a client may call.
func (serverFeatures) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	method := func(service, name string, features ...string) *serverfeatures.SupportedMethod {
		return &serverfeatures.SupportedMethod{ServiceName: "event_store.client." + service, MethodName: name, Features: features}
	}
	return &serverfeatures.SupportedMethods{
		EventStoreServerVersion: Version,
		Methods: []*serverfeatures.SupportedMethod{
			method("streams.streams", "read", "position", "events"),
			method("streams.streams", "append"),
			method("streams.streams", "batchappend", "deadline_duration"),
			method("streams.streams", "delete"),
			method("streams.streams", "tombstone"),
			method("gossip.gossip", "read"),
			method("server_features.serverfeatures", "getsupportedmethods"),
		},
	}, nil
}

type gossipMember struct {
	gossip.UnimplementedGossipServer
	advertise string
	clock     func() time.Time
}

// Read names one member, alive and leading, at the address where the client already is.
func (m gossipMember) Read(ctx context.Context, _ *shared.Empty) (*gossip.ClusterInfo, error) {
	endpoint, err := m.advertisedEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		InstanceId:   structuredUUID(uuid.NewSHA1(idNamespace, []byte(endpoint.String()))),
		TimeStamp:    ticks(m.clock()),
		State:        gossip.MemberInfo_Leader,
		IsAlive:      true,
		HttpEndPoint: endpoint,
	}}}, nil
}

func (m gossipMember) advertisedEndpoint(ctx context.Context) (*gossip.EndPoint, error) {
	addr := m.advertise
	if p, ok := peer.FromContext(ctx); ok && addr == "" {
		addr = p.LocalAddr.String()
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &statusError{code: codes.FailedPrecondition, text: "this node has no address to advertise"}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // clients join address and port with a bare colon
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, &statusError{code: codes.FailedPrecondition, text: "the advertised port is not a number"}
	}
	return &gossip.EndPoint{Address: host, Port: uint32(number)}, nil
}
