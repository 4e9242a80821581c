package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
)

// wideRows are the rows of n sites, each of some 1,400 bytes.
func wideRows(n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%05d","nom":"Boutique %d","lat":44.5,"lon":3.5,"proprietes":{"note":"%s"}}`, i, i, strings.Repeat("x", 1300))
	}
	return strings.Join(rows, ",")
}

// endlessReader is a body that has no end.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestBodiesOf15MBAreWrittenAndLargerOnesThan64MiBAreNot(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	key := svc.openAccount(t, "chain", "shops")
	const sync = "/locations/referentiels/shops/sites:sync"
	rows := wideRows(11_000)
	for _, c := range []struct {
		what    string
		content io.Reader
		length  int64
		status  int
		want    string
	}{
		{"15 MB", strings.NewReader(`{"sites":[` + rows + `]}`), -1, 200, `"crees":11000,`},
		{"one site too many", strings.NewReader(`{"sites":[` + rows + `,{"external_id":"x"}]}`), -1, 409, `"sites_actifs":11000,"capacite":10000,"plafond":11000`},
		{"broken off", strings.NewReader(`{"sites":[` + rows[:len(rows)/2]), -1, 400, `Request too short or invalid`},
		{"200 MB, as it says", io.LimitReader(endlessReader{}, 200<<20), 200 << 20, 413, `Request body too large`},
		{"endless", endlessReader{}, -1, 413, `Request body too large`},
		{"unchanged", strings.NewReader(`{"sites":[` + rows + `]}`), -1, 200, `"inchanges":11000,`},
	} {
		if status, got := svc.upload(t, key, sync, c.content, c.length); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", c.what, status, got)
		}
	}
	if got := svc.mustSend(t, key, "GET /me", ""); !strings.Contains(got, `"utilise":5,`) { // neither 400 nor 413 count
		t.Errorf("counted otherwise: %s", got)
	}
}

// startAttackedProcess starts a service in a process of its own by a command, and returns it with a client
// that waits two minutes for an answer and uses each connection once.
func startAttackedProcess(t *testing.T, command ...string) (*process, *testService) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("file descriptors and memory are read as Linux shows them")
	}
	p := launchProcess(t, t.TempDir(), command...)
	p.waitForOutput(t, "demo account was opened")
	svc := p.testService(t)
	svc.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	return p, svc
}

const shopSyncPath = "/locations/referentiels/shops/sites:sync"

// bulkySync is a sync of about n bytes, in rows of the largest size.
func bulkySync(bytes int, rest string) string {
	var b strings.Builder
	b.WriteString(`{"sites":[`)
	for i := 0; b.Len() < bytes-17_000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"external_id":"s%d","lat":44.5,"lon":3.5,"proprietes":{"note":"%s"}}`, i, strings.Repeat("x", 16_000))
	}
	b.WriteString("]" + rest + "}")
	return b.String()
}

// unreadBodies are connections that never finish their request.
type unreadBodies struct {
	opened atomic.Int64
	end    func() // closes all connections
}

// startUnreadBodies has clients open each n connections to the addresses in turn. Half of the connections announce a
// body that never comes, half stop within the headers.
func startUnreadBodies(t *testing.T, clients, each int, addresses ...string) *unreadBodies {
	t.Helper()
	u, leave := &unreadBodies{}, make(chan struct{})
	var open sync.WaitGroup
	for n := range clients {
		open.Go(func() {
			for i := range each {
				conn, err := net.DialTimeout("tcp", addresses[n%len(addresses)], time.Minute)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				defer conn.Close()
				if u.opened.Add(1); i%2 == 0 {
					fmt.Fprint(conn, "POST /services/v1/me HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
				} else {
					fmt.Fprint(conn, "POST /services/v1/me HTTP/1.1\r\nHost:")
				}
			}
			<-leave
		})
	}
	u.end = sync.OnceFunc(func() {
		close(leave)
		open.Wait()
	})
	t.Cleanup(u.end)
	return u
}

// TestTenThousandIdleConnectionsDoNotStopTheService gives the process 400 file descriptors and opens 10,000 connections
// that never finish a request. Meanwhile probes and customers are answered, and the log opens its next segment.
func TestTenThousandIdleConnectionsDoNotStopTheService(t *testing.T) {
	p, svc := startAttackedProcess(t, "sh", "-c", `ulimit -n 400 && exec "$0" "$@"`, os.Args[0])
	key := svc.openAccount(t, "chain", "shops")
	const clients, each = 8, 1250
	attack := startUnreadBodies(t, clients, each, p.api, p.area)
	probed := 0
	for attack.opened.Load() < clients*each && !t.Failed() {
		if resp, err := svc.client.Get(svc.ops + "/healthz"); err != nil || resp.StatusCode != 200 {
			t.Fatalf("health: %v, %v", resp, err)
		}
		probed++
	}
	if status, got := svc.upload(t, key, shopSyncPath, strings.NewReader(bulkySync(48<<20, "")), -1); status != 200 {
		t.Errorf("a sync: %d %s", status, got)
	}
	attack.end()
	segments, err := filepath.Glob(filepath.Join(p.data, "log", "core", "*.log"))
	if err != nil || len(segments) < 2 {
		t.Errorf("the log has the segments %q, %v; want a second one", segments, err)
	}
	if resp, err := svc.client.Get(svc.ops + "/readyz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("readiness: %v, %v", resp, err)
	}
	t.Logf("health was asked for %d times; connections taken away: %s", probed, svc.metricValue(t, `lieudit_connections_evicted_total{listener="api"}`))
}

// peakMemoryMiB is the peak of the process's resident memory in MiB.
func (p *process) peakMemoryMiB(t *testing.T) int {
	t.Helper()
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(mustReadFile(t, fmt.Sprintf("/proc/%d/status", p.Process.Pid)))
	if found == nil {
		t.Fatal("the system does not show the memory of the process")
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestBodiesOfManyClientsStayWithinTheirBudget sends twelve bodies of 64 MiB at once to a service with a budget of 128 MiB.
// A body takes some 2.5 times its length while it is decoded and checked, and a quarter of that in garbage.
func TestBodiesOfManyClientsStayWithinTheirBudget(t *testing.T) {
	t.Setenv("LIEUDIT_BODY_BUDGET", "128")
	p, svc := startAttackedProcess(t, os.Args[0])
	keys := []string{svc.openAccount(t, "a", "shops"), svc.openAccount(t, "b", "shops"), svc.openAccount(t, "c", "shops")}
	text := bulkySync(64<<20, `,"dry_run":true`)
	var clients sync.WaitGroup
	var served, overloaded atomic.Int64
	before := p.peakMemoryMiB(t)
	for n := range 12 {
		clients.Go(func() {
			switch status, got := svc.upload(t, keys[n%3], shopSyncPath, strings.NewReader(text), int64(len(text))); {
			case status == 200:
				served.Add(1)
			case status == 500 && strings.Contains(got, "Service overloaded"):
				overloaded.Add(1)
			default:
				t.Errorf("got %d %s", status, got)
			}
		})
	}
	clients.Wait()
	const most = 4 * 128 * memoryFactor
	if took := p.peakMemoryMiB(t) - before; took > most {
		t.Errorf("the bodies took %d MiB, want at most %d", took, most)
	} else {
		t.Logf("the bodies took %d MiB; %d were served, %d were refused", took, served.Load(), overloaded.Load())
	}
	if served.Load() == 0 {
		t.Error("none was served")
	}
	if left := svc.metricValue(t, "lieudit_body_bytes"); left != "0" {
		t.Errorf("%s bytes are not given back", left)
	}
}
