package node

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

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
	gossip.RegisterGossipServer(s, gossipMember{advertise: n.options.Advertise, clock: n.options.Clock})
	streams.RegisterStreamsServer(s, service)
	return s
}
