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
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
)

func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.addr)
	id := uuid.NewString()
	pprof.Do(t.Context(), pprof.Labels("esdb", id), func(ctx context.Context) {
		s, err := esdb.Open(ctx, p.connection(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		checkpoint := mustCheckpoint(t, s)
		for i := range 20 {
			go func() {
				for range s.Subscribe(ctx, checkpoint, eventstore.Filter{"a"}) {
				}
			}()
			_, _ = appendUntilKnown(ctx, s, "a-1", eventstore.Any, proposals(1))
			if i%5 == 0 {
				p.closeAll()
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
		if n := len(p.openConns); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

func TestCloseAmongCallsIsSafeEveryTime(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "unix:"+filepath.Join(shortTempDir(t), "s"))
	for i := range 30 {
		s, err := esdb.Open(t.Context(), r.connectionString, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var work errgroup.Group
		for _, call := range serverCalls(s) {
			work.Go(func() error {
				for {
					err := call(withTimeout(t, limit))
					if errors.Is(err, eventstore.ErrClosed) {
						return nil
					}
					if err != nil && !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrUnavailable) {
						return err
					}
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond) // vary the moment
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := work.Wait(); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

func TestTLSAndCredentialsAreHonoured(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	pair, ca := newCertificate(t)
	re := newRelay(t, r.addr, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	re.setScript(func(_ string, md metadata.MD) (metadata.MD, error) {
		if got := md.Get("authorization"); len(got) != 1 || got[0] != "Basic YWRtaW46czNjcjN0" {
			return nil, status.Error(codes.Unauthenticated, "who is there?")
		}
		return nil, nil
	}, nil)
	at := re.ln.Addr().String()
	s := dial(t, "esdb://admin:s3cr3t@"+at+"?tlsCAFile="+ca)
	mustAppend(t, s, "a-1", proposals(1))
	_, port, _ := net.SplitHostPort(at)
	for what, c := range map[string]struct{ connection, want string }{
		"a wrong password":    {"esdb://admin:secret@" + at + "?tlsCAFile=" + ca, "refuses the user or its password"},
		"no user":             {"esdb://" + at + "?tlsCAFile=" + ca, "asks for a user and none was given"},
		"the same, by gossip": {"esdb://" + at + "," + at + "?tlsCAFile=" + ca, "asks for a user and none was given"},
		"an unknown CA":       {"esdb://admin:s3cr3t@" + at, "is not trusted"},
		"another name":        {"esdb://admin:s3cr3t@localhost:" + port + "?tlsCAFile=" + ca, "is for another name"},
		"no TLS":              {"esdb://admin:s3cr3t@" + at + "?tls=false", "wants TLS"},
		"TLS against none":    {"esdb://admin:s3cr3t@" + r.addr.String() + "?tlsCAFile=" + ca, "speaks no TLS"},
	} {
		s := dial(t, c.connection)
		if _, err := s.Append(withTimeout(t, limit), "a-1", eventstore.Any, proposals(1)); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", what, err)
		}
		if err := s.Health(); err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: health is %v, want %q", what, err, c.want)
		}
	}
}

func TestAUserWithoutTheRightToReadAllIsToldSo(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	pair, ca := newCertificate(t)
	re := newRelay(t, r.addr, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	re.setScript(func(string, metadata.MD) (metadata.MD, error) {
		return nil, status.Error(codes.PermissionDenied, "Access Denied")
	}, nil)
	s := dial(t, "esdb://shop:s3cr3t@"+re.ln.Addr().String()+"?tlsCAFile="+ca)
	if _, err := s.Identity(withTimeout(t, limit)); !errors.Is(err, eventstore.ErrUnavailable) || !strings.Contains(err.Error(), "may not read $all") {
		t.Errorf("got %v, want unavailable and what is missing", err)
	}
}

// newCertificate makes a certificate for 127.0.0.1, and the file of a CA that trusts it.
func newCertificate(t *testing.T) (tls.Certificate, string) {
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

func TestARefusedConnectionStringIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{
		"esdb://u:sEcReT@h:port?tls=false", "esdb://u:sEcReT%zz@h:1?tls=false", "esdb://u:sEcReT/x@h:1?tls=false",
		"esdb://u:sEcReT x@h?tls=false", "esdb+unix://u:sEcReT%zz@/x", "u:sEcReT@h", "esdb://u:sEcReT@h?tls=maybe",
		"esdb://u:sEcReT@h:1,h:x?tls=false",
	} {
		s, err := esdb.Open(t.Context(), connection, slog.New(slog.DiscardHandler))
		if err == nil {
			s.Close()
			t.Errorf("%s was taken", connection)
			continue
		}
		if strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("%s is refused with: %v", connection, err)
		}
	}
}
