// Package esdb is an eventstore.Store on a server: an EventStoreDB, a KurrentDB, or this program's own node (package node),
// over the gRPC protocol of EventStoreDB. All calls use one connection, to the node that leads the cluster, because the
// contract of a Store needs the leader even for reads. Without a connection calls fail at once instead of waiting.
//
//	Append ──────────────> connector.currentConn ─> conn.append ─> pipeline (one of 8) ─> BatchAppend
//	ReadStream, ReadAll ─> connector.currentConn ─> conn.readEvents ────────────────────> Read
//	Subscribe ───────────> connector.waitForConn ─> subscriber.runOn ─> subscription ───> Read
//	    │ report errors        ▲ setConn
//	    └──> connector.run: connectToLeader ─> watch (connWatcher): probe, silence, search for another leader
//
// connector owns the connection: one goroutine makes, watches and replaces it. A conn is never repaired: after an error that
// may be the connection's the connector probes it. errors.go turns errors of the server into those of eventstore, wire.go
// translates messages.
//
// Connection strings, options and protocol stubs are those of EventStore-Client-Go. Its client is not used, because it has no
// pipeline of appends, gives up permanently after a few failed attempts to connect, and panics if it is closed during a call.
package esdb

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"

	"lieudit/eventstore"
)

var _ eventstore.Store = (*Store)(nil)

// Store is a log on a server. It implements eventstore.Store and is safe for concurrent use.
type Store struct {
	connector *connector
}

// Open returns a Store for a connection string in the form of the official clients:
//
//	esdb://[user:password@]host[:port][,host…][?tls=false&keepAliveInterval=10000…]
//	esdb+discover://…
//
// With several hosts, or with +discover, the leader is found by gossip. A Unix socket, which that form cannot express, is
// named esdb+unix:///path/to/socket; it is not encrypted unless the string has tls=true. A nodePreference other than leader
// is refused. Errors never contain the string, which may hold a password.
//
// Open does not wait for the server; Health reports whether it is reached. Only the values of ctx are used: Close ends the
// Store. log gets one line per incident.
func Open(ctx context.Context, connection string, log *slog.Logger) (*Store, error) {
	t, err := parseConnectionString(connection)
	if err != nil {
		return nil, fmt.Errorf("connection string: %w", redactPassword(err))
	}
	return &Store{connector: newConnector(context.WithoutCancel(ctx), t, log)}, nil
}

// OpenOver is Open for one server without an address, as in a simulation; dial makes the connections to it. They are not
// encrypted.
func OpenOver(ctx context.Context, dial func(context.Context) (net.Conn, error), log *slog.Logger) (*Store, error) {
	t, err := parseConnectionString("esdb://localhost?tls=false")
	if err != nil {
		return nil, err
	}
	t.seeds = []string{addressOfDialer}
	t.dialOptions = append(t.dialOptions, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	return &Store{connector: newConnector(context.WithoutCancel(ctx), t, log)}, nil
}

// Health returns nil while the last calls and probes succeeded. A problem that may be over in a moment is a
// *eventstore.StallError: a silence under ten seconds, appends that the server has refused for less than ten seconds, or a
// connection that was lost less than three seconds ago. A refused append counts for five seconds. Any other error is why
// there is no connection. Health never waits for the server.
func (s *Store) Health() error { return s.connector.health() }

// Close ends every running call and waits until the connection and its goroutines are gone. It always returns nil and may be
// called again.
func (s *Store) Close() error {
	s.connector.close()
	return nil
}
