package esdb_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

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
	for what, connection := range map[string]string{
		"a wrong password": "esdb://admin:secret@" + at + "?tlsCAFile=" + ca,
		"an unknown CA":    "esdb://admin:s3cr3t@" + at,
		"no TLS":           "esdb://admin:s3cr3t@" + at + "?tls=false",
	} {
		s := dial(t, connection)
		if _, err := s.Append(withTimeout(t, limit), "a-1", eventstore.Any, proposals(1)); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", what, err)
		}
		if err := s.Health(); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: health is %v", what, err)
		}
	}
}

// newCertificate makes one for 127.0.0.1 and a file that says to trust it.
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
