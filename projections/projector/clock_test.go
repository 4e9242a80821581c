package projector_test

import (
	"testing"
	"time"

	"lieudit/projections/history"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// A lease that runs further than any instance ever takes one was taken before the database's clock was set back.
func TestADeadOwnerIsReplacedAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		a := s.start(t, history.Model)
		a.passed(t, projectortest.Fill(t, s.log, s.codec, 1))
		a.stop()

		shelf, err := table.OpenShelf(address)
		if err != nil {
			t.Fatal(err)
		}
		defer shelf.Close()
		err = shelf.Read(t.Context(), table.History, func(db *table.DB) error {
			_, err := db.Exec(t.Context(), "update checkpoint set owner = 'dead', until = "+db.Now()+" + ?", time.Hour.Microseconds())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := s.start(t, history.Model)
		b.passed(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountClosed{}))
	})
}
