package main

import (
	"encoding/json"
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

// ask is a request with a key, and its answer's status.
func (st *stage) ask(t *testing.T, key, path string, into any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, st.api+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := st.client.Do(req)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return 0
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	return resp.StatusCode
}

// customer opens an account and returns a key of it.
func (st *stage) customer(t *testing.T) string {
	t.Helper()
	name := "customer-" + st.unique()
	st.run(t, "account open Mende --plan BUSINESS --id "+name)
	return strings.TrimSpace(st.run(t, "key issue "+name))
}

func TestImportIsServedWithoutDroppingARequest(t *testing.T) {
	t.Parallel()
	importUnderLoad(t, raise(t, func(*service.Config) {}))
}

func TestImportIsServedWithoutDroppingARequestOnServers(t *testing.T) {
	t.Parallel()
	importUnderLoad(t, raise(t, onServers(startNode(t), tabletest.Postgres(t))))
}

func importUnderLoad(t *testing.T, st *stage) {
	t.Helper()
	key := st.customer(t)
	var files []string
	for seed := range 2 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("a%d.csv.gz", seed)))
		st.run(t, fmt.Sprintf("ban generate --addresses 4000 --seed %d --out %s", seed, files[seed]))
	}
	st.run(t, "ban import --data "+st.data+" "+files[0])
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
				if got := st.ask(t, key, path, &struct{}{}); got != http.StatusOK && got != http.StatusServiceUnavailable { // a busy machine has no time for keys
					t.Errorf("%s: %d while vintages change", path, got)
				}
				asked.Add(1)
			}
		})
	}
	for turn := range 3 {
		millesime := fmt.Sprintf("2026-0%d-01", turn+1)
		st.run(t, fmt.Sprintf("ban import --data %s --millesime %s %s", st.data, millesime, files[turn%2]))
		var v body.Version
		if st.ask(t, key, "/version", &v); v.Vintage != millesime {
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
	st := raise(t, func(*service.Config) {})
	key := st.customer(t)
	const header = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat;x;y\n"
	before, after := filepath.Join(st.data, "before.csv"), filepath.Join(st.data, "after.csv")
	mustWrite(t, before, header+"48095_old_00003;3;;Rue Basse;48000;48095;Mende;3.4979;44.514163;739574.22;6379580.04\n")
	mustWrite(t, after, header+"48095_new_00003;3;;Rue Haute;48000;48095;Mende;3.4979;44.514180;739574.22;6379582.04\n")
	st.run(t, "ban import --data "+st.data+" "+before)
	var first, second body.Address
	st.ask(t, key, "/address/view/48095_old_00003", &first)
	st.run(t, "ban import --data "+st.data+" "+after)
	for _, id := range []string{"48095_old_00003", "48095_new_00003", first.BanID} {
		if got := st.ask(t, key, "/address/view/"+url.PathEscape(id), &second); got != http.StatusOK || second.ID != "48095_new_00003" || second.BanID != first.BanID {
			t.Errorf("%s: %d, %s with id_ban %s, want 48095_new_00003 with %s", id, got, second.ID, second.BanID, first.BanID)
		}
	}
}

func TestRefusedVintageLeavesTheServedOneAndTellsTheImport(t *testing.T) {
	t.Parallel()
	st := raise(t, func(*service.Config) {})
	file := filepath.Join(st.data, "a.csv")
	st.run(t, "ban generate --addresses 300 --out "+file)
	st.run(t, "ban import --millesime 2026-01-01 --data "+st.data+" "+file)
	mustWrite(t, filepath.Join(st.data, "page.csv"), "<html>")
	if code, _, complaints := st.try(t, "ban import --data "+st.data+" "+filepath.Join(st.data, "page.csv")); code != 1 || !strings.Contains(complaints, "web page") {
		t.Errorf("exit %d, %q", code, complaints)
	}
	var v body.Version
	if st.ask(t, "", "/version", &v); v.Vintage != "2026-01-01" {
		t.Errorf("%q is served, want the vintage from before", v.Vintage)
	}
}
