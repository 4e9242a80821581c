package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// eventInjector appends a raw event to the core log of a service and returns the service, restarted where need be.
type eventInjector interface {
	injectEvent(t *testing.T, st *testService, stream, kind, data string) *testService
}

// offlineInjector stops an embedded service, appends, and starts it again.
type offlineInjector struct{ change func(*service.Config) }

func (b offlineInjector) injectEvent(t *testing.T, svc *testService, stream, kind, data string) *testService {
	t.Helper()
	svc.stop()
	j, err := journal.Open(filepath.Join(svc.data, "log", "core"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	appendRawEvent(t, j, stream, kind, data)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	folder := svc.data
	return startService(t, func(c *service.Config) {
		b.change(c)
		c.Data = folder
	})
}

// liveInjector appends through the node while the service runs.
type liveInjector struct{ node *testNode }

func (b liveInjector) injectEvent(t *testing.T, svc *testService, stream, kind, data string) *testService {
	t.Helper()
	log, err := esdb.Open(t.Context(), b.node.address(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	appendRawEvent(t, log, stream, kind, data)
	return svc
}

func appendRawEvent(t *testing.T, log eventstore.Store, stream, kind, data string) {
	t.Helper()
	e := eventstore.ProposedEvent{ID: uuid.New(), Type: kind, Data: []byte(data), Metadata: []byte(`{"end":true}`)}
	if _, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{e}); err != nil {
		t.Fatal(err)
	}
}

// TestAnUnusableEventStopsItsAccountUntilItIsRepaired runs the whole service on both profiles. Commits without a sync id,
// which earlier releases wrote, stop nothing.
func TestAnUnusableEventStopsItsAccountUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		change := func(*service.Config) {}
		checkStopAndRepair(t, startService(t, change), offlineInjector{change})
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		n := startNode(t)
		checkStopAndRepair(t, startService(t, withServers(n, sqldbtest.NewPostgresDatabase(t))), liveInjector{n})
	})
}

// accountPaths are reads of an account that need its events.
var accountPaths = []string{"/me", "/locations/referentiels", "/locations/referentiels/m/sites", "/locations/search?q=boutique", "/locations/referentiels/m/sites:export"}

