package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/schemas/deadlinetest"
)

// TestASyncCutByKillIsThereWholeOrNotAtAll kills the service while it takes syncs that are staged, and looks at what is
// there when it is back.
func TestASyncCutByKillIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const sites, cuts = 1500, 5
	data := t.TempDir()
	p := startProcess(t, data)
	p.waitForOutput(t, "/locations/search")
	area := &testService{area: "http://" + p.area + "/customer-area/v1", operator: strings.TrimSpace(string(mustReadFile(t, filepath.Join(data, "operator-token"))))}
	area.runCommand(t, "account open Boutiques --plan BUSINESS --id cut")
	key := strings.TrimSpace(area.runCommand(t, "key issue cut --label test"))
	if status, text := p.mustSend(t, key, "POST", "/locations/referentiels", []byte(`{"code":"r"}`)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	const sync = "/locations/referentiels/r/sites:sync"
	if status, text := p.mustSend(t, key, "POST", sync, numberedSync(0, sites)); status != http.StatusOK {
		t.Fatalf("%d %.300s", status, text)
	}
	random, held, kept := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), 0, 0
	for n := 1; n <= cuts; n++ {
		answered := make(chan int, 1)
		go func() { answered <- p.statusOrZero(key, sync, numberedSync(n, sites)) }()
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond)))) // when it is cut is the question
		p.kill()
		status := <-answered
		p = startProcess(t, data)
		p.waitForOutput(t, "health, metrics")
		waitWithin(t, deadlinetest.DefaultLimit, "the service is ready again", func() bool {
			resp, err := http.Get("http://" + p.ops + "/readyz")
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
		p.mustSend(t, key, "PATCH", "/locations/referentiels/r", []byte(`{"nom":"same"}`)) // its answer waits for the tables
		got := p.countSitesByNumber(t, key)
		if len(got) != 1 || got[held] != sites && got[n] != sites || status == http.StatusOK && got[n] != sites {
			t.Fatalf("cut %d, answered %d after generation %d: sites by generation %v", n, status, held, got)
		}
		if got[n] > 0 {
			held, kept = n, kept+1
		}
	}
	t.Logf("%d of %d syncs had happened when they were cut", kept, cuts)
}

// numberedSync is a sync of which every site bears the number.
func numberedSync(n, sites int) []byte {
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
	return text
}

// countSitesByNumber counts the active sites by their number.
func (p *process) countSitesByNumber(t *testing.T, key string) map[int]int {
	t.Helper()
	status, text := p.mustSend(t, key, "GET", "/locations/referentiels/r/sites:export?format=ndjson", nil)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	found := map[int]int{}
	for line := range bytes.Lines(text) {
		var s struct {
			Name string `json:"nom"`
		}
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		var n int
		fmt.Sscanf(s.Name, "G%d", &n)
		found[n]++
	}
	return found
}

// mustSend sends a request to the API and reads the answer.
func (p *process) mustSend(t *testing.T, key, method, path string, body []byte) (int, []byte) {
	t.Helper()
	resp, err := p.sendRequest(key, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}

// statusOrZero is the status of a request that may be cut: 0 then.
func (p *process) statusOrZero(key, path string, body []byte) int {
	resp, err := p.sendRequest(key, "POST", path, body)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func (p *process) sendRequest(key, method, path string, body []byte) (*http.Response, error) {
	p.mu.Lock()
	api := p.api
	p.mu.Unlock()
	req, err := http.NewRequest(method, "http://"+api+"/services/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return http.DefaultClient.Do(req)
}
