package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
)

// asProgramVariable makes the test binary run as the program.
const asProgramVariable = "LIEUDIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a service in a process of its own.
type process struct {
	*exec.Cmd
	data           string // data folder
	api, area, ops string // host and port of the listeners
	exited         chan struct{}

	mu       sync.Mutex
	output   string
	nextLine chan struct{} // closed at the next line
}

// startProcessReady starts a service in a process and a folder of its own and waits for its demo account.
func startProcessReady(t *testing.T) *process {
	t.Helper()
	p := startProcess(t, t.TempDir())
	p.waitForOutput(t, "demo account was opened") // the last line of a first start
	return p
}

// startProcess starts a service on a data folder and does not wait until it answers. The process is killed with the test.
func startProcess(t *testing.T, data string) *process {
	t.Helper()
	return launchProcess(t, data, os.Args[0])
}

// launchProcess starts a service on a data folder by a command that ends up running the program with the arguments that
// are appended to it.
func launchProcess(t *testing.T, data string, command ...string) *process {
	t.Helper()
	command = append(command, "serve", "--drain", "0s",
		"--data", data, "--listen", "127.0.0.1:0", "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	p := &process{data: data, exited: make(chan struct{}), nextLine: make(chan struct{}), Cmd: exec.Command(command[0], command[1:]...)}
	p.Env = append(os.Environ(), asProgramVariable+"=1")
	p.Stderr = t.Output()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go p.readOutput(out)
	t.Cleanup(p.kill)
	return p
}

// testService is a client of the service in the process, once it has announced its listeners and its operator's token.
func (p *process) testService(t *testing.T) *testService {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return &testService{
		data: p.data, api: "http://" + p.api + "/services/v1", area: "http://" + p.area + "/customer-area/v1", ops: "http://" + p.ops,
		operator: strings.TrimSpace(string(mustReadFile(t, filepath.Join(p.data, "operator-token")))),
		client:   &http.Client{Timeout: time.Minute, Transport: &http.Transport{}},
	}
}

// readDemoKey reads the key of the demo account, which the first start wrote to a file: its output is not a terminal.
func (p *process) readDemoKey(t *testing.T) string {
	t.Helper()
	text := strings.TrimSpace(string(mustReadFile(t, filepath.Join(p.data, "demo-key"))))
	if !regexp.MustCompile(`^ld_sk_[0-9A-Za-z]{38}$`).MatchString(text) {
		t.Errorf("the file of the demo key holds %q, want the key alone", text)
	}
	return text
}

// kill ends the process as kill -9 does, and waits for its end.
func (p *process) kill() {
	p.Process.Kill()
	<-p.exited
}

// waitForOutput waits until the process has printed a text.
func (p *process) waitForOutput(t *testing.T, word string) {
	t.Helper()
	for timeout := time.After(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; {
		p.mu.Lock()
		output, more := p.output, p.nextLine
		p.mu.Unlock()
		if strings.Contains(output, word) {
			return
		}
		select {
		case <-more:
		case <-p.exited:
			t.Fatalf("it ended before it printed %q: %v", word, p.ProcessState)
		case <-timeout:
			t.Fatalf("it did not print %q", word)
		}
	}
}

var listenerPattern = regexp.MustCompile(`^\s*(API|customer area|health, metrics)\s+http://([^/\s]+)`)

// readOutput reads what the process prints until it ends.
func (p *process) readOutput(out io.Reader) {
	defer close(p.exited)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		switch found := listenerPattern.FindStringSubmatch(lines.Text()); {
		case found == nil:
		case found[1] == "API":
			p.api = found[2]
		case found[1] == "customer area":
			p.area = found[2]
		default:
			p.ops = found[2]
		}
		p.output += lines.Text() + "\n"
		close(p.nextLine)
		p.nextLine = make(chan struct{})
		p.mu.Unlock()
	}
	p.Wait() // ProcessState then says how it ended
}

const pendingBody = `{"nom":"x","plan":"STARTER"}`

// beginRequest sends the headers of a request and waits until the service reads the body: then the request is under way.
func (p *process) beginRequest(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.area)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	operator := strings.TrimSpace(string(mustReadFile(t, filepath.Join(p.data, "operator-token"))))
	fmt.Fprintf(conn, "POST /customer-area/v1/accounts HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n", p.area, operator, len(pendingBody))
	answer := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.Contains(string(answer), "100 Continue") {
		t.Fatalf("the request did not begin: %q, %v", answer, err)
	}
	return conn
}

// interrupt sends the signal that Ctrl-C sends.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// waitUntilClosed waits until the process accepts no more connections.
func (p *process) waitUntilClosed(t *testing.T) {
	t.Helper()
	waitUntil(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", p.area)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// waitForExit waits for the end of the process and returns its status.
func (p *process) waitForExit(t *testing.T) syscall.WaitStatus {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(deadlinetest.Scale(deadlinetest.DefaultLimit)):
		t.Fatal("it did not end")
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

func TestFirstInterruptLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	p := startProcessReady(t)
	conn := p.beginRequest(t)
	p.interrupt(t)
	p.waitUntilClosed(t)
	fmt.Fprint(conn, pendingBody)
	answer, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 201") {
		t.Errorf("the request that was running got %q (%v), want 201", answer, err)
	}
	if got := p.waitForExit(t); got.ExitStatus() != 0 {
		t.Errorf("it ended with %v, want exit code 0", got)
	}
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := startProcessReady(t)
	p.beginRequest(t)
	p.interrupt(t)
	p.waitUntilClosed(t)
	p.interrupt(t)
	if got := p.waitForExit(t); got.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want by the signal", got)
	}
}

// TestAKilledSyncHappensWhollyOrNotAtAll kills the service while it handles syncs that are staged, and reads the sites
// after each restart.
func TestAKilledSyncHappensWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	const sites, cuts = 1500, 5
	data := t.TempDir()
	p := startProcess(t, data)
	p.waitForOutput(t, "demo account was opened")
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
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond)))) // a random moment is the point
		p.kill()
		status := <-answered
		p = startProcess(t, data)
		p.waitForOutput(t, "  API ")
		svc = p.testService(t)
		waitUntil(t, "the service is ready again", func() bool { return svc.isReady(t) })
		svc.mustSend(t, key, "PATCH /locations/referentiels/r", `{"nom":"same"}`) // its answer waits for the read models
		got := svc.countSitesByNumber(t, key)
		if len(got) != 1 || got[held] != sites && got[n] != sites || status == http.StatusOK && got[n] != sites {
			t.Fatalf("cut %d, answered %d after generation %d: sites by generation %v", n, status, held, got)
		}
		if got[n] > 0 {
			held, kept = n, kept+1
		}
	}
	t.Logf("%d of %d syncs had happened when the service was killed", kept, cuts)
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

// countSitesByNumber counts the active sites by the number in their name.
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
