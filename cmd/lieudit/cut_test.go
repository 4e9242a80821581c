package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestASyncCutByKillIsThereWholeOrNotAtAll kills the service while it takes syncs that are staged, and looks at what is
// there when it is back.
func TestASyncCutByKillIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const sites, cuts = 1500, 5
	data := t.TempDir()
	p := startProcess(t, data)
	p.waitForOutput(t, "/locations/search")
	svc := p.testService(t)
	svc.runCommand(t, "account open Boutiques --plan BUSINESS --id cut")
	key := strings.TrimSpace(svc.runCommand(t, "key issue cut --label test"))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"r"}`)
	const sync = "POST /locations/referentiels/r/sites:sync"
	svc.mustSend(t, key, sync, numberedSync(0, sites))
	random, held, kept := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), 0, 0
	for n := 1; n <= cuts; n++ {
		answered := make(chan int, 1)
		go func(svc *testService) { // without an answer the status is 0
			status, _, _ := svc.do(t.Context(), request{target: sync, key: key, body: strings.NewReader(numberedSync(n, sites))})
			answered <- status
		}(svc)
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond)))) // when it is cut is the question
		p.kill()
		status := <-answered
		p = startProcess(t, data)
		p.waitForOutput(t, "health, metrics")
		svc = p.testService(t)
		waitUntil(t, "the service is ready again", func() bool { return svc.isReady(t) })
		svc.mustSend(t, key, "PATCH /locations/referentiels/r", `{"nom":"same"}`) // its answer waits for the tables
		got := svc.countSitesByNumber(t, key)
		if len(got) != 1 || got[held] != sites && got[n] != sites || status == http.StatusOK && got[n] != sites {
			t.Fatalf("cut %d, answered %d after generation %d: sites by generation %v", n, status, held, got)
		}
		if got[n] > 0 {
			held, kept = n, kept+1
		}
	}
	t.Logf("%d of %d syncs had happened when they were cut", kept, cuts)
}

// numberedSync is a sync of sites that all bear the number n in their name.
func numberedSync(n, sites int) string {
	type row struct {
		ID   string  `json:"external_id"`
		Name string  `json:"nom"`
		Lat  float64 `json:"lat"`
		Lon  float64 `json:"lon"`
	}
	rows := make([]row, sites)
	for i := range rows {
		rows[i] = row{fmt.Sprint("s", i), fmt.Sprint("G", n), 44, 3}
	}
	text, _ := json.Marshal(map[string]any{"sites": rows})
	return string(text)
}

// countSitesByNumber counts the active sites by their number.
func (svc *testService) countSitesByNumber(t *testing.T, key string) map[int]int {
	t.Helper()
	export := svc.mustSend(t, key, "GET /locations/referentiels/r/sites:export?format=ndjson", "")
	found := map[int]int{}
	for line := range strings.Lines(export) {
		var s struct {
			Name string `json:"nom"`
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		var n int
		fmt.Sscanf(s.Name, "G%d", &n)
		found[n]++
	}
	return found
}
