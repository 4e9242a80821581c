package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/meiliclient"
	"lieudit/eventstore/meiliclient/meilitest"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/body"
	"lieudit/schemas/siteindex"
	"lieudit/schemas/table"
)

// withMeilisearchSites has sites searched in the real Meilisearch that tests may use, and removes what they leave there.
func withMeilisearchSites(t *testing.T) func(*service.Config) {
	t.Helper()
	server := realMeilisearchURL(t)
	return func(c *service.Config) {
		c.Meilisearch = server.String()
		t.Cleanup(func() { deleteSiteIndex(t, c) })
	}
}

// realMeilisearchURL is the address of the server that tests may use, its key in it.
func realMeilisearchURL(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(os.Getenv(meilitest.EnvVariable))
	if err != nil {
		t.Fatal(err)
	}
	if u.Host == "" {
		t.Skipf("no Meilisearch: start one and name it in %s, as http://127.0.0.1:7700#KEY", meilitest.EnvVariable)
	}
	u.User, u.Fragment = url.User(u.Fragment), ""
	return u
}

// deleteSiteIndex deletes the index of a service that has ended.
func deleteSiteIndex(t *testing.T, c *service.Config) {
	t.Helper()
	registry, err := sqldb.OpenRegistry(filepath.Join(c.Data, "readmodels"))
	if err != nil {
		t.Error(err)
		return
	}
	defer registry.Close()
	server, err := meiliclient.ParseServer(c.Meilisearch)
	if err != nil {
		t.Error(err)
		return
	}
	log, err := registry.LogID(context.Background(), table.LocationsModel)
	if err == nil && log != "" {
		_, err = server.Client().DeleteIndex(siteindex.Name(log))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAPIOnMeilisearch plays the scenes about places again, with sites searched in Meilisearch.
func TestAPIOnMeilisearch(t *testing.T) {
	t.Parallel()
	realMeilisearchURL(t)
	playScenes(t, "testdata/api/*locations*.txtar", func(t *testing.T, c *service.Config) { withMeilisearchSites(t)(c) })
}

// tcpProxy passes connections on to a server while it is open.
type tcpProxy struct {
	target   string
	listener net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

func startProxy(t *testing.T, to string) *tcpProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &tcpProxy{target: to, listener: l, conns: map[net.Conn]bool{}}
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			forwarding.Go(func() { g.forward(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.setClosed(true)
		forwarding.Wait()
	})
	return g
}

func (g *tcpProxy) forward(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer out.Close()
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.conns[conn], g.conns[out] = true, true
	g.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(conn, out)
		conn.Close()
	})
	io.Copy(out, conn)
	out.Close()
	back.Wait()
}

// setClosed closes the gate or opens it.
func (g *tcpProxy) setClosed(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	for conn := range g.conns {
		conn.Close()
	}
	clear(g.conns)
}

func TestWritesGoOnWhileMeilisearchIsAway(t *testing.T) {
	t.Parallel()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	svc := startService(t, func(c *service.Config) { c.Meilisearch = "http://hidden@" + nobody.Addr().String() })
	key := svc.openCustomer(t)
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	svc.waitUntil(t, "readiness to say that Meilisearch is away", func() bool { return strings.Contains(svc.readyComponent(t, "site search"), "refused") })
	began := time.Now()
	for i := range 5 {
		svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Magasin","lat":44.5,"lon":3.5}`)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("five writes took %v: they wait for a search that is away", took)
	}
	if got := svc.getJSON(t, key, "/locations/search?q=magasin", &struct{}{}); got != http.StatusInternalServerError {
		t.Errorf("got %d", got)
	}
	if got := svc.mustSend(t, key, "GET /locations/referentiels/shops/sites", ""); strings.Count(got, `"external_id"`) != 5 {
		t.Errorf("got %s", got)
	}
	reason := svc.readyComponent(t, "site search")
	if !strings.HasPrefix(reason, "5 sites to be told of: ") || strings.Contains(reason, "hidden") {
		t.Errorf("readiness says %q", reason)
	}
	if got := svc.metricValue(t, "lieudit_outbox_waiting"); got != "5" {
		t.Errorf("got a metric of %s", got)
	}
}

// metricValue is the value of a metricValue without labels.
func (svc *testService) metricValue(t *testing.T, name string) string {
	t.Helper()
	resp, err := svc.client.Get(svc.ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(string(all), "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

func TestMeilisearchThatComesBackIsToldOfAll(t *testing.T) {
	t.Parallel()
	server := realMeilisearchURL(t)
	g := startProxy(t, server.Host)
	svc := startService(t, func(c *service.Config) {
		c.Meilisearch = (&url.URL{Scheme: "http", User: server.User, Host: g.listener.Addr().String()}).String()
		direct := *c
		direct.Meilisearch = server.String()
		t.Cleanup(func() { deleteSiteIndex(t, &direct) })
	})
	key := svc.openCustomer(t)
	found := func(query string) (n int) {
		var answer body.Locations
		if svc.getJSON(t, key, "/locations/search?limit=100&q="+query, &answer) != http.StatusOK {
			return -1
		}
		return len(answer.Results)
	}
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	svc.waitUntil(t, "the index to be there", func() bool { return found("magasin") == 0 })
	svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/1", `{"nom":"Magasin"}`)
	if n := found("magasin"); n != 1 {
		t.Errorf("found %d sites right after the first was written", n)
	}
	g.setClosed(true)
	for i := range 20 {
		svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Boutique"}`)
	}
	if n := found("magasin"); n != -1 {
		t.Errorf("found %d sites while Meilisearch is away", n)
	}
	g.setClosed(false)
	svc.waitUntil(t, "Meilisearch to be told", func() bool { return found("boutique") == 20 && found("magasin") == 0 })
	svc.waitUntil(t, "readiness to say so", func() bool { return svc.readyComponent(t, "site search") == "ok" })
	svc.runCommand(t, "projections rebuild places")
	svc.waitUntil(t, "the fresh copy to be told", func() bool { return svc.readyComponent(t, "site search") == "ok" && found("boutique") == 20 })
}
