package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/service"
	"lieudit/queries/route"
)

// routePath is the way between two positions, where there need not be a road.
const routePath = "/route/compute?origin=3.5,44.5&destination=3.51,44.51&geometry=none"

// generateMaps writes maps of invented roads and returns their files.
func (svc *testService) generateMaps(t *testing.T, count int) (files []string) {
	t.Helper()
	for seed := range count {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.osm.pbf", seed)))
		svc.runCommand(t, fmt.Sprintf("roads generate --segments 2000 --seed %d --out %s", seed, files[seed]))
	}
	return files
}

func TestRoadsAreImportedWithoutDroppingARequest(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	key := svc.openCustomer(t)
	if said := svc.readiness(t).parts["routes"]; !strings.Contains(said, "lieudit roads import") {
		t.Errorf("readiness says %q, want the command that loads a road network", said)
	}
	if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusInternalServerError {
		t.Errorf("a route without a network: %d, want 500", got)
	}
	files := svc.generateMaps(t, 2)
	svc.runCommand(t, "roads import --data "+svc.data+" "+files[0])
	var requests atomic.Int64
	done := make(chan struct{})
	var client sync.WaitGroup
	client.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusOK && got != http.StatusServiceUnavailable { // 503: a busy machine has no time to check keys
				t.Errorf("%d while networks change", got)
			}
			requests.Add(1)
		}
	})
	for i := range 4 {
		said := svc.runCommand(t, "roads import --data "+svc.data+" "+files[i%2])
		if !strings.Contains(said, "The running service answers from it") {
			t.Errorf("the import says %q", said)
		}
	}
	close(done)
	client.Wait()
	if requests.Load() == 0 || svc.readiness(t).parts["routes"] != "ok" {
		t.Errorf("%d requests; readiness says %q", requests.Load(), svc.readiness(t).parts["routes"])
	}
}

func TestADamagedNetworkIsWithdrawnUntilAnImportMendsIt(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	key, files := svc.openCustomer(t), svc.generateMaps(t, 1)
	svc.runCommand(t, "roads import --data "+svc.data+" "+files[0])
	folder := networks.FolderIn(svc.data)
	name, err := folder.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(folder.Path(name), 10_000); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "readiness names the damaged network", func() bool {
		said := svc.readiness(t).parts["routes"]
		return strings.Contains(said, name) && strings.Contains(said, "damaged") && strings.Contains(said, "lieudit roads import")
	})
	if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusInternalServerError {
		t.Errorf("a route on a damaged network: %d, want 500", got)
	}
	svc.runCommand(t, "roads import --data "+svc.data+" "+files[0])
	if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusOK || svc.readiness(t).parts["routes"] != "ok" {
		t.Errorf("imported again: %d, readiness says %q", got, svc.readiness(t).parts["routes"])
	}
}

// TestTheDemoFindsRoutesBetweenInventedAddresses takes the request from the text at start. Its invented roads are not served
// next to real addresses.
func TestTheDemoFindsRoutesBetweenInventedAddresses(t *testing.T) {
	t.Parallel()
	said := &lockedBuffer{}
	svc := startService(t, func(c *service.Config) { c.Demo, c.IsTerminal, c.Out = true, true, io.MultiWriter(c.Out, said) })
	waitUntil(t, "the demo is printed", func() bool { return strings.Contains(said.String(), "/route/compute") })
	text := said.String()
	if !strings.Contains(text, "SYNTHETIC roads") {
		t.Errorf("the text at start does not say that the roads are invented: %s", text)
	}
	key := regexp.MustCompile(`LIEUDIT_KEY=(\S+)`).FindStringSubmatch(text)[1]
	path := regexp.MustCompile(`/services/v1(/route/compute\S+)'`).FindStringSubmatch(text)[1]
	var found struct {
		Status   string
		Distance float64
		Legs     []struct{ Steps []struct{ Voie string } }
	}
	svc.getJSON(t, key, path, &found)
	if found.Status != "OK" || found.Distance < 100 || len(found.Legs) != 1 || found.Legs[0].Steps[0].Voie != "Rue de la Mairie" {
		t.Errorf("%s finds %+v", path, found)
	}
	svc.waitForRoadsStatus(t, "by the running service")
	file := filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	mustWriteFile(t, file, "id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n48095_a_00003;3;;Rue Basse;48000;48095;Mende;3.5;44.5\n")
	svc.runCommand(t, "ban import --data "+svc.data+" "+file)
	waitUntil(t, "the invented roads are withdrawn", func() bool {
		return strings.Contains(svc.readiness(t).parts["routes"], "the invented roads lead to no real address")
	})
	if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusInternalServerError {
		t.Errorf("a route on invented roads between real addresses: %d, want 500", got)
	}
	svc.waitForRoadsStatus(t, "no: the running service answers from none")
}

