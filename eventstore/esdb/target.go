package esdb

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	client "github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	maxMessageSize    = 17 << 20 // as large as the official client accepts
	maxHeaderSize     = 64 << 10 // bytes of the headers or trailers of an answer: gRPC for Go takes 16 MiB otherwise; for Java, 8 KiB
	streamWindowSize  = 1 << 20  // bytes a server may send ahead of a reader
	checkpointTimeout = 10 * time.Second
	addressOfDialer   = "passthrough:///server" // of a server that only a dialer knows; gRPC looks nothing up for it
)

// target is where the log is and how to connect to it. It never changes.
type target struct {
	seeds       []string // addresses to connect to first
	usesGossip  bool     // ask the seeds who leads; false: the only seed is the server
	dialOptions []grpc.DialOption
	timeout     time.Duration // of each step of connecting to one server
	tlsConfig   *tls.Config   // nil: without TLS
	hasUser     bool          // each call says whose it is

	checkpointTimeout time.Duration // of a read from a checkpoint: a server may be silent there
}

// parseConnectionString lets the official client parse the string and checks what this package adds to it. An error may
// repeat the string with its password: redactPassword makes it safe to show.
func parseConnectionString(connection string) (target, error) {
	connection, socket, err := parseUnixSocket(connection)
	if err != nil {
		return target{}, err
	}
	c, err := client.ParseConnectionString(connection)
	if err != nil {
		return target{}, err
	}
	c.Logger = nil
	if err := c.Validate(); err != nil {
		return target{}, err
	}
	if c.NodePreference != client.NodePreferenceLeader {
		return target{}, fmt.Errorf("nodePreference=%s: reads would lag behind appends, only leader is possible", c.NodePreference)
	}
	t := target{seeds: []string{c.Address}, usesGossip: c.DnsDiscover || len(c.GossipSeeds) > 0, timeout: 2 * time.Second, checkpointTimeout: checkpointTimeout}
	if limit := time.Duration(c.GossipTimeout) * time.Second; limit > 0 {
		t.timeout = min(t.timeout, limit)
	}
	if len(c.GossipSeeds) > 0 {
		t.seeds = nil
		for _, s := range c.GossipSeeds {
			t.seeds = append(t.seeds, s.String())
		}
	}
	if socket != "" {
		t.seeds, t.usesGossip = []string{"unix:" + socket}, false
	}
	if t.tlsConfig, err = newTLSConfig(c); err != nil {
		return target{}, err
	}
	t.hasUser = c.Username != "" && t.tlsConfig != nil // gRPC sends no password in the clear
	t.dialOptions = newDialOptions(c, t.tlsConfig)
	return t, nil
}

// redactPassword returns why a connection string was refused, without its text: a parser's error repeats the string, or the
// part it took for the port, and either may contain the password.
func redactPassword(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("it is no address such as esdb://HOST:2113?tls=false; special characters of a password are written as %XX")
	}
	return err
}

// parseUnixSocket returns a string that the official parser accepts, and the path of the socket, empty if the string names
// none.
func parseUnixSocket(connection string) (rest, path string, err error) {
	if !strings.HasPrefix(connection, "esdb+unix:") {
		return connection, "", nil
	}
	u, err := url.Parse(connection)
	if err != nil {
		return "", "", err
	}
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return "", "", errors.New("a socket is named by its absolute path: esdb+unix:///path")
	}
	path = u.Path
	u.Scheme, u.Host, u.Path, u.RawPath = "esdb", "localhost", "", ""
	hasTLSOption := false
	for k := range u.Query() {
		hasTLSOption = hasTLSOption || strings.EqualFold(k, "tls")
	}
	if !hasTLSOption {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&tls=false", "&")
	}
	return u.String(), path, nil
}

// newDialOptions are the options of every connection. gRPC's own retries and idle timeout are off: the connector decides
// about both.
func newDialOptions(c *client.Configuration, config *tls.Config) []grpc.DialOption {
	secure := insecure.NewCredentials()
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize)),
		grpc.WithMaxHeaderListSize(maxHeaderSize),
		grpc.WithInitialWindowSize(streamWindowSize),
		grpc.WithInitialConnWindowSize(8 * streamWindowSize),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	}
	if c.KeepAliveInterval >= 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: c.KeepAliveInterval, Timeout: c.KeepAliveTimeout, PermitWithoutStream: true,
		}))
	}
	if c.Username != "" && !c.DisableTLS {
		options = append(options, grpc.WithPerRPCCredentials(newBasicAuth(c.Username, c.Password)))
	}
	return options
}

// newTLSConfig is TLS as the connection string configures it, or nil.
func newTLSConfig(c *client.Configuration) (*tls.Config, error) {
	if c.DisableTLS {
		return nil, nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs,
		InsecureSkipVerify: c.SkipCertificateVerification, // #nosec G402 -- the connection string says tlsVerifyCert=false
	}
	if c.UserCertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.UserCertFile, c.UserKeyFile)
		if err != nil {
			return nil, fmt.Errorf("user certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// basicAuth sends a user's name and password with every call. gRPC refuses to send it over a connection without TLS.
type basicAuth map[string]string

// newBasicAuth makes the header of HTTP's basic authentication.
func newBasicAuth(user, password string) basicAuth {
	return basicAuth{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

func (b basicAuth) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return b, nil
}
func (basicAuth) RequireTransportSecurity() bool { return true }
