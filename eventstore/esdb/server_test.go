package esdb_test

import (
	"os"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/storetest"
)

// TestServerContract runs the contract on a server that is not ours. Its log is shared and its idempotency is
// EventStoreDB's own.
func TestServerContract(t *testing.T) {
	t.Parallel()
	connection := os.Getenv("LIEUDIT_TEST_EVENTSTORE")
	if connection == "" {
		t.Skip("LIEUDIT_TEST_EVENTSTORE names no EventStoreDB; docker compose up eventstore gives one at esdb://localhost:2113?tls=false")
	}
	t.Run("EventStoreDB", func(t *testing.T) {
		t.Parallel()
		open := func(t *testing.T) eventstore.Store { return dial(t, connection) }
		storetest.RunWith(t, open, storetest.Options{
			FirstIDOnly: true,
			Reopen: func(t *testing.T, s eventstore.Store) eventstore.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return open(t)
			},
		})
	})
}
