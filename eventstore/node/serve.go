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
	maxMessage = 16 << 20 // over MaxAppend, so that a big event is refused by name and not by the transport
	maxCalls   = 10_000   // at a time, on one connection
)

// Listen opens a TCP address or, for "unix:PATH", a Unix socket. A socket left behind by a dead process is replaced.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return lc.Listen(ctx, "tcp", addr)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 && !answers(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return lc.Listen(ctx, "unix", path)
}

func answers(ctx context.Context, path string) bool {
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
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	calls := &service{n: n, draining: ctx, hard: hard}
	s := n.server(calls)
	if n.o.Faults.Silence != nil {
		ln = silenced{ln, n.o.Faults.Silence}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		late := time.AfterFunc(n.o.Grace, func() { kill(); s.Stop() })
		defer late.Stop()
		s.GracefulStop()
	}()
	err := s.Serve(ln)
	cancel()
	<-stopped
	calls.readers.Wait()
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

func (n *Node) server(calls *service) *grpc.Server {
	s := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.UnaryInterceptor(n.guardUnary),
		grpc.StreamInterceptor(n.guardStream),
		grpc.WaitForHandlers(true),
	)
	serverfeatures.RegisterServerFeaturesServer(s, features{})
	gossip.RegisterGossipServer(s, member{advertise: n.o.Advertise, clock: n.o.Clock})
	streams.RegisterStreamsServer(s, calls)
	return s
}
