package esdb_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
)

func TestFollowsTheLeaderANodeNames(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	leader, other := newRelay(t, r.at), newRelay(t, r.at)
	other.script(redirect(leader.ln.Addr()), nil)
	s := dial(t, other.connection())
	land(t, s, "a-1", proposals(1))

	leader.script(redirect(other.ln.Addr()), nil) // the two change roles
	other.script(nil, nil)
	for i := range 3 {
		if _, err := s.Append(within(t, limit), "a-1", eventstore.Revision(i), proposals(1)); err != nil {
			t.Errorf("append %d after the leader changed: %v", i, err)
		}
	}
}

// redirect answers as a node that does not lead.
func redirect(leader net.Addr) func(string, metadata.MD) (metadata.MD, error) {
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
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	first, second := newRelay(t, r.at), newRelay(t, r.at)
	dead := r.at.(*net.TCPAddr).AddrPort().Port() // nobody listens at port 1
	first.script(nil, members(t, 1))
	second.script(nil, members(t, dead))
	list := fmt.Sprintf("esdb://127.0.0.1:1,%s,%s?tls=false", first.ln.Addr(), second.ln.Addr())
	for _, connection := range []string{list, "esdb+discover://" + second.ln.Addr().String() + "?tls=false"} {
		s := dial(t, connection)
		land(t, s, "a-1", proposals(1))
	}
}

// members makes gossip name a follower, a dead leader and the leader at a port.
func members(t *testing.T, port uint16) func(string, []byte) ([]byte, error) {
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

func TestAStormOfUnavailableLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.at)
	p := newProxy(t, re.ln.Addr())
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	before := p.accepted.Load()
	for name, storm := range storms(t) {
		re.script(storm.refuse, storm.reply)
		for range 200 {
			_, err := s.Append(t.Context(), "a-1", eventstore.Any, proposals(1))
			if !errors.Is(err, eventstore.ErrUnavailable) && (storm.certain || !errors.Is(err, eventstore.ErrUnknown)) {
				t.Fatalf("%s: got %v, want unavailable", name, err)
			}
		}
	}
	if s.Health() == nil {
		t.Error("healthy while every append is refused")
	}
	if n := p.accepted.Load() - before; n > 2 {
		t.Errorf("%d new connections", n)
	}
	re.script(nil, nil)
	land(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

type storm struct {
	refuse  func(string, metadata.MD) (metadata.MD, error)
	reply   func(string, []byte) ([]byte, error)
	certain bool // that nothing was added
}

// storms are the ways a server may refuse appends: each by itself, or the call that carries them.
func storms(t *testing.T) map[string]storm {
	t.Helper()
	return map[string]storm{
		"each append": {certain: true, reply: func(method string, payload []byte) ([]byte, error) {
			if method != "BatchAppend" {
				return payload, nil
			}
			return rewrite(payload, func(resp *streams.BatchAppendResp) {
				resp.Result = &streams.BatchAppendResp_Error{Error: &rpc.Status{Code: int32(codes.Unavailable), Message: "Server Is Too Busy"}}
			})
		}},
		"the call": {refuse: func(method string, _ metadata.MD) (metadata.MD, error) {
			if method == "BatchAppend" {
				return nil, status.Error(codes.Unavailable, "no room")
			}
			return nil, nil
		}, reply: func(method string, payload []byte) ([]byte, error) {
			if method == "BatchAppend" {
				return nil, status.Error(codes.Unavailable, "no room any more")
			}
			return payload, nil
		}},
	}
}

// rewrite changes the answer to an append.
func rewrite(payload []byte, change func(*streams.BatchAppendResp)) ([]byte, error) {
	var resp streams.BatchAppendResp
	if err := proto.Unmarshal(payload, &resp); err != nil {
		return nil, err
	}
	change(&resp)
	return proto.Marshal(&resp)
}

func TestASilentSubscriptionIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.at)
	s := dial(t, re.connection())
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	ready := make(chan struct{})
	go func() {
		close(ready)
		told <- collect(within(t, limit), s, mark, 20, &seen)
	}()
	<-ready
	land(t, s, "a-1", proposals(10))
	var silent atomic.Int32
	re.script(nil, func(method string, payload []byte) ([]byte, error) {
		if method == "Read" && about(payload, "a-2") && silent.Add(1) <= 12 {
			return nil, nil // swallowed: by the subscription, and by its first look
		}
		return payload, nil
	})
	land(t, s, "a-2", proposals(10))
	check(t, s, mark, told, &seen, 20)
}

// about says whether a reply is an event of the stream.
func about(payload []byte, stream string) bool {
	var resp streams.ReadResp
	return proto.Unmarshal(payload, &resp) == nil &&
		string(resp.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) == stream
}

