package projector_test

import (
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/audit"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// A lease that runs further than any instance ever takes one was taken before the database's clock was set back.
func TestADeadOwnerIsReplacedAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		a := s.startInstance(t, audit.Model)
		a.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 1))
		a.stop()

		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		err = registry.Read(t.Context(), table.AuditModel, func(db *sqldb.DB) error {
			_, err := db.Exec(t.Context(), "update checkpoint set owner = 'dead', until = "+db.Now()+" + ?", time.Hour.Microseconds())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := s.startInstance(t, audit.Model)
		b.awaitPosition(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
	})
}
