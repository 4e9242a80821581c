package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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

// withMeilisearchSites makes a service search sites in the real Meilisearch of the tests, and removes its index afterwards.
func withMeilisearchSites(t *testing.T) func(*service.Config) {
	t.Helper()
	server := realMeilisearchURL(t)
	return func(c *service.Config) {
		c.Meilisearch = server.String()
		t.Cleanup(func() { deleteSiteIndex(t, c) })
	}
}

// realMeilisearchURL is the URL of the real Meilisearch of the tests, with its key.
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

// TestAPIOnMeilisearch plays the scenes about locations again, with sites searched in Meilisearch.
func TestAPIOnMeilisearch(t *testing.T) {
	t.Parallel()
	realMeilisearchURL(t)
	playScenes(t, "testdata/api/*locations*.txtar", func(t *testing.T, c *service.Config) { withMeilisearchSites(t)(c) })
}

func TestWritesDoNotWaitForAMeilisearchThatIsDown(t *testing.T) {
	t.Parallel()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	svc := startService(t, func(c *service.Config) { c.Meilisearch = "http://hidden@" + nobody.Addr().String() })
	key := svc.openCustomer(t)
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	waitUntil(t, "readiness says that Meilisearch is down", func() bool { return strings.Contains(svc.readyComponent(t, "site search"), "refused") })
	began := time.Now()
	for i := range 5 {
		svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Magasin","lat":44.5,"lon":3.5}`)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("five writes took %v: they wait for a search that is down", took)
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

func TestMeilisearchGetsAllChangesOnceItIsBack(t *testing.T) {
	t.Parallel()
	server := realMeilisearchURL(t)
	gate := startProxy(t, "tcp", server.Host)
	svc := startService(t, func(c *service.Config) {
		c.Meilisearch = (&url.URL{Scheme: "http", User: server.User, Host: gate.address}).String()
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
	waitUntil(t, "the index is there", func() bool { return found("magasin") == 0 })
	svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/1", `{"nom":"Magasin"}`)
	if n := found("magasin"); n != 1 {
		t.Errorf("found %d sites right after the first was written", n)
	}
	gate.setClosed(true)
	for i := range 20 {
		svc.mustSend(t, key, "PUT /locations/referentiels/shops/sites/"+fmt.Sprint(i), `{"nom":"Boutique"}`)
	}
	if n := found("magasin"); n != -1 {
		t.Errorf("found %d sites while Meilisearch is down", n)
	}
	gate.setClosed(false)
	waitUntil(t, "the search finds all changes", func() bool { return found("boutique") == 20 && found("magasin") == 0 })
	waitUntil(t, "readiness says so", func() bool { return svc.readyComponent(t, "site search") == "ok" })
	svc.runCommand(t, "projections rebuild places")
	waitUntil(t, "the fresh generation is in the index", func() bool { return svc.readyComponent(t, "site search") == "ok" && found("boutique") == 20 })
}