func TestALostAnswerIsUnknownAndTheSameAppendSettlesIt(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.at)
	s := dial(t, re.connection())
	for i, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unknown} {
		re.script(nil, func(method string, payload []byte) ([]byte, error) {
			if method == "BatchAppend" {
				return nil, status.Error(code, "lost")
			}
			return payload, nil
		})
		batch, stream := proposals(2), "a-"+strconv.Itoa(i)
		if _, err := s.Append(t.Context(), stream, eventstore.NoStream, batch); !errors.Is(err, eventstore.ErrUnknown) {
			t.Errorf("%v: got %v, want unknown", code, err)
		}
		re.script(nil, nil)
		c, err := settle(within(t, limit), s, stream, eventstore.NoStream, batch)
		if err != nil || c.Revision != 1 || count(t, s, stream) != 2 {
			t.Errorf("%v, sent again: %+v, %v, want revision 1 of 2 events", code, c, err)
		}
	}
}

func TestAnAnswerWithoutAPositionIsCompleted(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	re := newRelay(t, r.at)
	s := dial(t, re.connection())
	batch := proposals(3)
	first := land(t, s, "a-1", batch)
	re.script(nil, func(method string, payload []byte) ([]byte, error) {
		if method != "BatchAppend" {
			return payload, nil
		}
		return rewrite(payload, func(resp *streams.BatchAppendResp) {
			resp.GetSuccess().PositionOption = &streams.BatchAppendResp_Success_NoPosition{}
		})
	})
	if again := land(t, s, "a-1", batch); again != first {
		t.Errorf("got %+v, want %+v", again, first)
	}
}

func TestALogRestoredFromAnOlderCopyHasDiverged(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	mark := here(t, s)
	land(t, s, "a-1", proposals(5))
	r.stop()
	copied := copyFolder(t, r.dir)
	r = serve(t, r.dir, "127.0.0.1:0")
	p.upstream.Store(&r.at)
	later := here(t, s)
	land(t, s, "a-1", proposals(5))
	told, reached := make(chan error, 1), make(chan struct{})
	go func() {
		events := 0
		for signal, err := range s.Subscribe(within(t, limit), mark, eventstore.Filter{"a"}) {
			if err != nil {
				told <- err
			}
			if signal.Kind == eventstore.Event && err == nil {
				events++
			}
			if events == 10 && err == nil {
				events++
				close(reached)
			}
		}
	}()
	<-reached
	r.stop()
	r = serve(t, copied, "127.0.0.1:0")
	p.upstream.Store(&r.at)
	p.cut()
	var diverged *eventstore.DivergedError
	if err := <-told; !errors.As(err, &diverged) {
		t.Errorf("subscription: got %v, want it to have diverged", err)
	}
	land(t, s, "b-1", proposals(40)) // grows past the marks of the other copy
	if err := calls(s)["read of the log"](t.Context()); err != nil {
		t.Errorf("read of the restored log: %v", err)
	}
	for _, err := range s.ReadAll(within(t, limit), later, nil) {
		if !errors.As(err, &diverged) {
			t.Errorf("read after a mark that was lost: got %v, want it to have diverged", err)
		}
	}
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	id := uuid.NewString()
	pprof.Do(t.Context(), pprof.Labels("esdb", id), func(ctx context.Context) {
		s, err := esdb.Open(ctx, p.connection())
		if err != nil {
			t.Fatal(err)
		}
		mark := here(t, s)
		for i := range 20 {
			go func() {
				for range s.Subscribe(ctx, mark, eventstore.Filter{"a"}) {
				}
			}()
			_, _ = settle(ctx, s, "a-1", eventstore.Any, proposals(1))
			if i%5 == 0 {
				p.cut()
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "goroutines", func() error {
		var profile bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
		if n := strings.Count(profile.String(), id); n > 0 {
			return fmt.Errorf("%d kinds are left:\n%s", n, profile.String())
		}
		return nil
	})
	eventually(t, "connections", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.open); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

func TestTLSAndCredentialsAreHonoured(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	pair, ca := certificate(t)
	re := newRelay(t, r.at, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	re.script(func(_ string, md metadata.MD) (metadata.MD, error) {
		if got := md.Get("authorization"); len(got) != 1 || got[0] != "Basic YWRtaW46czNjcjN0" {
			return nil, status.Error(codes.Unauthenticated, "who is there?")
		}
		return nil, nil
	}, nil)
	at := re.ln.Addr().String()
	s := dial(t, "esdb://admin:s3cr3t@"+at+"?tlsCAFile="+ca)
	land(t, s, "a-1", proposals(1))
	for what, connection := range map[string]string{
		"a wrong password": "esdb://admin:secret@" + at + "?tlsCAFile=" + ca,
		"an unknown CA":    "esdb://admin:s3cr3t@" + at,
		"no TLS":           "esdb://admin:s3cr3t@" + at + "?tls=false",
	} {
		s := dial(t, connection)
		if _, err := s.Append(within(t, limit), "a-1", eventstore.Any, proposals(1)); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", what, err)
		}
		if err := s.Health(); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: health is %v", what, err)
		}
	}
}

// certificate makes one for 127.0.0.1 and a file that says to trust it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
