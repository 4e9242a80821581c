package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/http/connlimit"
)

// openLargeSites opens an account with 200 sites of 16 KiB each, which is a page of 3.2 MB, and returns its key.
func openLargeSites(t *testing.T, svc *testService, id string) (key string) {
	t.Helper()
	svc.runCommand(t, "account open Boutiques --plan STARTER --id "+id)
	key = strings.TrimSpace(svc.runCommand(t, "key issue "+id))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%03d","lat":44.5,"lon":3.5,"proprietes":{"note":"%s"}}`, i, strings.Repeat("x", 16_000))
	}
	if status, got := svc.upload(t, key, shopSyncPath, strings.NewReader(`{"sites":[`+strings.Join(rows, ",")+`]}`), -1); status != 200 {
		t.Fatalf("a sync: %d %s", status, got)
	}
	return key
}

const largeList = "/locations/referentiels/shops/sites?limit=1000"

// requestUnread sends n requests for an answer, each on a connection of its own, of which nothing is read.
func requestUnread(t *testing.T, p *process, n int, key, path string) []net.Conn {
	t.Helper()
	all := make([]net.Conn, n)
	for i := range all {
		c, err := net.DialTimeout("tcp", p.api, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET /services/v1%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", path, key)
		all[i] = c
	}
	return all
}

// anonymousMiB is the memory of the process that no file backs, in MiB.
func (p *process) anonymousMiB(t *testing.T) int {
	t.Helper()
	found := regexp.MustCompile(`RssAnon:\s*(\d+) kB`).FindSubmatch(mustReadFile(t, fmt.Sprintf("/proc/%d/status", p.Process.Pid)))
	if found == nil {
		t.Fatal("the system does not show the memory of the process")
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// readPaced reads an answer of a list at rate bytes a second, and calls meanwhile once a second.
func readPaced(t *testing.T, p *process, key string, rate int64, meanwhile func()) (body []byte) {
	t.Helper()
	c := requestUnread(t, p, 1, key, largeList)[0]
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	for second := time.NewTicker(time.Second); ; <-second.C {
		if _, err = io.CopyN(&text, resp.Body, rate); err != nil {
			second.Stop()
			break
		}
		meanwhile()
	}
	if err != io.EOF {
		t.Errorf("after %d bytes: %v", text.Len(), err)
	}
	return text.Bytes()
}

// TestAnswersThatNobodyReadAreEnded has 300 clients of one account ask for 3.2 MB each and read nothing. One more reads at 70 KiB a
// second, for some 45 s; it gets the whole answer, and so does another account, while the memory of the process stays small.
func TestAnswersThatNobodyReadAreEnded(t *testing.T) {
	t.Parallel()
	p, svc := startAttackedProcess(t, os.Args[0])
	key, other := openLargeSites(t, svc, "deaf"), svc.openAccount(t, "other", "shops")
	want := svc.mustSend(t, key, "GET "+largeList, "")
	const clients = 300
	began := time.Now()
	unread := requestUnread(t, p, clients, key, largeList)
	peak, slowest, ended := 0, time.Duration(0), time.Duration(0)
	got := readPaced(t, p, key, 70<<10, func() {
		asked := time.Now()
		svc.mustSend(t, other, "GET /locations/referentiels", "")
		slowest = max(slowest, time.Since(asked))
		peak = max(peak, p.anonymousMiB(t))
		if ended == 0 && svc.metricValue(t, `lieudit_slow_readers_total{listener="api"}`) == strconv.Itoa(clients) {
			ended = time.Since(began)
		}
	})
	if string(got) != want {
		t.Errorf("the slow reader got %d bytes, want %d", len(got), len(want))
	}
	if ended < connlimit.Window {
		t.Errorf("all %d were ended after %v, want some %v (0: never)", clients, ended, connlimit.Window)
	}
	if peak > 512*memoryFactor {
		t.Errorf("the process had %d MiB of its own", peak)
	}
	t.Logf("%d MiB at most; %d clients ended after %v; others waited %v at most", peak, clients, ended, slowest)
	for i, c := range unread {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if text, err := io.ReadAll(c); err == nil && bytes.HasSuffix(text, []byte("\r\n0\r\n\r\n")) {
			t.Fatalf("client %d got an answer that looks whole, of %d bytes", i, len(text))
		}
	}
	if left := svc.metricValue(t, "lieudit_answer_bytes"); left != "0" {
		t.Errorf("%s bytes are not given back", left)
	}
}
