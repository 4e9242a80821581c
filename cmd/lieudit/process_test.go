package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lieudit/schemas/deadlinetest"
)

// asProgram makes the test binary be the program.
const asProgram = "LIEUDIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is the program as the system runs it.
type process struct {
	*exec.Cmd
	data           string // its folder
	api, area, ops string // where it listens
	gone           chan struct{}

	mu    sync.Mutex
	said  string
	heard chan struct{} // closed at the next line
}

// begin starts a service in a process and a folder of its own and waits until it announces its listeners.
func begin(t *testing.T) *process {
	t.Helper()
	p := start(t, t.TempDir())
	p.await(t, "/locations/search") // the last line of a first start: the demo account is there
	return p
}

// start starts a service on a folder.
func start(t *testing.T, data string) *process {
	t.Helper()
	return launch(t, data, os.Args[0])
}

// launch starts a service on a folder by a command, which is to become the program, with more flags.
func launch(t *testing.T, data string, command ...string) *process {
	t.Helper()
	command = append(command, "serve", "--drain", "1m",
		"--data", data, "--listen", "127.0.0.1:0", "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	p := &process{data: data, gone: make(chan struct{}), heard: make(chan struct{}), Cmd: exec.Command(command[0], command[1:]...)}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = t.Output()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	t.Cleanup(p.kill)
	return p
}

// kill is kill -9.
func (p *process) kill() {
	p.Process.Kill()
	<-p.gone
}

// await waits until the process says a word.
func (p *process) await(t *testing.T, word string) {
	t.Helper()
	for late := time.After(deadlinetest.Limit(deadlinetest.Hang)); ; {
		p.mu.Lock()
		said, more := p.said, p.heard
		p.mu.Unlock()
		if strings.Contains(said, word) {
			return
		}
		select {
		case <-more:
		case <-p.gone:
			t.Fatalf("it ended before it said %q: %v", word, p.ProcessState)
		case <-late:
			t.Fatalf("it did not say %q", word)
		}
	}
}

var announced = regexp.MustCompile(`^\s*(API|customer area|health, metrics)\s+http://([^/\s]+)`)

// listen reads what the process says, to the end.
func (p *process) listen(out io.Reader) {
	defer close(p.gone)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		switch found := announced.FindStringSubmatch(lines.Text()); {
		case found == nil:
		case found[1] == "API":
			p.api = found[2]
		case found[1] == "customer area":
			p.area = found[2]
		default:
			p.ops = found[2]
		}
		p.said += lines.Text() + "\n"
		close(p.heard)
		p.heard = make(chan struct{})
		p.mu.Unlock()
	}
	p.Wait() // how it ended is in its state
}

const lingering = `{"nom":"x","plan":"STARTER"}`

// linger begins a request and, when the program waits for its body, leaves it waiting.
func (p *process) linger(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.area)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	operator := strings.TrimSpace(string(mustRead(t, filepath.Join(p.data, "operator-token"))))
	fmt.Fprintf(conn, "POST /customer-area/v1/accounts HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n", p.area, operator, len(lingering))
	answer := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.Contains(string(answer), "100 Continue") {
		t.Fatalf("the request did not begin: %q, %v", answer, err)
	}
	return conn
}

// interrupt is Ctrl-C.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// closed waits until the process takes no more connections.
func (p *process) closed(t *testing.T) {
	t.Helper()
	within(t, deadlinetest.Hang, "the listener closes", func() bool {
		conn, err := net.Dial("tcp", p.area)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// ended waits for the end and returns how it came.
func (p *process) ended(t *testing.T) syscall.WaitStatus {
	t.Helper()
	select {
	case <-p.gone:
	case <-time.After(deadlinetest.Limit(deadlinetest.Hang)):
		t.Fatal("it did not end")
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

func TestFirstInterruptLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	p := begin(t)
	conn := p.linger(t)
	p.interrupt(t)
	p.closed(t)
	fmt.Fprint(conn, lingering)
	answer, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 201") {
		t.Errorf("the request that was running got %q (%v), want 201", answer, err)
	}
	if got := p.ended(t); got.ExitStatus() != 0 {
		t.Errorf("it ended with %v, want exit code 0", got)
	}
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.linger(t)
	p.interrupt(t)
	p.closed(t)
	p.interrupt(t)
	if got := p.ended(t); got.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want by the signal", got)
	}
}
