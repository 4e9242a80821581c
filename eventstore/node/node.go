// Package node serves a log over EventStoreDB's own gRPC protocol: streams, gossip and server features. To its clients
// (package esdb, the official clients for Go and Node.js) it is an EventStoreDB 24.6 that leads a cluster of one, without
// projections, persistent subscriptions and users. It keeps no state in memory. What EventStoreDB stores next to the
// events (stream metadata, deletions, content types) is stored in events of the same log, so a node can be killed at any
// instant and started again.
//
//	Append ──────> receiveEvents ──┐
//	BatchAppend ─> batchAppender ──┴─> Node.append: settleMetadata (streamState) ─> Log.Append
//	Delete, Tombstone ─> runDeletion ─> deleteExclusively: settleMetadata ─> Log.Append
//
//	Read ─> parseQuery (query) ─┬─> readStream: loadState ─> readableRange ─> Log.ReadStream ─┐
//	                            ├─> readAll: filter ─> Log.Scan ──────────────────────────────┼─> readResponder
//	                            └─> subscribe: catch up ─> Log.Wait ─> send what is new ──────┘
//
// Every error leaves as a refusal, with EventStoreDB's code and words (errors.go); wire.go translates events. What
// EventStoreDB does is known from a recorded conversation with a real server, which the tests hold a node to.
//
// The words of EventStoreDB that this package uses:
//
//   - The metadata of a stream S is the last event of the stream "$$S". It limits which events of S are read: the last
//     n ($maxCount), those of the last seconds ($maxAge), those from a revision on ($tb, truncate before).
//   - A stream is deleted softly by metadata that hides all its events. The next append brings it back: the old events
//     stay hidden, and a node writes metadata that says so.
//   - A tombstone is an event that ends its stream permanently.
//   - A system stream is one whose name begins with "$".
package node

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// Log is what a node serves: a store that also reads its system streams and the whole log in both directions. The
// journal is one.
type Log interface {
	eventstore.Store

	// Scan yields the events of all streams, system streams included, in the order of their positions (Forward) or
	// against it (Backward). Forward it begins with the event at the position from, or with the next one, and ends
	// with the last event that was durable when Scan was called, or somewhat later. Backward it begins with the
	// event before the position. 0 and the greatest Position are the two ends. A position inside the log at which
	// no event begins may be refused with a *DivergedError.
	Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error]

	// Wait returns the position of the last durable event as soon as it is greater than after. It returns ctx's
	// error when ctx ends first.
	Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error)
}

// Options configure a node. The zero value is good.
type Options struct {
	// Advertise is the host:port that gossip names. Empty means the address at which the client reached the node.
	Advertise string
	// StopTimeout is how long running calls may take when the node stops. 0 means 5 s.
	StopTimeout time.Duration
	// Logger gets the panics of calls. Nil means slog.Default.
	Logger *slog.Logger
	// Clock is the wall clock, for $maxAge and for deadlines that clients send as a time. Nil means that of a
	// clock.Clock of this machine: by one that jumps ahead, events that are to be kept would be too old.
	Clock func() time.Time

	// StreamInterceptor, if it is not nil, stands between the node and each call of its Streams service that is a stream.
	StreamInterceptor grpc.StreamServerInterceptor
}

// Node serves one log. It is safe for concurrent use and does not close the log. A log is served by one node at a
// time: the locks that keep appends and deletions apart are in the node's memory.
type Node struct {
	log         Log
	options     Options
	lockSeed    maphash.Seed
	streamLocks [256]sync.RWMutex // by hash of the stream; appends lock for reading, deletions for writing
}

// New returns a node that serves log. It starts nothing: Serve does.
func New(log Log, o Options) *Node {
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.New(clock.Options{Log: o.Logger}).Now
	}
	return &Node{log: log, options: o, lockSeed: maphash.MakeSeed()}
}

// The limits of one connection. A client that has more calls than maxCalls waits for one of them to end.
const (
	maxMessageSize   = 16 << 20         // over MaxAppendBytes: a large event gets EventStoreDB's refusal and not the transport's
	maxHeaderSize    = 16 << 10         // bytes of a call's headers, which stay in memory as long as the call. gRPC's default is 16 MiB
	maxCalls         = 1_000            // concurrent calls
	handshakeTimeout = 10 * time.Second // until a client has said that it speaks HTTP/2. After that it answers pings
)

