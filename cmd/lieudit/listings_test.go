package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meilisearch/meilisearch-go"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/meiliclient"
	"lieudit/eventstore/meiliclient/meilitest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/directory"
)

// withMeilisearchAddresses has addresses searched in a Meilisearch.
func withMeilisearchAddresses(address string) func(*service.Config) {
	return func(c *service.Config) { c.Meilisearch, c.AddressIndex = address, service.MeilisearchIndex }
}

// meilisearchForAddresses is the real Meilisearch that tests may use, and what they leave there is removed.
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
		later := directory.New(at.Client(), "later", func() time.Time { return time.Now().Add(time.Hour) })
		if err := later.Prune(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return address
}

func TestSearchesOfAddressesFailAloneWhileMeilisearchIsAway(t *testing.T) {
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

// It does not run beside the others, which remove what they find when they end.
func TestInstancesThatListAVintageAtOnceListItOnce(t *testing.T) {
	at, err := meiliclient.ParseServer(meilisearchForAddresses(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := addresstest.Memory(addresstest.Hamlet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	var all errgroup.Group
	for name := range 4 {
		d := directory.New(at.Client(), fmt.Sprint("instance-", name), time.Now)
		d.Name = "lieudit-addresses-at-once"
		if name == 0 {
			t.Cleanup(func() {
				err := d.Forget(context.Background(), v)
				if _, gone := at.Client().DeleteIndex(d.Name); err != nil || gone != nil {
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
	indexes, err := at.Client().ListIndexes(&meilisearch.IndexesQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes.Results {
		if strings.HasPrefix(index.UID, "lieudit-addresses-at-once") && strings.HasSuffix(index.UID, "-draft") {
			t.Errorf("%s is left behind", index.UID)
		}
	}
}
