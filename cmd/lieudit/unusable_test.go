package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// eventInjector writes events to the core log of a stage as they are, beside the service or between two runs of it.
type eventInjector interface {
	injectEvent(t *testing.T, st *testService, stream, kind, data string) *testService
}

// offlineInjector stops an embedded service for it.
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

// liveInjector writes to the server while the service runs.
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

// TestAnUnusableEventStopsItsAccountUntilItIsRepaired on the whole service, both ways to run. Commits without a sync id,
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

// accountPaths are what an account's key and an auditor ask.
var accountPaths = []string{"/me", "/locations/referentiels", "/locations/referentiels/m/sites", "/locations/search?q=boutique", "/locations/referentiels/m/sites:export"}

func (svc *testService) checkStatuses(t *testing.T, key string, want int) {
	t.Helper()
	for _, path := range accountPaths {
		if got := svc.getStatus(t, path, key); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// putSite puts a site and gives the status.
func (svc *testService) putSite(t *testing.T, key, id string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, svc.api+"/locations/referentiels/m/sites/"+id, strings.NewReader(`{"nom":"Boutique","lat":44.5,"lon":3.5}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := svc.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func checkStopAndRepair(t *testing.T, svc *testService, log eventInjector) {
	t.Helper()
	keys := map[string]string{}
	for _, account := range []string{"mende", "florac"} {
		svc.runCommand(t, "account open Boutiques --plan BUSINESS --id "+account)
		keys[account] = strings.TrimSpace(svc.runCommand(t, "key issue "+account))
		svc.mustSend(t, keys[account], "POST /locations/referentiels", `{"code":"m"}`)
		svc.putSite(t, keys[account], "one")
		svc.checkStatuses(t, keys[account], http.StatusOK)
	}

	svc = log.injectEvent(t, svc, "locations-mende", "locations.sync-committed.v1", `{"referential":"m","action":"sync","created":9000,"after":9001,"sync":""}`)
	svc.waitUntil(t, "readiness to name the empty commit", func() bool { return strings.Contains(svc.readinessText(t), "without a sync id") })
	if got := svc.putSite(t, keys["mende"], "two"); got != http.StatusCreated {
		t.Errorf("a write after the empty commit: %d", got)
	}
	svc.checkStatuses(t, keys["mende"], http.StatusOK)
	if got := svc.mustSend(t, keys["mende"], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":2,`) {
		t.Errorf("got %s", got)
	}

	svc = log.injectEvent(t, svc, "locations-mende", "locations.sites-changed.v1", `{"rows":[`)
	svc.waitUntil(t, "readiness to name the account", func() bool {
		return strings.Contains(svc.readinessText(t), "history-v3-g1, places-v2-g1: account mende is stopped (unusable)")
	})
	if got := svc.statusOfURL(t, svc.ops+"/readyz"); got != http.StatusOK {
		t.Errorf("readiness: %d, want 200", got)
	}
	svc.checkStatuses(t, keys["mende"], http.StatusInternalServerError)
	if got := svc.putSite(t, keys["mende"], "three"); got != http.StatusInternalServerError {
		t.Errorf("a write to the stopped account: %d", got)
	}
	if code, _, _ := svc.tryCommand(t, "audit log mende"); code == 0 {
		t.Error("the history of the stopped account is shown")
	}
	svc.checkStatuses(t, keys["florac"], http.StatusOK)
	if got := svc.putSite(t, keys["florac"], "two"); got != http.StatusCreated {
		t.Errorf("a write to another account: %d", got)
	}
	if got := svc.runCommand(t, "projections status --json"); !strings.Contains(got, `"compte":"mende","nature":"unusable"`) {
		t.Errorf("got %s", got)
	}

	if got := svc.runCommand(t, `projections repair mende --reason "damaged by hand"`); !strings.Contains(got, "locations.sites-changed.v1") {
		t.Errorf("got %s", got)
	}
	svc.waitUntil(t, "the account to be written again", func() bool { return !strings.Contains(svc.readinessText(t), "is stopped") })
	svc.checkStatuses(t, keys["mende"], http.StatusOK)
	if got := svc.putSite(t, keys["mende"], "three"); got != http.StatusCreated {
		t.Errorf("a write after the repair: %d", got)
	}
	if got := svc.mustSend(t, keys["mende"], "GET /locations/search?q=boutique", ""); strings.Count(got, `"external_id"`) != 3 {
		t.Errorf("got %s, want three sites", got)
	}
	if got := svc.runCommand(t, "audit log mende --kind sites"); !strings.Contains(got, "voided event") || !strings.Contains(got, "damaged by hand") {
		t.Errorf("got %s", got)
	}
	if code, _, _ := svc.tryCommand(t, "projections repair nobody"); code == 0 {
		t.Error("an account that is not there was repaired")
	}
}

// postgresProxy stands between a service and Postgres.
type postgresProxy struct {
	network, server string
	listener        net.Listener
	forwarding      sync.WaitGroup
	mu              sync.Mutex
	isClosed        bool
	connections     map[net.Conn]bool
}

// proxyPostgres is the address of a Postgres behind a gate.
func proxyPostgres(t *testing.T, address string) (*postgresProxy, string) {
	t.Helper()
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	g := &postgresProxy{connections: map[net.Conn]bool{}}
	g.network, g.server = pgconn.NetworkAddress(server.Host, server.Port)
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	g.forwarding.Go(g.accept)
	t.Cleanup(func() {
		g.listener.Close()
		g.setClosed(true)
		g.forwarding.Wait()
	})
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: g.listener.Addr().String(), Path: server.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return g, u.String()
}

func (g *postgresProxy) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(g.network, g.server)
		if err != nil {
			client.Close()
			continue
		}
		g.mu.Lock()
		g.connections[client], g.connections[server] = true, true
		if g.isClosed {
			client.Close()
			server.Close()
		}
		g.mu.Unlock()
		for to, from := range map[net.Conn]net.Conn{client: server, server: client} {
			g.forwarding.Go(func() {
				io.Copy(to, from)
				to.Close()
				from.Close()
			})
		}
	}
}