func (svc *testService) checkStatuses(t *testing.T, key string, want int) {
	t.Helper()
	for _, path := range accountPaths {
		if got := svc.statusOf(t, key, "GET "+path, ""); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// putSite puts a site and returns the status.
func (svc *testService) putSite(t *testing.T, key, id string) int {
	t.Helper()
	return svc.statusOf(t, key, "PUT /locations/referentiels/m/sites/"+id, `{"nom":"Boutique","lat":44.5,"lon":3.5}`)
}

// stoppedAccount is a service with two accounts, one of which an event is to stop.
type stoppedAccount struct {
	*testService
	log  eventInjector
	keys map[string]string // of the accounts mende and florac
}

func checkStopAndRepair(t *testing.T, svc *testService, log eventInjector) {
	t.Helper()
	s := &stoppedAccount{svc, log, map[string]string{}}
	for _, account := range []string{"mende", "florac"} {
		s.keys[account] = s.openAccount(t, account, "m")
		s.putSite(t, s.keys[account], "one")
		s.checkStatuses(t, s.keys[account], http.StatusOK)
	}
	s.checkEmptyCommit(t)
	s.checkStop(t)
	s.checkRepair(t)
}

// checkEmptyCommit appends a commit without a sync id: readiness names it, and the account continues.
func (s *stoppedAccount) checkEmptyCommit(t *testing.T) {
	t.Helper()
	s.testService = s.log.injectEvent(t, s.testService, "locations-mende", "locations.sync-committed.v1", `{"referential":"m","action":"sync","created":9000,"after":9001,"sync":""}`)
	waitUntil(t, "readiness names the empty commit", func() bool { return strings.Contains(s.readiness(t).text, "without a sync id") })
	if got := s.putSite(t, s.keys["mende"], "two"); got != http.StatusCreated {
		t.Errorf("a write after the empty commit: %d", got)
	}
	s.checkStatuses(t, s.keys["mende"], http.StatusOK)
	if got := s.mustSend(t, s.keys["mende"], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":2,`) {
		t.Errorf("got %s", got)
	}
}

// checkStop appends an event that cannot be decoded: it stops its account and no other.
func (s *stoppedAccount) checkStop(t *testing.T) {
	t.Helper()
	s.testService = s.log.injectEvent(t, s.testService, "locations-mende", "locations.sites-changed.v1", `{"rows":[`)
	waitUntil(t, "readiness names the account", func() bool {
		return strings.Contains(s.readiness(t).text, "history-v5-g1, places-v4-g1: account mende is stopped (unusable)")
	})
	if r := s.readiness(t); r.status != http.StatusOK {
		t.Errorf("readiness: %d, want 200", r.status)
	}
	s.checkStatuses(t, s.keys["mende"], http.StatusInternalServerError)
	if got := s.putSite(t, s.keys["mende"], "three"); got != http.StatusInternalServerError {
		t.Errorf("a write to the stopped account: %d", got)
	}
	if code, _, _ := s.tryCommand(t, "audit log mende"); code == 0 {
		t.Error("the history of the stopped account is shown")
	}
	s.checkStatuses(t, s.keys["florac"], http.StatusOK)
	if got := s.putSite(t, s.keys["florac"], "two"); got != http.StatusCreated {
		t.Errorf("a write to another account: %d", got)
	}
	if got := s.runCommand(t, "projections status --json"); !strings.Contains(got, `"compte":"mende","nature":"unusable"`) {
		t.Errorf("got %s", got)
	}
}

// checkRepair repairs the account: it is served again without what the event changed, and the audit lists the repair.
func (s *stoppedAccount) checkRepair(t *testing.T) {
	t.Helper()
	if got := s.runCommand(t, `projections repair mende --reason "damaged by hand"`); !strings.Contains(got, "locations.sites-changed.v1") {
		t.Errorf("got %s", got)
	}
	waitUntil(t, "the account is refolded", func() bool { return !strings.Contains(s.readiness(t).text, "is stopped") })
	s.checkStatuses(t, s.keys["mende"], http.StatusOK)
	if got := s.putSite(t, s.keys["mende"], "three"); got != http.StatusCreated {
		t.Errorf("a write after the repair: %d", got)
	}
	if got := s.mustSend(t, s.keys["mende"], "GET /locations/search?q=boutique", ""); strings.Count(got, `"external_id"`) != 3 {
		t.Errorf("got %s, want three sites", got)
	}
	if got := s.runCommand(t, "audit log mende --kind sites"); !strings.Contains(got, "voided event") || !strings.Contains(got, "damaged by hand") {
		t.Errorf("got %s", got)
	}
	if code, _, _ := s.tryCommand(t, "projections repair nobody"); code == 0 {
		t.Error("an account that is not there was repaired")
	}
}

// TestALargeSyncWithoutAVaultAppendsNothing: its rows cannot be sealed, so nothing of it is on the log. The same request
// succeeds when the vault is back.
func TestALargeSyncWithoutAVaultAppendsNothing(t *testing.T) {
	t.Parallel()
	const sites = 10_000
	gate, address := proxyPostgres(t, sqldbtest.NewPostgresDatabase(t))
	n, folder := startNode(t), t.TempDir()
	change := func(c *service.Config) {
		withServers(n, address)(c)
		c.Data = folder
	}
	svc := startService(t, change)
	key, other := svc.openAccount(t, "mende", "m"), svc.openAccount(t, "florac", "m")
	rows := make([]string, sites)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%05d","nom":"Boutique","lat":44.5,"lon":3.5}`, i)
	}
	content := `{"sites":[` + strings.Join(rows, ",") + `]}`
	svc.stop() // a service keeps data keys in memory for a minute
	svc = startService(t, change)
	sync := func() (int, string) {
		return svc.send(t, key, "POST /locations/referentiels/m/sites:sync", content, "Idempotency-Key: one")
	}
	gate.setClosed(true)
	for range 3 {
		if status, text := sync(); status != http.StatusInternalServerError {
			t.Errorf("without a vault: %d %.300s", status, text)
		}
		if got := svc.mustSend(t, key, "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":0,`) {
			t.Errorf("got %s", got)
		}
	}
	gate.setClosed(false)
	waitUntil(t, "the read models are back", func() bool { return svc.statusOf(t, other, "GET /locations/referentiels", "") == http.StatusOK })
	status, text := sync()
	for tries := 0; status >= 500 && tries < 50; tries++ { // each pooled connection from before may fail once
		status, text = sync()
	}
	if status != http.StatusOK || !strings.Contains(text, `"crees":10000,`) {
		t.Fatalf("when the vault is back: %d %.300s", status, text)
	}
	svc.checkLargeSync(t, key, other, sites)
}

// checkLargeSync checks that a sync of n sites is served, and that neither its account nor the other is stopped.
func (svc *testService) checkLargeSync(t *testing.T, key, other string, sites int) {
	t.Helper()
	if got := svc.mustSend(t, key, "GET /me", ""); !strings.Contains(got, fmt.Sprintf(`"sites":{"actifs":%d,`, sites)) {
		t.Errorf("got %s", got)
	}
	waitUntil(t, "the read models hold it", func() bool {
		return strings.Count(svc.mustSend(t, key, "GET /locations/referentiels/m/sites:export?format=ndjson", ""), "\n") == sites
	})
	if got := svc.putSite(t, other, "one"); got != http.StatusCreated {
		t.Errorf("another account: %d", got)
	}
	if got := svc.readiness(t).text; strings.Contains(got, "stopped") || strings.Contains(got, "sync id") {
		t.Errorf("readiness: %s", got)
	}
}
