package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/backup"
	"lieudit/cmd/lieudit/service"
	"lieudit/commands"
	"lieudit/commands/areatoken"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
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
	writeAsLaterProgram(t, n.journal)
	onNode, onJournal := testConfig(t, io.Discard, withNode(n)), testConfig(t, io.Discard, func(*service.Config) {})
	withCoreLog(t, onJournal.Data, func(log *journal.Journal) { writeAsLaterProgram(t, log) })
	for name, c := range map[string]struct {
		command string
		run     func() error
	}{
		"serve on a node":                  {run: func() error { return service.Run(t.Context(), onNode) }},
		"serve on the journal":             {run: func() error { return service.Run(t.Context(), onJournal) }},
		"token recover beside the journal": {run: func() error { _, err := service.RecoverOperatorToken(t.Context(), onJournal, false); return err }},
	} {
		if err := c.run(); err == nil || !strings.Contains(err.Error(), "start lieudit v9.0.0 or a later version") {
			t.Errorf("%s: got %v, want a refusal that says what to start", name, err)
		}
	}
	withCoreLog(t, onJournal.Data, func(log *journal.Journal) {
		if n, err := log.Verify(t.Context()); err != nil || n != 2 {
			t.Errorf("the log holds %d events, %v; want the 2 of the later program", n, err)
		}
	})
}

// writeAsLaterProgram writes what a later program may write: a higher format, and an event that this program cannot decode.
func writeAsLaterProgram(t *testing.T, log *journal.Journal) {
	t.Helper()
	raiseFormat(t, log, event.HighestFormat+1)
	unknown := []eventstore.ProposedEvent{{ID: uuid.New(), Type: "deployment.of-a-later-program.v1", Data: []byte("{}"), Metadata: []byte("{}")}}
	if _, err := log.Append(t.Context(), "deployment-log", eventstore.Any, unknown); err != nil {
		t.Fatal(err)
	}
}

// withCoreLog calls do with the core log of a data folder that no service has open.
func withCoreLog(t *testing.T, data string, do func(*journal.Journal)) {
	t.Helper()
	log, err := journal.Open(filepath.Join(data, "log", "core"), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	do(log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
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

func TestAStartSaysThatItRaisedTheFormat(t *testing.T) {
	t.Parallel()
	const line = "this start has raised the log's format"
	data := filepath.Join(t.TempDir(), "data")
	unpackFolder(t, "testdata/formats/64cca9e.tar.zst", data)
	for _, c := range []struct {
		rule, data string
		want       int
	}{{"a log of an older program", data, 1}, {"the same again", data, 0}, {"a new log", t.TempDir(), 0}} {
		logged := &lockedBuffer{}
		startService(t, func(s *service.Config) {
			s.Data, s.Demo, s.Log = c.data, true, slog.New(slog.NewTextHandler(logged, nil))
		}).stop()
		if got := strings.Count(logged.String(), line); got != c.want {
			t.Errorf("%s: said %d times, want %d: %s", c.rule, got, c.want, logged.String())
		}
	}
}

// The older program starts on what is restored: the restore leaves the format as the copy has it.
func TestTheWayBackFromARaisedFormatIsABackupOfBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, restored, file := filepath.Join(dir, "data"), filepath.Join(dir, "restored"), filepath.Join(dir, "before")
	unpackFolder(t, "testdata/formats/64cca9e.tar.zst", data)
	if _, err := backup.Create(t.Context(), backup.Source{Data: data, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, file); err != nil {
		t.Fatal(err)
	}
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.stop()
	svc.runCommand(t, "restore "+file+" --data "+restored+" --since "+filepath.Join(data, "log"))
	for folder, want := range map[string]int{data: event.HighestFormat, restored: event.FirstFormat} {
		withCoreLog(t, folder, func(log *journal.Journal) {
			if got, err := deployment.New(log, eventstore.NewCodec(nil), "v1").CheckFormat(t.Context()); err != nil || got != want {
				t.Errorf("%s: format %d, %v; want %d", filepath.Base(folder), got, err, want)
			}
		})
	}
}

// On a new log no older program has run, and there is nothing to go back to.
func TestANewLogOnAServerBeginsAtTheHighestFormat(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	logged := &lockedBuffer{}
	svc := startService(t, func(c *service.Config) {
		withNode(n)(c)
		c.Log = slog.New(slog.NewTextHandler(logged, nil))
	})
	if got := upgradeStatus(t, svc); got.Format != event.HighestFormat {
		t.Errorf("format %d, want %d", got.Format, event.HighestFormat)
	}
	first := ""
	for r, err := range n.journal.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"deployment", "token", "account"}) {
		if err != nil {
			t.Fatal(err)
		}
		if first = r.Event.Type; first != "" {
			break
		}
	}
	if want := (event.FormatRaised{}).EventType(); first != want {
		t.Errorf("the log begins with %s, want %s", first, want)
	}
	if strings.Contains(logged.String(), "an upgrade is not finished") {
		t.Error("it says that an upgrade is not finished")
	}
}

// writeAsOlderProgram writes the token that each program writes first, as one of before the formats does.
func writeAsOlderProgram(t *testing.T, log eventstore.Store) {
	t.Helper()
	older := eventstore.NewCodec(nil).WithFormat(func(context.Context, int) (bool, error) { return false, nil })
	tokens := areatoken.New(log, older, token.DefaultPrefixes, time.Now)
	_, err := tokens.Issue(t.Context(), commands.Metadata{Actor: eventstore.SystemActor}, areatoken.TokenRequest{Role: grant.RoleAuditor})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnUpgradeIsFinishedOnlyWhenNoOlderInstanceRuns(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	writeAsOlderProgram(t, n.journal)
	svc := startService(t, withNode(n))
	if got := upgradeStatus(t, svc); got.Format != event.FirstFormat || len(got.Instances) != 1 || got.Instances[0].IsBlocking {
		t.Fatalf("before: %+v, want format %d and one instance that does not block", got, event.FirstFormat)
	}

	// A program of before the formats holds a lease, and says nothing else of itself. The trigger renews it, as this instance
	// shortens a lease that ends later than any can.
	registry := filepath.Join(svc.data, "readmodels", "registry.db")
	execSQL(t, registry, "create trigger renewal after update on {holder} when old.instance = 'old' begin "+
		"update {holder} set until = old.until where copy = old.copy and instance = old.instance; end")
	execSQL(t, registry, "insert into {holder} (copy, instance, until) select name, 'old', {now} + 600000000 from {copy}")
	code, _, stderr := svc.tryCommand(t, "upgrade finish --yes")
	if code != 1 || !strings.Contains(stderr, "old") || !strings.Contains(stderr, "mise_a_niveau_bloquee") {
		t.Errorf("while an older one runs: exit %d, %q; want a refusal that names it", code, stderr)
	}
	if got := upgradeStatus(t, svc); got.Format != event.FirstFormat || len(got.Instances) != 2 {
		t.Errorf("after the refusal: %+v, want format %d and two instances", got, event.FirstFormat)
	}

	execSQL(t, registry, "delete from {holder} where instance = 'old'")
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
