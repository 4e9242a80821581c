package esdb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// explainTimeout bounds the handshake that explainTransport tries.
const explainTimeout = time.Second

// explainDialError puts a cause that an operator can fix in front of the error of a server that did not let this program in.
// Other errors are returned unchanged.
func (t target) explainDialError(ctx context.Context, address string, err error) error {
	explanation := t.explainRefusal(err)
	if explanation == "" && status.Code(err) == codes.Unavailable {
		explanation = t.explainTransport(ctx, address)
	}
	if explanation == "" {
		return err
	}
	return fmt.Errorf("%s (%w)", explanation, err)
}

// explainRefusal explains a server's refusal that concerns the user of the connection string; "" for another error.
func (t target) explainRefusal(err error) string {
	code := status.Code(err)
	switch {
	case code != codes.Unauthenticated && code != codes.PermissionDenied:
		return ""
	case !t.hasUser:
		return "the server asks for a user and none was given: esdb://USER:PASSWORD@HOST"
	case code == codes.Unauthenticated:
		return "the server refuses the user or its password"
	}
	return "the user may not read $all: lieudit guide eventstoredb says how it may"
}

// explainTransport tries a TLS handshake with a server whose connection failed, and describes what is wrong with TLS, or
// returns "". gRPC's own errors are texts, those of a handshake have types.
func (t target) explainTransport(ctx context.Context, address string) string {
	if strings.HasPrefix(address, "unix:") || address == addressOfDialer {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	config := t.tlsConfig
	if config == nil {
		config = &tls.Config{InsecureSkipVerify: true} // #nosec G402 -- nothing is sent: the question is whether TLS is spoken
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err == nil {
		conn.Close() // its error says nothing about the handshake
	}
	if t.tlsConfig == nil {
		return explainMissingTLS(err)
	}
	return explainTLSError(err)
}

// explainMissingTLS explains that the server behind a connection without TLS speaks it: the handshake succeeded, or ended
// with an alert, for example because the server wants a client certificate.
func explainMissingTLS(err error) string {
	if _, isAlert := errors.AsType[tls.AlertError](err); err == nil || isAlert {
		return "the server wants TLS, and the connection string says tls=false"
	}
	return ""
}

// explainTLSError explains a failed handshake.
func explainTLSError(err error) string {
	var (
		noTLS     tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		netErr    *net.OpError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &noTLS):
		return "the server speaks no TLS: add tls=false to the connection string, or give the server certificates"
	case errors.As(err, &authority):
		return "the server's certificate is not trusted: name its authority with tlsCAFile=FILE"
	case errors.As(err, &name):
		return "the server's certificate is for another name: connect by a name that it holds"
	case errors.As(err, &invalid):
		return "the server's certificate is not valid: see its dates and its use"
	case errors.As(err, &netErr):
		return "" // nothing listens, or the network is down: the error itself says so
	}
	return ""
}
