package projector_test

import (
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// appendErased opens an account, issues it a key and erases it.
func (s *cluster) appendErased(t *testing.T, i *instance, id string) {
	t.Helper()
	hash := token.HashOf(id)
	stream := "account-" + id
	i.awaitPosition(t, s.appendEvents(t, stream,
		event.AccountOpened{Account: id, Name: "Ménard of " + event.Personal(id), Plan: plan.Starter, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
		event.SecretKeyIssued{Key: "k" + id, Label: "laptop of " + event.Personal(id), Hash: hash[:]}))
	i.awaitPosition(t, s.appendEvents(t, stream, event.AccountClosed{}, event.AccountErased{}))
}

// awaitScrubbed waits until no file of Postgres holds a text.
func (s *cluster) awaitScrubbed(t *testing.T, text string) {
	t.Helper()
	until(t, "no file holds "+text, func() bool { return len(sqldbtest.FilesHolding(t, s.address, text)) == 0 })
}

func TestErasuresAreScrubbedFromTheFilesOfPostgresByWhoeverOwnsTheGeneration(t *testing.T) {
	t.Parallel()
	s := newCluster(t, sqldbtest.NewPostgresDatabase(t))
	first := s.startInstance(t, account.Model)
	s.appendErased(t, first, "a")
	s.awaitScrubbed(t, "laptop of a")
	s.awaitScrubbed(t, "Ménard of a")

	var obstacle *sqldb.DB
	g, err := first.registry.ServingGeneration(t.Context(), table.AccountModel)
	if err != nil {
		t.Fatal(err)
	}
	obstacle, err = sqldb.Open(t.Context(), s.address, sqldb.Options{Schema: strings.ReplaceAll(g.Name, "-", "_")})
	if err != nil {
		t.Fatal(err)
	}
	defer obstacle.Close()
	if _, err := obstacle.Exec(t.Context(), "create view own_view as select * from {api_key}"); err != nil { // it keeps the old table
		t.Fatal(err)
	}
	first.stop()
	second := s.startEager(t)
	s.appendErased(t, second, "b")
	until(t, "readiness names the scrub that failed", func() bool {
		err := second.Incidents(t.Context())
		return err != nil && strings.Contains(err.Error(), "what was erased may still be in the database's files")
	})
	s.appendErased(t, second, "c") // the read model continues
	second.stop()
	if _, err := obstacle.Exec(t.Context(), "drop view own_view"); err != nil {
		t.Fatal(err)
	}
	third := s.startEager(t)
	s.awaitScrubbed(t, "laptop of b")
	s.awaitScrubbed(t, "laptop of c")
	until(t, "nothing is to be told", func() bool { return third.Incidents(t.Context()) == nil })
}

// Each attempt on a disk that is too small fills it for Postgres, too.
func TestAScrubThatFailsIsMadeAgainAfterEverLongerPauses(t *testing.T) {
	t.Parallel()
	pause := time.Duration(0)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if pause = projector.NextScrubPause(pause); pause != want*time.Minute {
			t.Errorf("got %s, want %d minutes", pause, want)
		}
	}
}

// startEager starts an instance that scrubs as soon as a scrub is due.
func (s *cluster) startEager(t *testing.T) *instance {
	t.Helper()
	registry, err := sqldb.OpenRegistry(s.address)
	if err != nil {
		t.Fatal(err)
	}
	registry.ScrubInterval = 1
	return s.runProjector(t, projector.New(s.log, s.codec, registry, account.Model), registry)
}
