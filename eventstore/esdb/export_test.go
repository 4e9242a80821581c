package esdb

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// OpenImpatient is Open for tests that do not wait ten seconds for a server that is silent when asked for a mark.
func OpenImpatient(t testing.TB, connection string, patience time.Duration) *Store {
	t.Helper()
	to, err := parse(connection)
	if err != nil {
		t.Fatal(err)
	}
	to.markPatience = patience
	return &Store{link: newLink(context.WithoutCancel(t.Context()), to, slog.New(slog.DiscardHandler))}
}
