package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node/faulttest"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// restoration is a way in which an older copy of the log is restored under a service.
type restoration struct {
	isOnServers bool // the log is on a node that treats checkpoints as EventStoreDB does, and the read models in Postgres
	isRunning   bool // the service runs meanwhile
	isLonger    bool // another instance has appended since: the lost checkpoints now point into records
}

func restorations() map[string]restoration {
	all := map[string]restoration{}
	for _, longer := range []bool{false, true} {
		length := map[bool]string{false: "shorter", true: "longer"}[longer]
		all["embedded, stopped, "+length] = restoration{isLonger: longer}
		all["servers, stopped, "+length] = restoration{isOnServers: true, isLonger: longer}
		all["servers, running, "+length] = restoration{isOnServers: true, isRunning: true, isLonger: longer}
	}
	return all
}

func TestNothingIsShownThatARestoredLogLacks(t *testing.T) {
	t.Parallel()
	for name, r := range restorations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRestoredService(t, r).checkRestoration(t)
		})
	}
}

// restoredService is a service whose log a test restores.
type restoredService struct {
	restoration
	*testService
	node      *testNode // nil: the log is in the data folder
	logFolder string    // the folder that is restored
	change    func(*service.Config)
}

func newRestoredService(t *testing.T, r restoration) *restoredService {
	t.Helper()
	data := t.TempDir()
	all := &restoredService{restoration: r, logFolder: filepath.Join(data, "log"), change: func(c *service.Config) { c.Data = data }}
	if r.isOnServers {
		all.node = startNodeWithFaults(t, faulttest.Faults{InsideRecord: faulttest.InsideRecordFailed})
		all.logFolder = all.node.dir
		configureServers := withServers(all.node, sqldbtest.NewPostgresDatabase(t))
		all.change = func(c *service.Config) { c.Data = data; configureServers(c) }
	}
	return all
}

// checkRestoration writes 100 sites and a key after the copy of the log. Once that copy is restored, nothing of them is
// shown, and no request waits for read models that cannot advance.
func (r *restoredService) checkRestoration(t *testing.T) {
	r.testService = startService(t, r.change)
	r.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(r.runCommand(t, `key issue paul --label kept`))
	const sites = "/locations/referentiels/shops/sites"
	r.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	r.mustSend(t, key, "POST "+sites+":sync", sitesWithOddText(50))
	older := filepath.Join(t.TempDir(), "older")
	r.withLogOffline(t, func() { copyFolder(t, r.logFolder, older) })
	r.mustSend(t, key, "POST "+sites+":sync", sitesWithOddText(150))
	lost := strings.TrimSpace(r.runCommand(t, `key issue paul --label lost`))
	r.mustSend(t, key, "GET /locations/search?q=paul", "") // loads the account's index into memory

	r.withLogOffline(t, func() {
		restoreFolder(t, older, r.logFolder)
		if r.isLonger {
			r.appendElsewhere(t)
		}
	})
	waitUntil(t, "readiness says what to do", func() bool {
		return strings.Contains(r.readiness(t).text, "projections rebuild --all")
	})
	waitUntil(t, "a key that only the lost log held is refused", func() bool {
		return r.statusOfMe(t, lost) == http.StatusUnauthorized && r.statusOfMe(t, key) == http.StatusOK
	})
	for _, path := range []string{sites, "/locations/search?q=paul"} {
		if got := r.statusOf(t, key, "GET "+path, ""); got != http.StatusInternalServerError {
			t.Errorf("%s: got %d, want 500", path, got)
		}
	}
	r.checkWritesDoNotWait(t, key, sites)
	r.runCommand(t, "projections rebuild --all")
	waitUntil(t, "the rebuilt read models answer", func() bool {
		return !strings.Contains(r.readiness(t).text, "not the one") && r.isReady(t)
	})
	if got := strings.Count(r.mustSend(t, key, "GET "+sites+"?limit=1000", ""), `"external_id"`); got != 50+newSiteCount {
		t.Errorf("%d sites are shown, want the 50 that the log holds and the %d written since", got, newSiteCount)
	}
	waitUntil(t, "the search has loaded the rebuilt sites", func() bool {
		return r.statusOf(t, key, "GET /locations/search?q=paul", "") == http.StatusOK
	})
	if got := r.runCommand(t, `key list paul`); !strings.Contains(got, "kept") || strings.Contains(got, "lost") {
		t.Errorf("the list is %q, want the kept key and not the lost one", got)
	}
}

// newSiteCount is how many sites are written while the read models are stopped.
const newSiteCount = 3

// checkWritesDoNotWait writes sites. None waits for read models that cannot advance: at least one is answered long before
// that wait would end, however busy the machine is.
func (r *restoredService) checkWritesDoNotWait(t *testing.T, key, sites string) {
	t.Helper()
	fastest := time.Hour
	for i := range newSiteCount {
		began := time.Now()
		r.mustSend(t, key, fmt.Sprintf("PUT %s/new%d", sites, i), `{"nom":"Chez Paul"}`)
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 1500*time.Millisecond {
		t.Errorf("the fastest write took %v", fastest)
	}
}

// withLogOffline calls do while nobody has the log open: the service is stopped, or only the node.
func (r *restoredService) withLogOffline(t *testing.T, do func()) {
	t.Helper()
	if !r.isRunning {
		r.stop()
	}
	if r.isOnServers {
		r.node.stop()
	}
	do()
	if r.isOnServers {
		r.node.start(t)
	}
	if !r.isRunning {
		r.testService = startServiceUnready(t, r.change)
	}
	waitUntil(t, "the log is there", func() bool {
		parts := r.readiness(t).parts // "connections" is another part
		return !strings.Contains(parts["log"]+parts["usage log"], "connect") && r.statusOf(t, "", "GET "+r.ops+"/healthz", "") == http.StatusOK
	})
}

// appendElsewhere appends events that no part of this service reads, as another instance would.
func (r *restoredService) appendElsewhere(t *testing.T) {
	t.Helper()
	for _, dir := range []string{r.logFolder, filepath.Join(r.logFolder, "core"), filepath.Join(r.logFolder, "usage")} {
		if segments, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(segments) == 0 {
			continue
		}
		j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			event := eventstore.ProposedEvent{ID: uuid.New(), Type: "filler.filled.v1", Data: []byte(`{"x":"` + strings.Repeat("x", 2000) + `"}`), Metadata: []byte(`{"actor":"system","end":true}`)}
			if _, err := j.Append(t.Context(), "filler-1", eventstore.Any, []eventstore.ProposedEvent{event}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func restoreFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, from, to)
}
