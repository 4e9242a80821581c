package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// TestARequestShowsOnTheOpenPage: whoever looks at the usage of an account sees a request within about a second.
func TestARequestShowsOnTheOpenPage(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open "Mairie de Mende" --plan STARTER --id mende`)
	key := strings.TrimSpace(svc.runCommand(t, "key issue mende --label vitrine"))
	totals := svc.visit(t, "customer", "mende").follow(t, "/comptes/mende/usage/direct", regexp.MustCompile(`Restantes</dt><dd>([0-9\x{202f}]+)`))
	if first := <-totals; first != 100_000 {
		t.Fatalf("the page shows %d left before anything is counted", first)
	}
	best := time.Hour
	for n := range int64(6) {
		if n > 0 && best <= time.Second {
			return // a busy machine is slower now and then
		}
		begun := time.Now()
		if status := svc.statusOfMe(t, key); status != http.StatusOK {
			t.Fatalf("GET /me: %d", status)
		}
		for left := range totals {
			if left == 100_000-n-1 {
				break
			}
		}
		best = min(best, time.Since(begun))
		t.Logf("request %d shows after %v", n+1, time.Since(begun))
	}
	t.Errorf("the best of six requests shows after %v, want at most a second", best)
}

// follow reads the stream of a page until the test ends, and returns the number that the first group of pattern finds in its fragments.
func (v visitor) follow(t *testing.T, path string, pattern *regexp.Regexp) <-chan int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(v.svc.area, "/customer-area/v1")+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = v.svc.pagesHost(t)
	r.Header.Set("Cookie", v.cookie)
	r.Header.Set("Accept-Language", "fr")
	resp, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan int64, 100), make(chan struct{})
	t.Cleanup(func() { cancel(); resp.Body.Close(); <-ended })
	go func() {
		defer close(ended)
		defer close(found)
		for lines := bufio.NewReader(resp.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			var fragment struct{ HTML string }
			if text, ok := strings.CutPrefix(line, "data: "); !ok || json.Unmarshal([]byte(text), &fragment) != nil {
				continue
			}
			if m := pattern.FindStringSubmatch(fragment.HTML); m != nil {
				n, _ := strconv.ParseInt(strings.ReplaceAll(m[1], "\u202f", ""), 10, 64) // digits
				found <- n
			}
		}
	}()
	return found
}

// TestThePageOfALargePeriodIsQuick: 31 days, 20 keys and 8 endpoints, from request to the whole answer.
func TestThePageOfALargePeriodIsQuick(t *testing.T) { // not in parallel: it measures
	svc := startService(t, func(*service.Config) {})
	svc.fillUsage(t, "mende", 20, 8)
	v := svc.visit(t, "customer", "mende")
	for _, path := range []string{"/comptes/mende/usage", "/comptes/mende/usage?par=endpoint&ordre=requetes"} {
		v.checkListBudget(t, path)
	}
}

// fillUsage opens an account with keys, and writes lines of each key and endpoint on each day of its period into the read model.
func (svc *testService) fillUsage(t *testing.T, id string, keys, endpoints int) {
	t.Helper()
	svc.mustSendToArea(t, "POST /accounts", fmt.Sprintf(`{"id":%q,"nom":"Mairie de Mende","plan":"BUSINESS"}`, id))
	var lines []table.UsageLine
	first := plan.DateOf(time.Now())
	for k := range keys {
		var key body.Key
		if err := json.Unmarshal([]byte(svc.mustSendToArea(t, "POST /accounts/"+id+"/keys", fmt.Sprintf(`{"kind":"secret","label":"site de la commune %d"}`, k))), &key); err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			svc.statusOfMe(t, key.Token) // opens the period
		}
		for e := range endpoints {
			for d := first.Start(); d.Before(plan.PeriodAt(first, first.Start()).End()); d = d.AddDate(0, 0, 1) {
				lines = append(lines, table.UsageLine{First: first.String(), Account: id, Contract: id, Day: plan.DateOf(d).String(), Key: key.ID, Endpoint: fmt.Sprintf("GET /address/question-%d", e), Requests: int64(1 + (k+e)%9)})
			}
		}
	}
	waitUntil(t, "the request is counted", func() bool { return strings.Contains(svc.runCommand(t, "usage show "+id+" --json"), `"total":1`) })
	db, err := sqldb.Open(t.Context(), filepath.Join(svc.data, "readmodels", "usage-v4-g1.db"), sqldb.Options{Schema: "usage_v4_g1"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.UsageLines, lines) }); err != nil {
		t.Fatal(err)
	}
}
