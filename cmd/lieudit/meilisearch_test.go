package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meilisearch/meilisearch-go"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/meili"
	"lieudit/schemas/body"
	"lieudit/schemas/meiliclient"
	"lieudit/schemas/meiliclient/meilitest"
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
		_, err = server.Client().DeleteIndex(context.Background(), siteindex.Name(log))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAPIOnMeilisearch runs the scenarios about locations again, with sites searched in Meilisearch.
func TestAPIOnMeilisearch(t *testing.T) {
	t.Parallel()
	realMeilisearchURL(t)
	runScenarios(t, "testdata/api/*locations*.txtar", func(t *testing.T, c *service.Config) { withMeilisearchSites(t)(c) })
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

// withMeilisearchAddresses makes a service search addresses in a Meilisearch.
func withMeilisearchAddresses(address string) func(*service.Config) {
	return func(c *service.Config) { c.Meilisearch, c.AddressIndex = address, service.MeilisearchIndex }
}

// meilisearchForAddresses is the URL of the real Meilisearch of the tests. What they leave there is removed afterwards.
func meilisearchForAddresses(t *testing.T) string {
	t.Helper()
	server, key, _ := strings.Cut(os.Getenv(meilitest.EnvVariable), "#")
	if server == "" {
		t.Skipf("no Meilisearch: start one and name it in %s, as http://127.0.0.1:7700#KEY", meilitest.EnvVariable)
	}
	address := strings.Replace(server, "://", "://"+key+"@", 1)
	at, err := meiliclient.ParseServer(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		later := meili.New(at.Client(), "later", time.Now, func() time.Time { return time.Now().Add(time.Hour) })
		if err := later.Prune(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return address
}

func TestOnlySearchesOfAddressesFailWhileMeilisearchIsDown(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	svc := startService(t, withMeilisearchAddresses("http://key@"+gone.Addr().String()))
	key := svc.openCustomer(t)
	const row = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat;x;y\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.4979;44.514163;739574.22;6379580.04\n"
	file := filepath.Join(svc.data, "rows.csv")
	mustWriteFile(t, file, row)
	svc.runCommand(t, "ban import --data "+svc.data+" "+file)
	for path, want := range map[string]int{
		"/address/verify?q=3+rue+basse+mende": http.StatusInternalServerError, "/address/autocomplete?q=rue+bas": http.StatusInternalServerError,
		"/address/proximity?center=rue+basse+mende": http.StatusInternalServerError,
		"/address/view/48095_a_00003":               http.StatusOK, "/address/proximity?lat=44.5142&lon=3.4979": http.StatusOK,
		"/address/proximity?center=48095_a_00003": http.StatusOK, "/locality/search?q=mende": http.StatusOK,
		"/address/autocomplete?q=a": http.StatusOK,
	} {
		if got := svc.getJSON(t, key, path, &struct{}{}); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if reason := svc.readyComponent(t, "address index"); reason == "ok" || strings.Contains(reason, "key@") {
		t.Errorf("readiness says %q of the address index", reason)
	}
}

func TestImportIsServedWithoutDroppingARequestOnMeilisearch(t *testing.T) {
	t.Parallel()
	address := meilisearchForAddresses(t)
	importUnderLoad(t, startService(t, func(c *service.Config) {
		withMeilisearchAddresses(address)(c)
		t.Cleanup(func() { deleteSiteIndex(t, c) })
	}))
}

// TestInstancesThatIndexAVintageAtOnceFillItOnce does not run in parallel: the other tests remove what they find at their end.
func TestInstancesThatIndexAVintageAtOnceFillItOnce(t *testing.T) {
	at, err := meiliclient.ParseServer(meilisearchForAddresses(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := addresstest.BuildVintage(addresstest.Hamlet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	var all errgroup.Group
	for name := range 4 {
		d := meili.New(at.Client(), fmt.Sprint("instance-", name), time.Now, time.Now)
		d.Name = "lieudit-addresses-at-once"
		if name == 0 {
			t.Cleanup(func() {
				err := d.Delete(context.Background(), v)
				if _, gone := at.Client().DeleteIndex(context.Background(), d.Name); err != nil || gone != nil {
					t.Error(err, gone)
				}
			})
		}
		all.Go(func() error {
			return errors.Join(d.Fill(t.Context(), v, nil), d.Ready(t.Context(), v))
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	indexes, err := at.Client().ListIndexes(t.Context(), &meilisearch.IndexesQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes.Results {
		if strings.HasPrefix(index.UID, "lieudit-addresses-at-once") && strings.HasSuffix(index.UID, "-draft") {
			t.Errorf("%s is left behind", index.UID)
		}
	}
}
