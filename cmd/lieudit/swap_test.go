package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/body"
	"lieudit/schemas/table/tabletest"
)

// openCustomer opens an account and returns a key of it.
func (svc *testService) openCustomer(t *testing.T) string {
	t.Helper()
	name := "customer-" + svc.uniqueName()
	svc.runCommand(t, "account open Mende --plan BUSINESS --id "+name)
	return strings.TrimSpace(svc.runCommand(t, "key issue "+name))
}

func TestImportIsServedWithoutDroppingARequest(t *testing.T) {
	t.Parallel()
	importUnderLoad(t, startService(t, func(*service.Config) {}))
}

func TestImportIsServedWithoutDroppingARequestOnServers(t *testing.T) {
	t.Parallel()
	importUnderLoad(t, startService(t, withServers(startNode(t), tabletest.NewPostgresDatabase(t))))
}

func importUnderLoad(t *testing.T, svc *testService) {
	t.Helper()
	key := svc.openCustomer(t)
	var files []string
	for seed := range 2 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("a%d.csv.gz", seed)))
		svc.runCommand(t, fmt.Sprintf("ban generate --addresses 4000 --seed %d --out %s", seed, files[seed]))
	}
	svc.runCommand(t, "ban import --data "+svc.data+" "+files[0])
	var asked atomic.Int64
	done := make(chan struct{})
	var askers sync.WaitGroup
	for _, path := range []string{
		"/address/verify?q=1+rue+de+la+mairie+paris", "/address/autocomplete?q=rue+de", "/address/proximity?lat=48.85&lon=2.35&radius=10000", "/locality/search?q=paris",
	} {
		askers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := svc.getJSON(t, key, path, &struct{}{}); got != http.StatusOK && got != http.StatusServiceUnavailable { // a busy machine has no time for keys
					t.Errorf("%s: %d while vintages change", path, got)
				}
				asked.Add(1)
			}
		})
	}
	for turn := range 3 {
		millesime := fmt.Sprintf("2026-0%d-01", turn+1)
		svc.runCommand(t, fmt.Sprintf("ban import --data %s --millesime %s %s", svc.data, millesime, files[turn%2]))
		var v body.Version
		if svc.getJSON(t, key, "/version", &v); v.Vintage != millesime {
			t.Errorf("the import of %s has ended and %s is served", millesime, v.Vintage)
		}
	}
	close(done)
	askers.Wait()
	if asked.Load() < 20 {
		t.Errorf("only %d requests were asked meanwhile", asked.Load())
	}
}

func TestOldIdsFindTheirAddressesInTheNextVintage(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	key := svc.openCustomer(t)
	const header = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat;x;y\n"
	before, after := filepath.Join(svc.data, "before.csv"), filepath.Join(svc.data, "after.csv")
	mustWriteFile(t, before, header+"48095_old_00003;3;;Rue Basse;48000;48095;Mende;3.4979;44.514163;739574.22;6379580.04\n")
	mustWriteFile(t, after, header+"48095_new_00003;3;;Rue Haute;48000;48095;Mende;3.4979;44.514180;739574.22;6379582.04\n")
	svc.runCommand(t, "ban import --data "+svc.data+" "+before)
	var first, second body.Address
	svc.getJSON(t, key, "/address/view/48095_old_00003", &first)
	svc.runCommand(t, "ban import --data "+svc.data+" "+after)
	for _, id := range []string{"48095_old_00003", "48095_new_00003", first.BanID} {
		if got := svc.getJSON(t, key, "/address/view/"+url.PathEscape(id), &second); got != http.StatusOK || second.ID != "48095_new_00003" || second.BanID != first.BanID {
			t.Errorf("%s: %d, %s with id_ban %s, want 48095_new_00003 with %s", id, got, second.ID, second.BanID, first.BanID)
		}
	}
}

func TestRefusedVintageLeavesTheServedOneAndTellsTheImport(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	file := filepath.Join(svc.data, "a.csv")
	svc.runCommand(t, "ban generate --addresses 300 --out "+file)
	svc.runCommand(t, "ban import --millesime 2026-01-01 --data "+svc.data+" "+file)
	mustWriteFile(t, filepath.Join(svc.data, "page.csv"), "<html>")
	if code, _, stderr := svc.tryCommand(t, "ban import --data "+svc.data+" "+filepath.Join(svc.data, "page.csv")); code != 1 || !strings.Contains(stderr, "web page") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	var v body.Version
	if svc.getJSON(t, "", "/version", &v); v.Vintage != "2026-01-01" {
		t.Errorf("%q is served, want the vintage from before", v.Vintage)
	}
}
