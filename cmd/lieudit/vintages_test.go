package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/queries/address/officialtest"
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

// currentVintagePath is the file of the currentVintagePath vintage.
func (svc *testService) currentVintagePath(t *testing.T) string {
	t.Helper()
	folder := vintages.FolderIn(svc.data)
	name, err := folder.Current()
	if err != nil || name == "" {
		t.Fatalf("no current vintage: %v", err)
	}
	return folder.Path(name)
}

// loadOfficialIDs is the official file and every n-th id in it.
func loadOfficialIDs(t *testing.T, every int) (file string, ids []string) {
	t.Helper()
	file = officialtest.Open(t, "ban/adresses-48.csv.gz").Name()
	packed := officialtest.Open(t, "ban/adresses-48.csv.gz")
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	rows := csv.NewReader(plain)
	rows.Comma, rows.LazyQuotes = ';', true
	head, err := rows.Read()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(head, "id")
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return file, ids
		}
		if err != nil {
			t.Fatal(err)
		}
		if n%every == 0 {
			ids = append(ids, row[column])
		}
	}
}

// viewAddresses is what ids lead to: the id_ban, or the status of a refusal.
func (svc *testService) viewAddresses(t *testing.T, key string, ids []string) []string {
	t.Helper()
	got := make([]string, len(ids))
	for i, id := range ids {
		for {
			var a body.Address
			status := svc.getJSON(t, key, "/address/view/"+url.PathEscape(id), &a)
			if status == http.StatusServiceUnavailable { // a busy machine has no time for keys
				continue
			}
			if got[i] = a.BanID; status != http.StatusOK {
				got[i] = fmt.Sprint(status)
			}
			break
		}
	}
	return got
}

// countWrongAnswers are the answers that are neither right nor a 500.
func countWrongAnswers(got, want []string) (n, failed int) {
	for i := range got {
		switch got[i] {
		case want[i]:
		case "500":
			failed++
		default:
			n++
		}
	}
	return n, failed
}

// overwriteBytes overwrites a part of a file with other bytes.
func overwriteBytes(t *testing.T, path string, from, to int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte(strings.Repeat("\xa5", int(to-from))), from); err != nil {
		t.Fatal(err)
	}
}

// TestKnownIdsOfADamagedVintageAreRightOrFail damages the vintage of Lozère under a running service and at rest: each of
// 400 known ids is right or a 500, never a 404 or another address, readiness says why, and the file put back heals it.
func TestKnownIdsOfADamagedVintageAreRightOrFail(t *testing.T) {
	t.Parallel()
	file, ids := loadOfficialIDs(t, 100)
	ids = ids[:min(len(ids), 400)]
	svc := startService(t, func(*service.Config) {})
	key := svc.openCustomer(t)
	svc.runCommand(t, "ban import --data "+svc.data+" "+file)
	want := svc.viewAddresses(t, key, ids)
	if len(ids) < 400 || slices.Contains(want, "404") || slices.Contains(want, "500") {
		t.Fatalf("%d ids, and not all are known", len(ids))
	}
	path := svc.currentVintagePath(t)
	whole := mustReadFile(t, path)
	size := int64(len(whole))
	for name, harm := range map[string]func(){
		"bytes in the middle": func() { overwriteBytes(t, path, size/2, size/2+size/10) },
		"bytes at the end":    func() { overwriteBytes(t, path, size-size/10, size) },
		"cut in half":         func() { os.Truncate(path, size/2) },
		"emptied":             func() { os.Truncate(path, 0) },
	} {
		harm()
		waitUntil(t, name+": readiness to say so", func() bool {
			return strings.Contains(svc.readiness(t).parts["addresses"], "lieudit ban import --fresh FILE")
		})
		if bad, failed := countWrongAnswers(svc.viewAddresses(t, key, ids), want); bad != 0 || failed != len(ids) {
			t.Errorf("%s: %d wrong answers, %d of %d failed", name, bad, failed, len(ids))
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, name+": the file put back to be served", func() bool { return svc.readiness(t).parts["addresses"] == "ok" })
		if bad, failed := countWrongAnswers(svc.viewAddresses(t, key, ids), want); bad != 0 || failed != 0 {
			t.Errorf("%s, put back: %d wrong answers, %d failed", name, bad, failed)
		}
	}

	svc.stop()
	overwriteBytes(t, path, size/2, size/2+size/10)
	again := startService(t, func(c *service.Config) { c.Data, c.Demo = svc.data, true })
	if bad, failed := countWrongAnswers(again.viewAddresses(t, key, ids), want); bad != 0 || failed != len(ids) {
		t.Errorf("damaged at rest: %d wrong answers, %d of %d failed", bad, failed, len(ids))
	}
	if code, _, stderr := again.tryCommand(t, "ban import --data "+svc.data+" "+file); code != 1 || !strings.Contains(stderr, "--fresh") {
		t.Errorf("ids carried over from it: exit %d, %s", code, stderr)
	}
	again.runCommand(t, "ban import --fresh --data "+svc.data+" "+file)
	if bad, failed := countWrongAnswers(again.viewAddresses(t, key, ids), want); bad != 0 || failed != 0 {
		t.Errorf("imported anew: %d wrong answers, %d failed", bad, failed)
	}
}

const oneAddressCSV = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.5;44.5\n"

