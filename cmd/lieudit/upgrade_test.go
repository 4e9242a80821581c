package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
)

// raiseFormat raises a log's format as a later program does.
func raiseFormat(t *testing.T, log eventstore.Store, format int) {
	t.Helper()
	later := deployment.New(log, eventstore.NewCodec(nil), "v9.0.0")
	if err := later.RaiseFormat(t.Context(), commands.Metadata{Actor: "system"}, format); err != nil {
		t.Fatal(err)
	}
}

// A later program has raised the format of the log, and this one was started on it: by mistake, or to go back.
func TestALogOfALaterFormatRefusesTheStart(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	raiseFormat(t, n.journal, event.HighestFormat+1)
	for name, change := range map[string]func(*service.Config){
		"on a node": withNode(n),
		"on the journal": func(c *service.Config) {
			log, err := journal.Open(filepath.Join(c.Data, "log", "core"), journal.Options{SegmentSize: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			raiseFormat(t, log, event.HighestFormat+1)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		err := service.Run(t.Context(), testConfig(t, io.Discard, change))
		if err == nil || !strings.Contains(err.Error(), "start lieudit v9.0.0 or a later version") {
			t.Errorf("%s: got %v, want a refusal that says what to start", name, err)
		}
	}
}

// An operator finishes the upgrade in the moment in which an older instance starts: that instance ends by itself.
func TestAnInstanceEndsWhenTheFormatPassesIt(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	output := &startOutput{ready: make(chan struct{})}
	config := testConfig(t, output, withNode(n)) // before the goroutine: it may fail the test
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, config) }()
	select {
	case <-output.ready:
	case err := <-ended:
		t.Fatalf("it ended before the format was raised: %v", err)
	}
	raiseFormat(t, n.journal, event.HighestFormat+1)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "start lieudit v9.0.0 or a later version") {
		t.Errorf("got %v, want a refusal that says what to start", err)
	}
}

// The journal has one instance: its start finishes the upgrade.
func TestTheStartOnAJournalRaisesTheFormat(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	if got := upgradeStatus(t, svc); got.Format != event.HighestFormat {
		t.Errorf("the log has format %d, want %d", got.Format, event.HighestFormat)
	}
}

func TestAnUpgradeIsFinishedOnlyWhenNoOlderInstanceRuns(t *testing.T) {
	t.Parallel()
	svc := startService(t, withNode(startNode(t)))
	if got := upgradeStatus(t, svc); got.Format != event.FirstFormat || len(got.Instances) != 1 || got.Instances[0].IsBlocking {
		t.Fatalf("before: %+v, want format %d and one instance that does not block", got, event.FirstFormat)
	}

	// A program of before the formats holds a lease, and says nothing else of itself.
	registry := filepath.Join(svc.data, "readmodels", "registry.db")
	execSQL(t, registry, "insert into holder (copy, instance, until) select name, 'old', {now} + 600000000 from copy")
	code, _, stderr := svc.tryCommand(t, "upgrade finish --yes")
	if code != 1 || !strings.Contains(stderr, "old") || !strings.Contains(stderr, "mise_a_niveau_bloquee") {
		t.Errorf("while an older one runs: exit %d, %q; want a refusal that names it", code, stderr)
	}
	if got := upgradeStatus(t, svc); got.Format != event.FirstFormat || len(got.Instances) != 2 {
		t.Errorf("after the refusal: %+v, want format %d and two instances", got, event.FirstFormat)
	}

	execSQL(t, registry, "update holder set until = {now} - 1 where instance = 'old'")
	svc.runCommand(t, "upgrade finish --yes")
	if got := upgradeStatus(t, svc); got.Format != event.HighestFormat {
		t.Errorf("after its end: format %d, want %d", got.Format, event.HighestFormat)
	}
}

// upgradeStatus is what lieudit upgrade status shows.
func upgradeStatus(t *testing.T, svc *testService) (u body.Upgrade) {
	t.Helper()
	if err := json.Unmarshal([]byte(svc.runCommand(t, "upgrade status --json")), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// execSQL runs a statement on a SQLite file, in which {now} is the database's clock.
func execSQL(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), file, sqldb.Options{Name: "registry"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), strings.ReplaceAll(statement, "{now}", db.Now())); err != nil {
		t.Fatal(err)
	}
}
