package main

import (
	"fmt"
	"io"
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
	"lieudit/eventstore/node"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table/tabletest"
)

// ready is what readiness says.
func (st *stage) ready(t *testing.T) string {
	t.Helper()
	resp, err := st.client.Get(st.ops + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// restoration is how an older copy of the log comes back under a service.
type restoration struct {
	served  bool // by a node that has EventStoreDB's ways with marks, and the read models are in Postgres
	running bool // while the service runs
	longer  bool // another instance has written on: the marks that were lost are inside records
}

func restorations() map[string]restoration {
	all := map[string]restoration{}
	for _, longer := range []bool{false, true} {
		length := map[bool]string{false: "shorter", true: "longer"}[longer]
		all["embedded, stopped, "+length] = restoration{longer: longer}
		all["servers, stopped, "+length] = restoration{served: true, longer: longer}
		all["servers, running, "+length] = restoration{served: true, running: true, longer: longer}
	}
	return all
}

func TestWhatARestoredLogDoesNotHoldIsNotShown(t *testing.T) {
	t.Parallel()
	for name, r := range restorations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRestored(t, r).play(t)
		})
	}
}

// restored is a service whose log is to be restored.
type restored struct {
	restoration
	*stage
	node   *server // nil: the log is in the data folder
	logs   string  // the folder of all that is to be restored
	change func(*service.Config)
}

func newRestored(t *testing.T, r restoration) *restored {
	t.Helper()
	data := t.TempDir()
	all := &restored{restoration: r, logs: filepath.Join(data, "log"), change: func(c *service.Config) { c.Data = data }}
	if r.served {
		all.node = startNodeWith(t, node.Faults{InsideRecord: node.FailedInside})
		all.logs = all.node.dir
		onServers := onServers(all.node, tabletest.Postgres(t))
		all.change = func(c *service.Config) { c.Data = data; onServers(c) }
	}
	return all
}

// play: of 150 sites and a key that only the lost log held nothing is shown, and nobody waits for what cannot come.
func (r *restored) play(t *testing.T) {
	r.stage = raise(t, r.change)
	r.run(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(r.run(t, `key issue paul --label kept`))
	const sites = "/locations/referentiels/shops/sites"
	r.send(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	r.send(t, key, "POST "+sites+":sync", oddSites(50))
	older := filepath.Join(t.TempDir(), "older")
	r.off(t, func() { copyFolder(t, r.logs, older) })
	r.send(t, key, "POST "+sites+":sync", oddSites(150))
	lost := strings.TrimSpace(r.run(t, `key issue paul --label lost`))
	r.send(t, key, "GET /locations/search?q=paul", "") // its index is in memory now

	r.off(t, func() {
		restore(t, older, r.logs)
		if r.longer {
			r.writeOn(t)
		}
	})
	within(t, deadlinetest.Hang, "readiness says what to do", func() bool {
		return strings.Contains(r.ready(t), "projections rebuild --all")
	})
	within(t, deadlinetest.Hang, "a key that only the lost log held is refused", func() bool {
		return r.me(t, lost) == http.StatusUnauthorized && r.me(t, key) == http.StatusOK
	})
	for _, path := range []string{sites, "/locations/search?q=paul"} {
		if got := r.answered(t, path, key); got != http.StatusInternalServerError {
			t.Errorf("%s: got %d, want 500", path, got)
		}
	}
	r.writes(t, key, sites)
	r.run(t, "projections rebuild --all")
	r.await(t, "the rebuilt read models to answer", func() bool {
		return !strings.Contains(r.ready(t), "not the one") && r.status(t, r.ops+"/readyz") == http.StatusOK
	})
	if got := strings.Count(r.send(t, key, "GET "+sites+"?limit=1000", ""), `"external_id"`); got != 50+newSites {
		t.Errorf("%d sites are shown, want the 50 that the log holds and the %d written since", got, newSites)
	}
	r.await(t, "the search to have loaded the rebuilt sites", func() bool { return r.answered(t, "/locations/search?q=paul", key) == http.StatusOK })
	if got := r.run(t, `key list paul`); !strings.Contains(got, "kept") || strings.Contains(got, "lost") {
		t.Errorf("the list is %q, want the kept key and not the lost one", got)
	}
}

const newSites = 3 // sites, while the read models are not asked

// writes writes sites. None waits for read models that cannot move: at least one is answered long before that wait
// would end, however busy the machine.
func (r *restored) writes(t *testing.T, key, sites string) {
	t.Helper()
	fastest := time.Hour
	for i := range newSites {
		began := time.Now()
		r.send(t, key, fmt.Sprintf("PUT %s/new%d", sites, i), `{"nom":"Chez Paul"}`)
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 1500*time.Millisecond {
		t.Errorf("the fastest write took %v", fastest)
	}
}

// off does something with the log while nobody has it open: the service is stopped, or the node alone.
func (r *restored) off(t *testing.T, do func()) {
	t.Helper()
	if !r.running {
		r.stop()
	}
	if r.served {
		r.node.stop()
	}
	do()
	if r.served {
		r.node.start(t)
	}
	if !r.running {
		r.stage = raiseUnready(t, r.change)
	}
	r.await(t, "the log to be there", func() bool {
		_, parts := r.readiness(t) // "connections" is another part
		return !strings.Contains(parts["log"]+parts["usage log"], "connect") && r.status(t, r.ops+"/healthz") == http.StatusOK
	})
}

// writeOn lets another instance write what nobody here reads.
func (r *restored) writeOn(t *testing.T) {
	t.Helper()
	for _, dir := range []string{r.logs, filepath.Join(r.logs, "core"), filepath.Join(r.logs, "usage")} {
		if segments, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(segments) == 0 {
			continue
		}
		j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			event := eventstore.Proposed{ID: uuid.New(), Type: "filler.filled.v1", Data: []byte(`{"x":"` + strings.Repeat("x", 2000) + `"}`), Metadata: []byte(`{"actor":"system","end":true}`)}
			if _, err := j.Append(t.Context(), "filler-1", eventstore.Any, []eventstore.Proposed{event}); err != nil {
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

func restore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, from, to)
}