// waitForRoadsStatus waits until roads status says this of the current network. The service announces every 250 ms what it answers from.
func (svc *testService) waitForRoadsStatus(t *testing.T, served string) {
	t.Helper()
	waitUntil(t, "the status says: "+served, func() bool {
		return regexp.MustCompile(`(?m)^served +` + regexp.QuoteMeta(served) + `$`).MatchString(svc.runCommand(t, "roads status --data "+svc.data))
	})
}

func TestNoRoadsAreInventedWhereThereWereReal(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(c *service.Config) {
		c.Demo = true
		mustWriteFile(t, filepath.Join(c.Data, "last-network"), "2026-01-02-7")
	})
	if said := svc.readiness(t).parts["routes"]; !strings.Contains(said, "2026-01-02-7 is gone") {
		t.Errorf("readiness says %q, want the network that is lost", said)
	}
	if left, err := filepath.Glob(filepath.Join(svc.data, "networks", "*.network")); err != nil || len(left) != 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

// TestAServerOfRoutesThatIsDownIsNamed has the own network next to a server that is not there. The own network does not answer in its
// place, since it may have other roads.
func TestAServerOfRoutesThatIsDownIsNamed(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(c *service.Config) {
		c.Demo = true
		c.Router = service.RouterSetting{Engine: service.OSRMRouter, Servers: map[route.Mode]string{route.Car: "http://127.0.0.1:1"}}
	})
	key := svc.openCustomer(t)
	if left, err := filepath.Glob(filepath.Join(svc.data, "networks", "*.network")); err != nil || len(left) != 0 {
		t.Errorf("roads are invented beside a server: %v, %v", left, err)
	}
	svc.runCommand(t, "roads import --data "+svc.data+" "+svc.generateMaps(t, 1)[0])
	if said := svc.readiness(t).parts["routes"]; !strings.Contains(said, "routing") {
		t.Errorf("readiness says %q, want that the server does not answer", said)
	}
	if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusInternalServerError {
		t.Errorf("a route: %d, want 500", got)
	}
}

// TestAServerOfRoutesThatAnswersNothingUsefulIsNamed has a server that says Ok to everything and finds nothing, so that only the
// questions of customers fail.
func TestAServerOfRoutesThatAnswersNothingUsefulIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"code":"Ok","routes":[]}`) }))
	defer server.Close()
	logged := &lockedBuffer{}
	svc := startService(t, func(c *service.Config) {
		c.Log = slog.New(slog.NewTextHandler(logged, nil))
		c.Router = service.RouterSetting{Engine: service.OSRMRouter, Servers: map[route.Mode]string{route.Car: server.URL}}
	})
	key := svc.openCustomer(t)
	for range 2 {
		if got := svc.statusOf(t, key, "GET "+routePath, ""); got != http.StatusInternalServerError {
			t.Errorf("a route: %d, want 500", got)
		}
	}
	if said := svc.readiness(t).parts["routes"]; !strings.Contains(said, "osrm, car: the routing server answered") {
		t.Errorf("readiness says %q, want the failure of the last question", said)
	}
	if got := strings.Count(logged.String(), "the routing server fails"); got != 1 {
		t.Errorf("%d lines in the log, want one for the outage", got)
	}
}

// lockedBuffer is a buffer that one goroutine writes to and another reads.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
