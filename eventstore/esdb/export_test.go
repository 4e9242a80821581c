package esdb

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// OpenWithCheckpointTimeout is Open with a shorter wait for a server that is silent when a checkpoint is verified.
func OpenWithCheckpointTimeout(t testing.TB, connection string, timeout time.Duration) *Store {
	t.Helper()
	to, err := parseConnectionString(connection)
	if err != nil {
		t.Fatal(err)
	}
	to.checkpointTimeout = timeout
	return &Store{connector: newConnector(context.WithoutCancel(t.Context()), to, slog.New(slog.DiscardHandler))}
}
