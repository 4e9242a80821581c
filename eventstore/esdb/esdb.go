// Package esdb is a log kept by an EventStoreDB (or KurrentDB), or by a node, spoken to over its gRPC protocol. It
// takes connection strings, options and protocol stubs from EventStore-Client-Go and keeps a connection of its own:
// one at a time, to the node that leads, made again by itself after every fault. While there is none, calls fail at
// once. The contract needs the leader for reads too, so other node preferences are refused.
package esdb

import (
	"context"
	"fmt"
	"log/slog"

	"lieudit/eventstore"
)

var _ eventstore.Store = (*Store)(nil)

// Store is a log on a server. It is safe for concurrent use.
type Store struct {
	connector *connector
}

// Open makes a Store from a connection string as the official clients take it:
//
//	esdb://[user:password@]host[:port][,host…][?tls=false&keepAliveInterval=10000…]
//	esdb+discover://…
//
// With several hosts, or +discover, the leader is asked for by gossip. A Unix socket, which those strings have no form
// for, is named esdb+unix:///path/to/socket; it is not encrypted unless tls=true is asked for. Open does not wait for
// the server: a log that cannot be reached is one whose Health says so. ctx gives values only; log gets one line an
// incident.
func Open(ctx context.Context, connection string, log *slog.Logger) (*Store, error) {
	t, err := parseConnectionString(connection)
	if err != nil {
		return nil, fmt.Errorf("connection string: %w", redactPassword(err))
	}
	return &Store{connector: newConnector(context.WithoutCancel(ctx), t, log)}, nil
}

// Health is nil while the last that calls and probes saw of the server was good. A silence under ten seconds, and a
// connection lost less than three seconds ago, is a *eventstore.StallError.
func (s *Store) Health() error { return s.connector.health() }

// Close ends every running call and waits for the connection to be gone.
func (s *Store) Close() error {
	s.connector.close()
	return nil
}
