package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
)

// readEventTypes returns the types of events in the streams of a log whose names begin with a prefix, by stream.
func readEventTypes(t *testing.T, log eventstore.Store, prefix string) map[string][]string {
	t.Helper()
	types := map[string][]string{}
	category, _, _ := strings.Cut(prefix, "-")
	for s, err := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{category}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.EventAppeared && strings.HasPrefix(s.Event.Stream, prefix) {
			types[s.Event.Stream] = append(types[s.Event.Stream], s.Event.Type)
		}
	}
	return types
}

// reconcile demands that the log and the read model agree, and returns how many requests they have.
func (svc *testService) reconcile(t *testing.T) int64 {
	t.Helper()
	status, answer := svc.sendToArea(t, svc.operator, "POST /usage:reconcile", "{}")
	var found body.Reconciliation
	if err := json.Unmarshal([]byte(answer), &found); err != nil || status != http.StatusOK || len(found.Differences) > 0 {
		t.Fatalf("reconcile: %d %v %s", status, err, answer)
	}
	return found.Requests
}

// A data folder of the program before stays in use: the period that is open in it continues in its own stream, and new periods are counted
// in a stream that contracts share.
func TestADataFolderOfTheProgramBeforeGoesOver(t *testing.T) {
	t.Parallel()
	svc, keys := startOnPackedFolder(t, "testdata/formats/4495c499.tar.zst")
	before := svc.reconcile(t)
	svc.mustSendToArea(t, "POST /accounts", `{"id":"florac","nom":"Mairie de Florac","plan":"STARTER"}`)
	var key body.Key
	if err := json.Unmarshal([]byte(svc.mustSendToArea(t, "POST /accounts/florac/keys", `{"kind":"secret","label":"site"}`)), &key); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, token := range []string{keys.Secret, key.Token} {
			waitUntil(t, "the key is known", func() bool { return svc.statusOfMe(t, token) == http.StatusOK })
		}
	}
	if counted := svc.reconcile(t) - before; counted != 10 {
		t.Errorf("%d requests were counted, want 10", counted)
	}
	svc.stop()
	log, err := journal.Open(filepath.Join(svc.data, "log", "usage"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	tick, counted := event.UsageTicked{}.EventType(), event.UsageCountedIn{}.EventType()
	for stream, types := range readEventTypes(t, log, "usage-mende-") {
		if types[0] != (event.UsageOpened{}).EventType() || types[len(types)-1] != tick {
			t.Errorf("%s: %v", stream, types)
		}
	}
	for stream, types := range readEventTypes(t, log, "usage-florac-") {
		if !slices.Equal(types, []string{counted}) {
			t.Errorf("%s: %v", stream, types)
		}
	}
	if shared := readEventTypes(t, log, "usage-20"); len(shared) != 2 { // the month and its one shard
		t.Errorf("shared streams: %v", shared)
	}
}

// Clients use up quotas at two instances on a node while an upgrade is finished. No answer is 5xx, each quota is exact, and the log agrees
// with what is shown.
func TestALogOnANodeGoesOverWhileItIsUsed(t *testing.T) {
	t.Parallel()
	const accounts, quota = 6, 150
	n := startNode(t)
	writeAsOlderProgram(t, n.journal)
	svc := startService(t, withNode(n))
	other := startSecondInstance(t, svc, withNode(n))
	var tokens []string
	for i := range accounts {
		id := fmt.Sprint("commune-", i)
		svc.mustSendToArea(t, "POST /accounts", fmt.Sprintf(`{"id":%q,"nom":"Commune","plan":"STARTER","quota":%d}`, id, quota))
		var key body.Key
		if err := json.Unmarshal([]byte(svc.mustSendToArea(t, "POST /accounts/"+id+"/keys", `{"kind":"secret","label":"site"}`)), &key); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, key.Token)
	}
	for _, at := range []*testService{svc, other} {
		waitUntil(t, "the last key is known", func() bool { return at.areKeysChecked(t, tokens[accounts-1]) })
	}
	var served [accounts]atomic.Int64
	count := func(at *testService, i int) {
		switch status := at.statusOfMe(t, tokens[i]); status {
		case http.StatusOK:
			served[i].Add(1)
		case http.StatusTooManyRequests:
		default:
			t.Errorf("GET /me: %d", status)
		}
	}
	for i := range accounts / 2 { // these periods are open before
		count(svc, i)
	}
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() {
			for k := range accounts * quota / 3 {
				at := []*testService{svc, other}[(c+k)%2]
				if i := (c + k) % accounts; k < quota/2 {
					count(at, i%(accounts/2))
				} else {
					count(at, i)
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	svc.runCommand(t, "upgrade finish --yes")
	clients.Wait()
	total := int64(0)
	for i := range accounts {
		for range 2 {
			for served[i].Load() < quota && svc.statusOfMe(t, tokens[i]) == http.StatusOK {
				served[i].Add(1)
			}
		}
		if got := served[i].Load(); got != quota {
			t.Errorf("commune-%d: %d requests of %d were served", i, got, quota)
		}
		total += served[i].Load()
	}
	if counted := svc.reconcile(t); counted != total {
		t.Errorf("%d requests are counted, %d were served", counted, total)
	}
	shared := 0
	for _, types := range readEventTypes(t, n.journal, "usage-commune-") {
		if types[0] == (event.UsageCountedIn{}).EventType() {
			shared++
		}
	}
	if shared == 0 || shared == accounts {
		t.Errorf("%d of %d periods are in a shared stream", shared, accounts)
	}
}
