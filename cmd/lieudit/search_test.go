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
	"lieudit/queries/places/meili"
	"lieudit/queries/places/meili/meilitest"
	"lieudit/schemas/body"
	"lieudit/schemas/table"
)

// inMeilisearch has sites searched in the real Meilisearch that tests may use, and removes what they leave there.
func inMeilisearch(t *testing.T) func(*service.Config) {
	t.Helper()
	server := realMeilisearch(t)
	return func(c *service.Config) {
		c.Meilisearch = server.String()
		t.Cleanup(func() { forgetSites(t, c) })
	}
}

// realMeilisearch is the address of the server that tests may use, its key in it.
func realMeilisearch(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(os.Getenv(meilitest.Variable))
	if err != nil {
		t.Fatal(err)
	}
	if u.Host == "" {
		t.Skipf("no Meilisearch: start one and name it in %s, as http://127.0.0.1:7700#KEY", meilitest.Variable)
	}
	u.User, u.Fragment = url.User(u.Fragment), ""
	return u
}

// forgetSites deletes the index of a service that has ended.
func forgetSites(t *testing.T, c *service.Config) {
	t.Helper()
	shelf, err := table.OpenShelf(filepath.Join(c.Data, "readmodels"))
	if err != nil {
		t.Error(err)
		return
	}
	defer shelf.Close()
	server, err := meili.Parse(c.Meilisearch)
	if err != nil {
		t.Error(err)
		return
	}
	name, err := meili.New(server, shelf).Name(context.Background())
	if err == nil {
		_, err = server.Client().DeleteIndex(name)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAPIOnMeilisearch plays the scenes about places again, with sites searched in Meilisearch.
func TestAPIOnMeilisearch(t *testing.T) {
	t.Parallel()
	realMeilisearch(t)
	play(t, "testdata/api/*locations*.txtar", func(t *testing.T, c *service.Config) { inMeilisearch(t)(c) })
}

// gate passes connections on to a server while it is open.
type gate struct {
	to     string
	listen net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

func openGate(t *testing.T, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{to: to, listen: l, conns: map[net.Conn]bool{}}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { g.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.shut(true)
		passing.Wait()
	})
	return g
}

func (g *gate) pass(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", g.to)
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

// shut closes the gate or opens it.
func (g *gate) shut(closed bool) {
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
	st := raise(t, func(c *service.Config) { c.Meilisearch = "http://hidden@" + nobody.Addr().String() })
	key := st.customer(t)
	st.send(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	st.await(t, "readiness to say that Meilisearch is away", func() bool { return strings.Contains(st.part(t, "site search"), "refused") })
	began := time.Now()
	for i := range 5 {
		st.send(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Magasin","lat":44.5,"lon":3.5}`)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("five writes took %v: they wait for a search that is away", took)
	}
	if got := st.ask(t, key, "/locations/search?q=magasin", &struct{}{}); got != http.StatusInternalServerError {
		t.Errorf("got %d", got)
	}
	if got := st.send(t, key, "GET /locations/referentiels/shops/sites", ""); strings.Count(got, `"external_id"`) != 5 {
		t.Errorf("got %s", got)
	}
	reason := st.part(t, "site search")
	if !strings.HasPrefix(reason, "5 sites to be told of: ") || strings.Contains(reason, "hidden") {
		t.Errorf("readiness says %q", reason)
	}
	if got := st.metric(t, "lieudit_outbox_waiting"); got != "5" {
		t.Errorf("got a metric of %s", got)
	}
}

// metric is the value of a metric without labels.
func (st *stage) metric(t *testing.T, name string) string {
	t.Helper()
	resp, err := st.client.Get(st.ops + "/metrics")
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
	server := realMeilisearch(t)
	g := openGate(t, server.Host)
	st := raise(t, func(c *service.Config) {
		c.Meilisearch = (&url.URL{Scheme: "http", User: server.User, Host: g.listen.Addr().String()}).String()
		direct := *c
		direct.Meilisearch = server.String()
		t.Cleanup(func() { forgetSites(t, &direct) })
	})
	key := st.customer(t)
	found := func(query string) (n int) {
		var answer body.Locations
		if st.ask(t, key, "/locations/search?limit=100&q="+query, &answer) != http.StatusOK {
			return -1
		}
		return len(answer.Results)
	}
	st.send(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	st.await(t, "the index to be there", func() bool { return found("magasin") == 0 })
	st.send(t, key, "PUT /locations/referentiels/shops/sites/1", `{"nom":"Magasin"}`)
	if n := found("magasin"); n != 1 {
		t.Errorf("found %d sites right after the first was written", n)
	}
	g.shut(true)
	for i := range 20 {
		st.send(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Boutique"}`)
	}
	if n := found("magasin"); n != -1 {
		t.Errorf("found %d sites while Meilisearch is away", n)
	}
	g.shut(false)
	st.await(t, "Meilisearch to be told", func() bool { return found("boutique") == 20 && found("magasin") == 0 })
	st.await(t, "readiness to say so", func() bool { return st.part(t, "site search") == "ok" })
	st.run(t, "projections rebuild places")
	st.await(t, "the fresh copy to be told", func() bool { return st.part(t, "site search") == "ok" && found("boutique") == 20 })
}