// TestRealAddressesNeverGiveWayToInventedOnes: with the demonstration allowed, nothing that happens to the files of a
// vintage brings it.
func TestRealAddressesNeverGiveWayToInventedOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(t *testing.T, svc *testService, path string)
		word string // of readiness; empty: it is served
	}{
		"the name": {func(t *testing.T, svc *testService, path string) {
			os.Remove(filepath.Join(filepath.Dir(path), "current"))
		}, ""},
		"the file":   {func(t *testing.T, svc *testService, path string) { os.Remove(path) }, "whose file is gone"},
		"the folder": {func(t *testing.T, svc *testService, path string) { os.RemoveAll(filepath.Dir(path)) }, "is gone"},
		"its bytes":  {func(t *testing.T, svc *testService, path string) { os.Truncate(path, 100) }, "is damaged"},
		"the name, for another": {func(t *testing.T, svc *testService, path string) {
			mustWriteFile(t, filepath.Join(filepath.Dir(path), "current"), "2020-01-01-1")
		}, "whose file is gone"},
		"all an older release knows": {func(t *testing.T, svc *testService, path string) {
			os.Remove(filepath.Join(svc.data, "last-vintage"))
			os.RemoveAll(filepath.Join(filepath.Dir(path), "serving"))
			os.Truncate(path, 100)
			os.Remove(filepath.Join(filepath.Dir(path), "current"))
		}, "is damaged"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			svc := startService(t, func(*service.Config) {})
			key := svc.openCustomer(t)
			row := filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
			mustWriteFile(t, row, oneAddressCSV)
			svc.runCommand(t, "ban import --data "+svc.data+" "+row)
			path := svc.currentVintagePath(t)
			svc.stop()
			c.lose(t, svc, path)
			again := startService(t, func(config *service.Config) { config.Data, config.Demo = svc.data, true })
			want := http.StatusInternalServerError
			if c.word == "" {
				want = http.StatusOK
			}
			var a body.Address
			if got := again.getJSON(t, key, "/address/view/48095_a_00003", &a); got != want {
				t.Errorf("a known id: %d, want %d", got, want)
			}
			var version body.Version
			if again.getJSON(t, "", "/version", &version); version.Vintage == vintages.DemoMillesime {
				t.Error("invented addresses are served")
			}
			said := again.readiness(t).parts["addresses"]
			if c.word == "" {
				if said != "ok" {
					t.Errorf("readiness: %s", said)
				}
				return
			}
			if !strings.Contains(said, c.word) || !strings.Contains(said, "lieudit ban import --fresh FILE") {
				t.Errorf("readiness says %q, want %q and the command that mends it", said, c.word)
			}
			again.runCommand(t, "ban import --fresh --data "+svc.data+" "+row)
			if got := again.getJSON(t, key, "/address/view/48095_a_00003", &a); got != http.StatusOK || again.readiness(t).parts["addresses"] != "ok" {
				t.Errorf("mended: %d, %s", got, again.readiness(t).parts["addresses"])
			}
		})
	}
}

// TestImportKilledLeavesTheServedVintage kills imports at any moment: the vintage from before, or the new one, is current
// and whole, and a service that starts then answers from it.
func TestImportKilledLeavesTheServedVintage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := filepath.Join(data, "a.csv.gz")
	program := func(words ...string) *exec.Cmd {
		p := exec.Command(os.Args[0], words...)
		p.Env = append(os.Environ(), asProgramVariable+"=1")
		return p
	}
	if out, err := program("ban", "generate", "--addresses", "3000", "--out", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folder := vintages.FolderIn(data)
	begun := time.Now()
	if out, err := program("ban", "import", "--data", data, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(begun)
	const kills = 12
	for i := range kills {
		p := program("ban", "import", "--data", data, file)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(took*time.Duration(i+1)/kills, func() { p.Process.Kill() })
		p.Wait()
		late.Stop()
		name, err := folder.Current()
		if err != nil {
			t.Fatal(err)
		}
		v, err := folder.Open(name)
		if err != nil {
			t.Fatalf("killed at %d of %d: %v", i+1, kills, err)
		}
		if err := errors.Join(v.Verify(t.Context()), v.Close()); err != nil {
			t.Errorf("killed at %d of %d: %v", i+1, kills, err)
		}
	}
	svc := startService(t, func(c *service.Config) { c.Data, c.Demo = data, true })
	var version body.Version
	if svc.getJSON(t, "", "/version", &version); version.Vintage == "" || version.Vintage == vintages.DemoMillesime {
		t.Errorf("%q is served", version.Vintage)
	}
}

// TestAFileCutShortEndsRequestsAndNotTheProcess cuts the mapped file of a real process under its requests.
func TestAFileCutShortEndsRequestsAndNotTheProcess(t *testing.T) {
	t.Parallel()
	p := startProcessReady(t)
	p.mu.Lock()
	key := regexp.MustCompile(`ld_sk_[0-9A-Za-z]{38}`).FindString(p.output)
	p.mu.Unlock()
	svc := p.testService(t)
	waitUntil(t, "the demonstration to answer", func() bool {
		return svc.getJSON(t, key, "/address/verify?q=1+rue+de+la+mairie+toulouse", &struct{}{}) == http.StatusOK
	})
	if err := os.Truncate(svc.currentVintagePath(t), 100); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/address/verify?q=1+rue+de+la+mairie+toulouse", "/address/autocomplete?q=rue+de+la+mairie", "/address/proximity?lat=43.6&lon=1.44",
		"/address/view/48095", "/locality/search?q=mende", "/locations/search?near=1+rue+de+la+mairie+toulouse",
	} {
		waitUntil(t, path+" to fail", func() bool { return svc.getJSON(t, key, path, &struct{}{}) == http.StatusInternalServerError })
	}
	waitUntil(t, "readiness to say so", func() bool { return strings.Contains(svc.readiness(t).parts["addresses"], "lieudit ban import") })
	if got := svc.getJSON(t, key, "/me", &struct{}{}); got != http.StatusOK {
		t.Errorf("/me: %d, want 200: the rest of the service goes on", got)
	}
	select {
	case <-p.exited:
		t.Fatalf("the process ended: %v", p.ProcessState)
	default:
	}
}