// setClosed shuts the gate, or opens it.
func (g *postgresProxy) setClosed(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isClosed = closed
	for c := range g.connections {
		c.Close()
		delete(g.connections, c)
	}
}

// TestALargeSyncWhileTheVaultIsAwayHappensLaterOrNotAtAll: its rows cannot be sealed, so nothing of it is on the log. The
// same request is done when the vault is back.
func TestALargeSyncWhileTheVaultIsAwayHappensLaterOrNotAtAll(t *testing.T) {
	t.Parallel()
	const sites = 10_000
	g, address := proxyPostgres(t, sqldbtest.NewPostgresDatabase(t))
	n, folder := startNode(t), t.TempDir()
	change := func(c *service.Config) {
		withServers(n, address)(c)
		c.Data = folder
	}
	svc := startService(t, change)
	var keys []string
	for _, account := range []string{"mende", "florac"} {
		svc.runCommand(t, "account open Boutiques --plan BUSINESS --id "+account)
		keys = append(keys, strings.TrimSpace(svc.runCommand(t, "key issue "+account)))
		svc.mustSend(t, keys[len(keys)-1], "POST /locations/referentiels", `{"code":"m"}`)
	}
	rows := make([]string, sites)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%05d","nom":"Boutique","lat":44.5,"lon":3.5}`, i)
	}
	content := `{"sites":[` + strings.Join(rows, ",") + `]}`
	sync := func(ctx context.Context) (int, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, svc.api+"/locations/referentiels/m/sites:sync", strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+keys[0])
		r.Header.Set("Idempotency-Key", "one")
		resp, err := svc.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, 2048))
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	svc.stop() // data keys are remembered for a minute
	svc = startService(t, change)
	g.setClosed(true)
	for range 3 {
		if status, text := sync(t.Context()); status != http.StatusInternalServerError {
			t.Errorf("without a vault: %d %.300s", status, text)
		}
		if got := svc.mustSend(t, keys[0], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":0,`) {
			t.Errorf("got %s", got)
		}
	}
	g.setClosed(false)
	svc.waitUntil(t, "the read models to be back", func() bool { return svc.getStatus(t, "/locations/referentiels", keys[1]) == http.StatusOK })
	status, text := sync(t.Context())
	for tries := 0; status >= 500 && tries < 50; tries++ { // a connection of before may be met once
		status, text = sync(t.Context())
	}
	if status != http.StatusOK || !strings.Contains(text, `"crees":10000,`) {
		t.Fatalf("when the vault is back: %d %.300s", status, text)
	}
	if got := svc.mustSend(t, keys[0], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":10000,`) {
		t.Errorf("got %s", got)
	}
	svc.waitUntil(t, "the read models to hold it", func() bool {
		return strings.Count(svc.mustSend(t, keys[0], "GET /locations/referentiels/m/sites:export?format=ndjson", ""), "\n") == sites
	})
	if got := svc.putSite(t, keys[1], "one"); got != http.StatusCreated {
		t.Errorf("another account: %d", got)
	}
	if got := svc.readinessText(t); strings.Contains(got, "stopped") || strings.Contains(got, "sync id") {
		t.Errorf("readiness: %s", got)
	}
}
