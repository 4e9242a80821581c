package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/body"
)

// writeOneAddress writes a file of the address base with one address, the street of which has a name of its own.
func writeOneAddress(t *testing.T, street string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	mustWriteFile(t, file, strings.ReplaceAll(oneAddressCSV, "Rue Basse", street))
	return file
}

// servedStreet is the street of the one address, "" where it is not found.
func (svc *testService) servedStreet(t *testing.T, key string) string {
	t.Helper()
	var a body.Address
	if svc.getJSON(t, key, oneAddressPath, &a) != http.StatusOK {
		return ""
	}
	return a.Street
}

// printedImport is what ban import --json prints of the instances.
type printedImport struct {
	State     string `json:"etat"`
	Reason    string `json:"raison"`
	Served    bool   `json:"servi"`
	Instances []struct {
		URL       string `json:"url"`
		SHA256    string `json:"sha256"`
		IsCurrent bool   `json:"a_jour"`
		Problem   string `json:"probleme"`
	} `json:"instances"`
}

// importAt imports a file of addresses at an instance, with success.
func importAt(t *testing.T, svc *testService, file string) (printed printedImport) {
	t.Helper()
	if err := json.Unmarshal([]byte(svc.runCommand(t, fmt.Sprintf("ban import --json --data %s %s", svc.data, file))), &printed); err != nil {
		t.Fatal(err)
	}
	return printed
}

// startFleet starts instances on one node and one Postgres, and returns a key that all of them know.
func startFleet(t *testing.T, count int, change func(*service.Config)) (fleet []*testService, key string) {
	t.Helper()
	configure := withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))
	both := func(c *service.Config) { configure(c); change(c) }
	fleet = []*testService{startService(t, both)}
	for len(fleet) < count {
		fleet = append(fleet, startSecondInstance(t, fleet[0], both))
	}
	key = fleet[0].openCustomer(t)
	for _, svc := range fleet {
		waitUntil(t, "the key is known", func() bool { return svc.statusOf(t, key, "GET /me", "") == http.StatusOK })
	}
	return fleet, key
}

func TestAnImportAtOneInstanceIsServedByAllWhenItReturns(t *testing.T) {
	t.Parallel()
	fleet, key := startFleet(t, 3, func(*service.Config) {})
	for turn, street := range []string{"Rue Basse", "Rue Haute", "Rue Neuve"} {
		printed := importAt(t, fleet[turn%2], writeOneAddress(t, street))
		if printed.State != "publie" || len(printed.Instances) != 3 {
			t.Errorf("%s: %+v; want it released to 3 instances", street, printed)
		}
		for i, svc := range fleet {
			if got := svc.servedStreet(t, key); got != street {
				t.Errorf("instance %d answers %q, want %q", i, got, street)
			}
		}
	}
}

// answerThroughProxy is an answer about the one address.
type answerThroughProxy struct {
	asked  time.Time
	status int
	street string
}

// askThroughProxy asks for the one address until ctx ends, each client on connections that it keeps, and returns all answers.
func askThroughProxy(ctx context.Context, t *testing.T, f *frontend, key string, clients int) (answers []answerThroughProxy) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				a := f.askOnce(key)
				mu.Lock()
				answers = append(answers, a)
				mu.Unlock()
				<-pace.C
			}
		})
	}
	running.Wait()
	return answers
}