// Serve answers calls on ln until ctx ends, and closes ln. When ctx ends, subscriptions and BatchAppend calls end
// with "not ready", and other calls have Options.StopTimeout to finish. Serve returns when no goroutine of it is
// left. The error is nil when ctx ended it, otherwise that of the listener. The log stays open.
func (n *Node) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killCtx, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	service := &streamsService{node: n, drainCtx: ctx, killCtx: killCtx}
	s := n.newServer(service)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		// GracefulStop waits for running calls. After StopTimeout they are killed, which ends it.
		timer := time.AfterFunc(n.options.StopTimeout, func() { kill(); s.Stop() })
		defer timer.Stop()
		s.GracefulStop()
	}()
	err := s.Serve(ln)
	cancel()
	<-stopped
	service.receivers.Wait()
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// newServer registers the three services. The pings that it allows are those of the official clients: one every ten
// seconds, without a call too.
func (n *Node) newServer(service *streamsService) *grpc.Server {
	interceptors := []grpc.StreamServerInterceptor{n.interceptStream}
	if n.options.StreamInterceptor != nil {
		interceptors = append(interceptors, n.options.StreamInterceptor)
	}
	s := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.MaxRecvMsgSize(maxMessageSize),
		grpc.MaxHeaderListSize(maxHeaderSize),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.UnaryInterceptor(n.interceptUnary),
		grpc.ChainStreamInterceptor(interceptors...),
		grpc.WaitForHandlers(true),
	)
	serverfeatures.RegisterServerFeaturesServer(s, serverFeatures{})
	gossip.RegisterGossipServer(s, gossipMember{advertise: n.options.Advertise})
	streams.RegisterStreamsServer(s, service)
	return s
}

// streamsService is the Streams service of one Serve. Its two contexts end one after the other while the node
// stops.
type streamsService struct {
	streams.UnimplementedStreamsServer
	node      *Node
	drainCtx  context.Context // ends first: subscriptions and BatchAppend calls end
	killCtx   context.Context // ends last: everything ends
	receivers sync.WaitGroup  // the receiving goroutines of BatchAppend, which outlive their call by a moment
}

// interceptUnary and interceptStream turn the error of a call into a status, and send the refusal's trailers.
func (n *Node) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (resp any, err error) {
	err = n.handleCall(info.FullMethod, func() error { resp, err = call(ctx, req); return err })
	var r *refusal
	if errors.As(err, &r) && len(r.trailer) > 0 {
		if e := grpc.SetTrailer(ctx, r.trailer); e != nil {
			return nil, e
		}
	}
	return resp, err
}

func (n *Node) interceptStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	err := n.handleCall(info.FullMethod, func() error { return call(srv, s) })
	var r *refusal
	if errors.As(err, &r) && len(r.trailer) > 0 {
		s.SetTrailer(r.trailer)
	}
	return err
}

// handleCall runs a call and turns its error into what the client receives.
func (n *Node) handleCall(method string, call func() error) error {
	return toStatusError(n.recoverPanics(method, call))
}

// recoverPanics turns a panic into an error, so that it ends one call and not the process. The log gets the stack.
func (n *Node) recoverPanics(method string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			n.options.Logger.Error("call crashed", "method", method, "panic", p, "stack", string(debug.Stack()))
			err = &refusal{code: codes.Internal, text: "internal error"}
		}
	}()
	return call()
}

// serverVersion is the EventStoreDB whose behaviour a node has. Clients choose features by it.
const serverVersion = "24.6.0"

// serverFeatures is the service that clients ask for a server's version and optional methods.
type serverFeatures struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods names BatchAppend alone: it is the only method that the official clients ask about before
// they call it, and they ask for no feature of it.
func (serverFeatures) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	batchAppend := &serverfeatures.SupportedMethod{ServiceName: "event_store.client.streams.streams", MethodName: "batchappend"}
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: serverVersion, Methods: []*serverfeatures.SupportedMethod{batchAppend}}, nil
}

// gossipMember is the gossip service of a cluster of one.
type gossipMember struct {
	gossip.UnimplementedGossipServer
	advertise string
}

// Read names one member, which is alive and leads. Clients ignore a member's id and time stamp, so both are left
// out.
func (m gossipMember) Read(ctx context.Context, _ *shared.Empty) (*gossip.ClusterInfo, error) {
	endpoint, err := m.advertisedEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		State:        gossip.MemberInfo_Leader,
		IsAlive:      true,
		HttpEndPoint: endpoint,
	}}}, nil
}

// advertisedEndpoint returns the configured address or, without one, the local address of the connection on which
// the client asks: the client can reach that one.
func (m gossipMember) advertisedEndpoint(ctx context.Context) (*gossip.EndPoint, error) {
	addr := m.advertise
	if p, ok := peer.FromContext(ctx); ok && addr == "" {
		addr = p.LocalAddr.String()
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &refusal{code: codes.FailedPrecondition, text: "this node has no address to advertise"}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // clients join address and port with a bare colon
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, &refusal{code: codes.FailedPrecondition, text: "the advertised port is not a number"}
	}
	return &gossip.EndPoint{Address: host, Port: uint32(number)}, nil
}

// Listen opens a TCP address or, for "unix:PATH", a Unix socket. It replaces a socket file that a dead process left
// behind, but not one on which a process still listens. The caller closes the listener, or passes it to Serve.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return lc.Listen(ctx, "tcp", addr)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 && !isListening(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return lc.Listen(ctx, "unix", path)
}

// isListening reports whether a process accepts connections on a Unix socket.
func isListening(ctx context.Context, path string) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
