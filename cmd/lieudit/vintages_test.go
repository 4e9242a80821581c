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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/address/officialtest"
	"lieudit/schemas/body"
)

// openCustomer opens an account and returns a secret key.
func (svc *testService) openCustomer(t *testing.T) string {
	t.Helper()
	name := "customer-" + svc.uniqueName()
	svc.runCommand(t, "account open Mende --plan BUSINESS --id "+name)
	return strings.TrimSpace(svc.runCommand(t, "key issue "+name))
}

func TestImportIsServedWithoutDroppingARequest(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(t *testing.T) func(*service.Config){
		"embedded": func(*testing.T) func(*service.Config) { return func(*service.Config) {} },
		"servers": func(t *testing.T) func(*service.Config) {
			return withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			importUnderLoad(t, startService(t, configure(t)))
		})
	}
}

// importUnderLoad imports vintages in turn while clients send requests: every request is served, and each import returns when its
// vintage is served.
func importUnderLoad(t *testing.T, svc *testService) {
	t.Helper()
	key := svc.openCustomer(t)
	var files []string
	for seed := range 2 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("a%d.csv.gz", seed)))
		svc.runCommand(t, fmt.Sprintf("ban generate --addresses 4000 --seed %d --out %s", seed, files[seed]))
	}
	svc.runCommand(t, "ban import --data "+svc.data+" "+files[0])
	var requests atomic.Int64
	done := make(chan struct{})
	var clients sync.WaitGroup
	for _, path := range []string{
		"/address/verify?q=1+rue+de+la+mairie+paris", "/address/autocomplete?q=rue+de", "/address/proximity?lat=48.85&lon=2.35&radius=10000", "/locality/search?q=paris",
	} {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := svc.statusOf(t, key, "GET "+path, ""); got != http.StatusOK && got != http.StatusServiceUnavailable { // 503: a busy machine has no time to check keys
					t.Errorf("%s: %d while vintages change", path, got)
				}
				requests.Add(1)
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
	clients.Wait()
	if requests.Load() < 20 {
		t.Errorf("only %d requests were sent meanwhile", requests.Load())
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

func TestARefusedImportKeepsTheServedVintageAndSaysWhy(t *testing.T) {
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

// currentVintagePath is the file of the current vintage.
func (svc *testService) currentVintagePath(t *testing.T) string {
	t.Helper()
	folder := vintages.FolderIn(svc.data)
	name, err := folder.Current()
	if err != nil || name == "" {
		t.Fatalf("no current vintage: %v", err)
	}
	return folder.Path(name)
}

// loadOfficialIDs returns the path of an official file and every n-th id in it.
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

// viewAddresses returns for each id the id_ban of its address, or the status when that is not 200.
func (svc *testService) viewAddresses(t *testing.T, key string, ids []string) []string {
	t.Helper()
	got := make([]string, len(ids))
	for i, id := range ids {
		for {
			var a body.Address
			status := svc.getJSON(t, key, "/address/view/"+url.PathEscape(id), &a)
			if status == http.StatusServiceUnavailable { // a busy machine has no time to check keys
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

// TestKnownIdsOfADamagedVintageAreRightOrFail damages the vintage of Lozère under a running service and while it is
// stopped. Each of 400 known ids is right or a 500, never a 404 or another address; readiness says why, and the file put
// back repairs it.
func TestKnownIdsOfADamagedVintageAreRightOrFail(t *testing.T) {
	t.Parallel()
	file, ids := loadOfficialIDs(t, 100)
	ids = ids[:min(len(ids), 400)]
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, "ban import --data "+svc.data+" "+file)
	known := knownAddresses{svc.openCustomer(t), ids, nil}
	known.want = svc.viewAddresses(t, known.key, ids)
	if len(ids) < 400 || slices.Contains(known.want, "404") || slices.Contains(known.want, "500") {
		t.Fatalf("%d ids, and not all are known", len(ids))
	}
	path := svc.currentVintagePath(t)
	whole := mustReadFile(t, path)
	size := int64(len(whole))
	for name, damage := range map[string]func(){
		"bytes in the middle": func() { overwriteBytes(t, path, size/2, size/2+size/10) },
		"bytes at the end":    func() { overwriteBytes(t, path, size-size/10, size) },
		"cut in half":         func() { os.Truncate(path, size/2) },
		"emptied":             func() { os.Truncate(path, 0) },
	} {
		damage()
		waitUntil(t, name+": readiness says how to repair it", func() bool {
			return strings.Contains(svc.readiness(t).parts["addresses"], "lieudit ban import --fresh FILE")
		})
		known.checkAnswers(t, svc, name, len(ids))
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, name+": the file put back is served", func() bool { return svc.readiness(t).parts["addresses"] == "ok" })
		known.checkAnswers(t, svc, name+", put back", 0)
	}

	svc.stop()
	overwriteBytes(t, path, size/2, size/2+size/10)
	again := startService(t, func(c *service.Config) { c.Data, c.Demo = svc.data, true })
	known.checkAnswers(t, again, "damaged while stopped", len(ids))
	if code, _, stderr := again.tryCommand(t, "ban import --data "+svc.data+" "+file); code != 1 || !strings.Contains(stderr, "--fresh") {
		t.Errorf("ids carried over from it: exit %d, %s", code, stderr)
	}
	again.runCommand(t, "ban import --fresh --data "+svc.data+" "+file)
	known.checkAnswers(t, again, "imported anew", 0)
}

// knownAddresses are ids of an official file with the id_ban that each leads to.
type knownAddresses struct {
	key       string
	ids, want []string
}

// checkAnswers checks that every answer is right or a 500, and that this many are 500.
func (k knownAddresses) checkAnswers(t *testing.T, svc *testService, what string, wantFailed int) {
	t.Helper()
	wrong, failed := 0, 0
	for i, got := range svc.viewAddresses(t, k.key, k.ids) {
		switch got {
		case k.want[i]:
		case "500":
			failed++
		default:
			wrong++
		}
	}
	if wrong != 0 || failed != wantFailed {
		t.Errorf("%s: %d wrong answers, %d of %d failed, want %d", what, wrong, failed, len(k.ids), wantFailed)
	}
}

// oneAddressCSV is a file of one address, oneAddressPath its path in the API.
const oneAddressCSV = "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.5;44.5\n"

const oneAddressPath = "/address/view/48095_a_00003"

// TestRealAddressesAreNeverReplacedByInventedOnes lets services make invented addresses, and damages the files of a real
// vintage while they are stopped. Package vintages tests row by row what else can be lost, and that each loss is named.
func TestRealAddressesAreNeverReplacedByInventedOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose   func(svc *testService, path string)
		reason string // in readiness
	}{
		"the folder": {func(_ *testService, path string) { os.RemoveAll(filepath.Dir(path)) }, "is gone"},
		"its bytes":  {func(_ *testService, path string) { os.Truncate(path, 100) }, "is damaged"},
		"all an older release knows": {func(svc *testService, path string) {
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
			c.lose(svc, path)
			again := startService(t, func(config *service.Config) { config.Data, config.Demo = svc.data, true })
			again.checkLostVintage(t, key, c.reason)
			again.runCommand(t, "ban import --fresh --data "+svc.data+" "+row)
			if got := again.statusOf(t, key, "GET "+oneAddressPath, ""); got != http.StatusOK || again.readiness(t).parts["addresses"] != "ok" {
				t.Errorf("repaired: %d, %s", got, again.readiness(t).parts["addresses"])
			}
		})
	}
}

// checkLostVintage checks that a known address is a 500, that no invented ones are served, and that readiness says why and
// how to repair it.
func (svc *testService) checkLostVintage(t *testing.T, key, reason string) {
	t.Helper()
	if got := svc.statusOf(t, key, "GET "+oneAddressPath, ""); got != http.StatusInternalServerError {
		t.Errorf("a known id: %d, want 500", got)
	}
	var version body.Version
	if svc.getJSON(t, "", "/version", &version); version.Vintage == vintages.DemoMillesime {
		t.Error("invented addresses are served")
	}
	said := svc.readiness(t).parts["addresses"]
	if !strings.Contains(said, reason) || !strings.Contains(said, "lieudit ban import --fresh FILE") {
		t.Errorf("readiness says %q, want %q and the command that repairs it", said, reason)
	}
}

// TestAKilledImportLeavesAnUndamagedVintage kills imports at many moments. The vintage from before, or the new one, is
// current and undamaged each time, and a service that starts then answers from it.
func TestAKilledImportLeavesAnUndamagedVintage(t *testing.T) {
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
		kill := time.AfterFunc(took*time.Duration(i+1)/kills, func() { p.Process.Kill() })
		p.Wait()
		kill.Stop()
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

// TestATruncatedVintageFailsRequestsAndNotTheProcess truncates the mapped file of a real process under its requests.
func TestATruncatedVintageFailsRequestsAndNotTheProcess(t *testing.T) {
	t.Parallel()
	p := startProcessReady(t)
	key := p.readDemoKey(t)
	svc := p.testService(t)
	waitUntil(t, "the invented addresses are served", func() bool {
		return svc.getJSON(t, key, "/address/verify?q=1+rue+de+la+mairie+toulouse", &struct{}{}) == http.StatusOK
	})
	if err := os.Truncate(svc.currentVintagePath(t), 100); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/address/verify?q=1+rue+de+la+mairie+toulouse", "/address/autocomplete?q=rue+de+la+mairie", "/address/proximity?lat=43.6&lon=1.44",
		"/address/view/48095", "/locality/search?q=mende", "/locations/search?near=1+rue+de+la+mairie+toulouse",
	} {
		waitUntil(t, path+" fails", func() bool { return svc.getJSON(t, key, path, &struct{}{}) == http.StatusInternalServerError })
	}
	waitUntil(t, "readiness says how to repair it", func() bool { return strings.Contains(svc.readiness(t).parts["addresses"], "lieudit ban import") })
	if got := svc.statusOfMe(t, key); got != http.StatusOK {
		t.Errorf("/me: %d, want 200: the rest of the service goes on", got)
	}
	select {
	case <-p.exited:
		t.Fatalf("the process ended: %v", p.ProcessState)
	default:
	}
}