// askOnce asks for the one address.
func (f *frontend) askOnce(key string) (a answerThroughProxy) {
	a.asked = time.Now()
	req, err := http.NewRequest(http.MethodGet, f.url+"/services/v1"+oneAddressPath, nil)
	if err != nil {
		return a
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := f.client.Do(req)
	if err != nil {
		return a
	}
	defer resp.Body.Close()
	var found body.Address
	if json.NewDecoder(resp.Body).Decode(&found) != nil {
		return a
	}
	a.status, a.street = resp.StatusCode, found.Street
	return a
}

// TestNoRequestThroughNginxIsAnsweredFromTheVintageBefore imports at one of two instances, and then at the other, under load at both.
// No request fails, and none that is sent after the command returned is answered from the vintage before.
func TestNoRequestThroughNginxIsAnsweredFromTheVintageBefore(t *testing.T) {
	t.Parallel()
	nginx := proxyPrograms()[0]
	nginx.find(t)
	c := startCluster(t)
	svc := c.admin(t)
	importAt(t, svc, writeOneAddress(t, "Rue Ancienne"))
	f := nginx.startFrontend(t, c.upstream)
	key := svc.openCustomer(t)
	waitUntil(t, "both know the key", func() bool {
		for range 4 {
			if f.askOnce(key).status != http.StatusOK {
				return false
			}
		}
		return true
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var answers []answerThroughProxy
	var asking sync.WaitGroup
	asking.Go(func() { answers = askThroughProxy(ctx, t, f, key, 4) })
	returned := map[string]time.Time{} // when the import of a street returned
	streets := []string{"Rue Ancienne", "Rue Basse", "Rue Haute"}
	for turn, in := range c.instances {
		at := &testService{data: in.data}
		importAt(t, at, writeOneAddress(t, streets[turn+1]))
		returned[streets[turn+1]] = time.Now()
		time.Sleep(500 * time.Millisecond) // of requests
	}
	stop()
	asking.Wait()
	seen := map[string]int{}
	for _, a := range answers {
		if a.status != http.StatusOK {
			t.Errorf("a request failed with %d", a.status)
		}
		seen[a.street]++
		for i, street := range streets {
			if next := i + 1; next < len(streets) && a.street == street && a.asked.After(returned[streets[next]]) {
				t.Errorf("%s was answered %v after the import of %s had returned", street, a.asked.Sub(returned[streets[next]]), streets[next])
			}
		}
	}
	for _, street := range streets {
		if seen[street] == 0 {
			t.Errorf("no answer from %s among %v", street, seen)
		}
	}
	t.Logf("%d answers: %v", len(answers), seen)
}

func TestARoadNetworkIsReleasedToAllInstances(t *testing.T) {
	t.Parallel()
	fleet, _ := startFleet(t, 2, func(*service.Config) {})
	for turn, at := range fleet {
		file := filepath.Join(t.TempDir(), "roads.osm.pbf")
		at.runCommand(t, fmt.Sprintf("roads generate --segments 1500 --seed %d --out %s", turn+1, file))
		at.runCommand(t, fmt.Sprintf("roads import --date 2026-11-0%d --data %s %s", turn+1, at.data, file))
		for i, svc := range fleet {
			status, answer := svc.sendToArea(t, svc.operator, "GET /networks", "")
			if want := fmt.Sprintf("2026-11-0%d", turn+1); status != http.StatusOK || !strings.Contains(answer, want) {
				t.Errorf("instance %d serves %s, want the network of %s", i, answer, want)
			}
		}
	}
}

func TestStatusShowsEachInstanceAndServeGoesBack(t *testing.T) {
	t.Parallel()
	fleet, key := startFleet(t, 2, func(*service.Config) {})
	importAt(t, fleet[0], writeOneAddress(t, "Rue Basse"))
	var before struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal([]byte(fleet[0].runCommand(t, "ban status --json --sha256 --data "+fleet[0].data)), &before); err != nil {
		t.Fatal(err)
	}
	importAt(t, fleet[0], writeOneAddress(t, "Rue Haute"))
	out := fleet[1].runCommand(t, "ban serve --data "+fleet[1].data+" "+before.SHA256[:12])
	if !strings.Contains(out, "All 2 instances answer from it.") {
		t.Errorf("serve prints %q", out)
	}
	for i, svc := range fleet {
		if got := svc.servedStreet(t, key); got != "Rue Basse" {
			t.Errorf("instance %d answers %q", i, got)
		}
		waitUntil(t, "status shows both", func() bool {
			status := svc.runCommand(t, "ban status --data "+svc.data)
			return strings.Count(status, before.SHA256[:12]) == 2 && strings.Contains(status, "to all instances") && strings.Contains(status, "this one")
		})
	}
	code, _, stderr := fleet[0].tryCommand(t, "ban serve --data "+fleet[0].data+" 00ff")
	if code != 1 || !strings.Contains(stderr, before.SHA256) {
		t.Errorf("a sum that is not there: exit %d, %q", code, stderr)
	}
}

// One instance joins the other, which has imported before, and one has imported while no service ran on its folder.
func TestAnInstanceAnswersOnlyFromWhatTheOthersServe(t *testing.T) {
	t.Parallel()
	configure := withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))
	demo := func(c *service.Config) { configure(c); c.Demo = true }
	first := startService(t, demo)
	key := first.openCustomer(t)
	importAt(t, first, writeOneAddress(t, "Rue Basse"))
	second := startSecondInstance(t, first, demo)
	if got := second.servedStreet(t, key); got != "Rue Basse" {
		t.Errorf("the first answer of an instance that joins is %q", got)
	}
	data := t.TempDir()
	first.runCommand(t, "ban import --data "+data+" "+writeOneAddress(t, "Rue Haute"))
	third := startSecondInstance(t, first, func(c *service.Config) { demo(c); c.Data = data })
	for i, svc := range []*testService{third, first, second} {
		waitUntil(t, fmt.Sprintf("the import without a service reaches instance %d", i), func() bool { return svc.servedStreet(t, key) == "Rue Haute" })
	}
}

// An instance that cannot take a release over is named by the command, which fails, and by readiness.
func TestAnInstanceThatCannotFetchIsNamed(t *testing.T) {
	t.Parallel()
	var unreachable service.Config
	fleet, key := startFleet(t, 2, func(c *service.Config) {
		if unreachable.Data == "" { // the first, whose imports others cannot fetch
			unreachable = *c
			c.PeerURL = "http://127.0.0.1:1"
		}
	})
	code, out, stderr := fleet[0].tryCommand(t, "ban import --data "+fleet[0].data+" "+writeOneAddress(t, "Rue Basse"))
	if code != 1 || !strings.Contains(out, "The running service answers from it.") || !strings.Contains(stderr, fleet[1].area[:len(fleet[1].area)-len("/customer-area/v1")]) || !strings.Contains(stderr, "could not be fetched") {
		t.Errorf("exit %d, %q, %q; want the other instance named", code, out, stderr)
	}
	if got := fleet[0].servedStreet(t, key); got != "Rue Basse" {
		t.Errorf("the instance of the import answers %q", got)
	}
	if said := fleet[1].readiness(t).parts["releases"]; !strings.Contains(said, "could not be fetched") || !fleet[1].isReady(t) {
		t.Errorf("readiness says %q", said)
	}
}

// A killed instance keeps an import no longer than it takes to find that nothing answers at its address.
func TestAKilledInstanceIsNoReasonToFail(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	svc := c.admin(t)
	importAt(t, svc, writeOneAddress(t, "Rue Basse"))
	c.instances[1].process.kill()
	if printed := importAt(t, svc, writeOneAddress(t, "Rue Haute")); printed.State != "publie" || len(printed.Instances) != 1 {
		t.Errorf("%+v; want it released to the one that runs", printed)
	}
	key := svc.openCustomer(t)
	c.start(t, c.instances[1])
	again := &testService{api: "http://" + c.instances[1].host + ":" + c.apiPort + "/services/v1", client: svc.client}
	waitUntil(t, "the key is known", func() bool { return again.statusOf(t, key, "GET /me", "") == http.StatusOK })
	if got := again.servedStreet(t, key); got != "Rue Haute" {
		t.Errorf("started again it answers %q", got)
	}
}
