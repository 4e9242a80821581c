// Package node serves a log over EventStoreDB's own gRPC protocol: streams, gossip and server features, as a single
// node that leads. To a client it is an EventStoreDB 24.6 without projections, persistent subscriptions and
// users; what that server keeps beside its events (metadata, deletions, content types) is kept in the same log.
// Nothing is remembered in memory, so that a node can be killed at any instant and started again.
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
)

// Log is what a node serves: a store, and the whole of it in both directions, system streams included.
type Log interface {
	eventstore.Store

	// Scan yields the events of every stream in the order of their positions, or against it: forward from the event at
	// the position, or after it, up to what was durable when it was called (or somewhat later); backward from the
	// event before the position. 0 and the greatest Position are the two ends. Another position where no event
	// stands may be refused with a *DivergedError.
	Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error]

	// Wait returns the position of the last durable event as soon as that is after the given one.
	Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error)
}

// Options are what a node can be told; the zero value is good.
type Options struct {
	Advertise   string           // host:port that gossip names; empty: the address at which the asking client reached the node
	StopTimeout time.Duration    // how long running calls get to end when a node stops; 5 s when zero
	Logger      *slog.Logger     // slog.Default when nil
	Clock       func() time.Time // for $maxAge; time.Now when nil

	Faults Faults // to test with
}

// Node serves one log. It is safe for concurrent use and does not close the log.
type Node struct {
	log         Log
	options     Options
	lockSeed    maphash.Seed
	streamLocks [256]sync.RWMutex // by stream: appends share, deletions exclude
	inFlight    inFlightAppends   // for the fault that drops repeats
}

// New makes a node that serves log.
func New(log Log, o Options) *Node {
	if o.StopTimeout == 0 {
		o.StopTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Faults.InsideRecord != InsideRecordRefused {
		log = faultyLog{log, o.Faults.InsideRecord}
	}
	return &Node{log: log, options: o, lockSeed: maphash.MakeSeed()}
}

const (
	maxMessageSize = 16 << 20 // over MaxAppend, so that a big event is refused by name and not by the transport
	maxCalls       = 10_000   // at a time, on one connection
)

// Listen opens a TCP address or, for "unix:PATH", a Unix socket. A socket left behind by a dead process is replaced.
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

func isListening(ctx context.Context, path string) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Serve answers on ln, and closes it, until ctx ends: subscriptions and pipelines of appends are then told so, other
// calls get Options.Grace to end, and no goroutine is left when it returns. The error is nil when ctx ended it.
func (n *Node) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killCtx, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	service := &streamsService{node: n, drainCtx: ctx, killCtx: killCtx}
	s := n.newServer(service)
	if n.options.Faults.Silence != nil {
		ln = silencedListener{ln, n.options.Faults.Silence}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
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

func (n *Node) newServer(service *streamsService) *grpc.Server {
	s := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.MaxRecvMsgSize(maxMessageSize),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.UnaryInterceptor(n.interceptUnary),
		grpc.StreamInterceptor(n.interceptStream),
		grpc.WaitForHandlers(true),
	)
	serverfeatures.RegisterServerFeaturesServer(s, serverFeatures{})
	gossip.RegisterGossipServer(s, gossipMember{advertise: n.options.Advertise})
	streams.RegisterStreamsServer(s, service)
	return s
}

// serverVersion is the EventStoreDB whose behaviour a node follows.
const serverVersion = "24.6.0"

type serverFeatures struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods names what a client may call.
func (serverFeatures) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	batchAppend := &serverfeatures.SupportedMethod{ServiceName: "event_store.client.streams.streams", MethodName: "batchappend", Features: []string{"deadline_duration"}}
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: serverVersion, Methods: []*serverfeatures.SupportedMethod{batchAppend}}, nil
}

type gossipMember struct {
	gossip.UnimplementedGossipServer
	advertise string
}

// Read names one member, alive and leading, at the address where the client already is.
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

// handleCall runs a call and names its error.
func (n *Node) handleCall(method string, call func() error) error {
	return toStatusError(n.recoverPanics(method, call))
}

// recoverPanics turns a crash into an error that leaves the other calls alone.
func (n *Node) recoverPanics(method string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			n.options.Logger.Error("call crashed", "method", method, "panic", p, "stack", string(debug.Stack()))
			err = &refusal{code: codes.Internal, text: "internal error"}
		}
	}()
	return call()
}

// streamsService is the Streams streamsService of one Serve.
type streamsService struct {
	streams.UnimplementedStreamsServer
	node      *Node
	drainCtx  context.Context // ends first: subscriptions and pipelines are over
	killCtx   context.Context // ends last: nothing goes on
	receivers sync.WaitGroup  // of pipelines, which outlive their call by a moment
}
