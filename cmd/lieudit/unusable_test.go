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
	"lieudit/schemas/table/tabletest"
)

// tamperer writes events to the core log of a stage as they are, beside the service or between two runs of it.
type tamperer interface {
	tamper(t *testing.T, st *stage, stream, kind, data string) *stage
}

// betweenRuns stops an embedded service for it.
type betweenRuns struct{ change func(*service.Config) }

func (b betweenRuns) tamper(t *testing.T, st *stage, stream, kind, data string) *stage {
	t.Helper()
	st.stop()
	j, err := journal.Open(filepath.Join(st.data, "log", "core"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, j, stream, kind, data)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	folder := st.data
	return raise(t, func(c *service.Config) {
		b.change(c)
		c.Data = folder
	})
}

// besideServers writes to the server while the service runs.
type besideServers struct{ node *server }

func (b besideServers) tamper(t *testing.T, st *stage, stream, kind, data string) *stage {
	t.Helper()
	log, err := esdb.Open(t.Context(), b.node.address(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	putRaw(t, log, stream, kind, data)
	return st
}

func putRaw(t *testing.T, log eventstore.Store, stream, kind, data string) {
	t.Helper()
	e := eventstore.Proposed{ID: uuid.New(), Type: kind, Data: []byte(data), Metadata: []byte(`{"end":true}`)}
	if _, err := log.Append(t.Context(), stream, eventstore.Any, []eventstore.Proposed{e}); err != nil {
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
		stopAndRepair(t, raise(t, change), betweenRuns{change})
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		n := startNode(t)
		stopAndRepair(t, raise(t, onServers(n, tabletest.Postgres(t))), besideServers{n})
	})
}

// asks are what an account's key and an auditor ask.
var asks = []string{"/me", "/locations/referentiels", "/locations/referentiels/m/sites", "/locations/search?q=boutique", "/locations/referentiels/m/sites:export"}

func (st *stage) answers(t *testing.T, key string, want int) {
	t.Helper()
	for _, path := range asks {
		if got := st.answered(t, path, key); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// write puts a site and gives the status.
func (st *stage) write(t *testing.T, key, id string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, st.api+"/locations/referentiels/m/sites/"+id, strings.NewReader(`{"nom":"Boutique","lat":44.5,"lon":3.5}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := st.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func stopAndRepair(t *testing.T, st *stage, log tamperer) {
	t.Helper()
	keys := map[string]string{}
	for _, account := range []string{"mende", "florac"} {
		st.run(t, "account open Boutiques --plan BUSINESS --id "+account)
		keys[account] = strings.TrimSpace(st.run(t, "key issue "+account))
		st.send(t, keys[account], "POST /locations/referentiels", `{"code":"m"}`)
		st.write(t, keys[account], "one")
		st.answers(t, keys[account], http.StatusOK)
	}

	st = log.tamper(t, st, "locations-mende", "locations.sync-committed.v1", `{"referential":"m","action":"sync","created":9000,"after":9001,"sync":""}`)
	st.await(t, "readiness to name the empty commit", func() bool { return strings.Contains(st.ready(t), "without a sync id") })
	if got := st.write(t, keys["mende"], "two"); got != http.StatusCreated {
		t.Errorf("a write after the empty commit: %d", got)
	}
	st.answers(t, keys["mende"], http.StatusOK)
	if got := st.send(t, keys["mende"], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":2,`) {
		t.Errorf("got %s", got)
	}

	st = log.tamper(t, st, "locations-mende", "locations.sites-changed.v1", `{"rows":[`)
	st.await(t, "readiness to name the account", func() bool {
		return strings.Contains(st.ready(t), "history-v3-g1, places-v2-g1: account mende is stopped (unusable)")
	})
	if got := st.status(t, st.ops+"/readyz"); got != http.StatusOK {
		t.Errorf("readiness: %d, want 200", got)
	}
	st.answers(t, keys["mende"], http.StatusInternalServerError)
	if got := st.write(t, keys["mende"], "three"); got != http.StatusInternalServerError {
		t.Errorf("a write to the stopped account: %d", got)
	}
	if code, _, _ := st.try(t, "audit log mende"); code == 0 {
		t.Error("the history of the stopped account is shown")
	}
	st.answers(t, keys["florac"], http.StatusOK)
	if got := st.write(t, keys["florac"], "two"); got != http.StatusCreated {
		t.Errorf("a write to another account: %d", got)
	}
	if got := st.run(t, "projections status --json"); !strings.Contains(got, `"compte":"mende","nature":"unusable"`) {
		t.Errorf("got %s", got)
	}

	if got := st.run(t, `projections repair mende --reason "damaged by hand"`); !strings.Contains(got, "locations.sites-changed.v1") {
		t.Errorf("got %s", got)
	}
	st.await(t, "the account to be written again", func() bool { return !strings.Contains(st.ready(t), "is stopped") })
	st.answers(t, keys["mende"], http.StatusOK)
	if got := st.write(t, keys["mende"], "three"); got != http.StatusCreated {
		t.Errorf("a write after the repair: %d", got)
	}
	if got := st.send(t, keys["mende"], "GET /locations/search?q=boutique", ""); strings.Count(got, `"external_id"`) != 3 {
		t.Errorf("got %s, want three sites", got)
	}
	if got := st.run(t, "audit log mende --kind sites"); !strings.Contains(got, "voided event") || !strings.Contains(got, "damaged by hand") {
		t.Errorf("got %s", got)
	}
	if code, _, _ := st.try(t, "projections repair nobody"); code == 0 {
		t.Error("an account that is not there was repaired")
	}
}

// postgresGate stands between a service and Postgres.
type postgresGate struct {
	network, server string
	listener        net.Listener
	carriers        sync.WaitGroup
	mu              sync.Mutex
	shut            bool
	open            map[net.Conn]bool
}

// through is the address of a Postgres behind a gate.
func through(t *testing.T, address string) (*postgresGate, string) {
	t.Helper()
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	g := &postgresGate{open: map[net.Conn]bool{}}
	g.network, g.server = pgconn.NetworkAddress(server.Host, server.Port)
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	g.carriers.Go(g.accept)
	t.Cleanup(func() {
		g.listener.Close()
		g.set(true)
		g.carriers.Wait()
	})
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: g.listener.Addr().String(), Path: server.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return g, u.String()
}

func (g *postgresGate) accept() {
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
		g.open[client], g.open[server] = true, true
		if g.shut {
			client.Close()
			server.Close()
		}
		g.mu.Unlock()
		for to, from := range map[net.Conn]net.Conn{client: server, server: client} {
			g.carriers.Go(func() {
				io.Copy(to, from)
				to.Close()
				from.Close()
			})
		}
	}
}

// set shuts the gate, or opens it.
func (g *postgresGate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for c := range g.open {
		c.Close()
		delete(g.open, c)
	}
}

// TestALargeSyncWhileTheVaultIsAwayHappensLaterOrNotAtAll: its rows cannot be sealed, so nothing of it is on the log. The
// same request is done when the vault is back.
func TestALargeSyncWhileTheVaultIsAwayHappensLaterOrNotAtAll(t *testing.T) {
	t.Parallel()
	const sites = 10_000
	g, address := through(t, tabletest.Postgres(t))
	n, folder := startNode(t), t.TempDir()
	change := func(c *service.Config) {
		onServers(n, address)(c)
		c.Data = folder
	}
	st := raise(t, change)
	var keys []string
	for _, account := range []string{"mende", "florac"} {
		st.run(t, "account open Boutiques --plan BUSINESS --id "+account)
		keys = append(keys, strings.TrimSpace(st.run(t, "key issue "+account)))
		st.send(t, keys[len(keys)-1], "POST /locations/referentiels", `{"code":"m"}`)
	}
	rows := make([]string, sites)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%05d","nom":"Boutique","lat":44.5,"lon":3.5}`, i)
	}
	content := `{"sites":[` + strings.Join(rows, ",") + `]}`
	sync := func(ctx context.Context) (int, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, st.api+"/locations/referentiels/m/sites:sync", strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+keys[0])
		r.Header.Set("Idempotency-Key", "one")
		resp, err := st.client.Do(r)
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
	st.stop() // data keys are remembered for a minute
	st = raise(t, change)
	g.set(true)
	for range 3 {
		if status, text := sync(t.Context()); status != http.StatusInternalServerError {
			t.Errorf("without a vault: %d %.300s", status, text)
		}
		if got := st.send(t, keys[0], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":0,`) {
			t.Errorf("got %s", got)
		}
	}
	g.set(false)
	st.await(t, "the read models to be back", func() bool { return st.answered(t, "/locations/referentiels", keys[1]) == http.StatusOK })
	status, text := sync(t.Context())
	for tries := 0; status >= 500 && tries < 50; tries++ { // a connection of before may be met once
		status, text = sync(t.Context())
	}
	if status != http.StatusOK || !strings.Contains(text, `"crees":10000,`) {
		t.Fatalf("when the vault is back: %d %.300s", status, text)
	}
	if got := st.send(t, keys[0], "GET /me", ""); !strings.Contains(got, `"sites":{"actifs":10000,`) {
		t.Errorf("got %s", got)
	}
	st.await(t, "the read models to hold it", func() bool {
		return strings.Count(st.send(t, keys[0], "GET /locations/referentiels/m/sites:export?format=ndjson", ""), "\n") == sites
	})
	if got := st.write(t, keys[1], "one"); got != http.StatusCreated {
		t.Errorf("another account: %d", got)
	}
	if got := st.ready(t); strings.Contains(got, "stopped") || strings.Contains(got, "sync id") {
		t.Errorf("readiness: %s", got)
	}
}
