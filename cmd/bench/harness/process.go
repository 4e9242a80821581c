// Package harness runs this very program in processes of its own: nodes, instances of the service, whatever a benchmark
// needs, on free ports of the loopback and in folders of its own. Its constraint: no process outlives the one that started
// it, however that ends. Each reads its standard input, a pipe from the one that started it, and ends when the pipe does.
//
//	NewWorkDir ──> StartNode ──> StartInstance ──> Instance.WaitReady ──> AdminClient     or StartService for all of it
//	                   └──────────────┴──> StartProcess ──> Process: WaitForLine, Kill, Stop
package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The commands of this program that run in processes: lieudit with the arguments after the word, and an empty net/http
// handler. Both end when their standard input does.
const (
	LieuditCommand      = "lieudit"
	EmptyHandlerCommand = "empty-handler"
)

// WorkDir is the folder of the processes of one benchmark. Their sockets are in another one, because the name of a socket
// has to be short.
type WorkDir struct {
	dir, socketDir string
	maxDescriptors int // that a process may have open; 0: as many as this one
}

// NewWorkDir makes the folders, that of the processes within dir.
func NewWorkDir(dir string) (w WorkDir, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return w, err
	}
	if w.dir, err = os.MkdirTemp(dir, "lieudit-bench-"); err != nil {
		return w, err
	}
	if w.socketDir, err = os.MkdirTemp("", "lieudit-"); err != nil {
		return w, errors.Join(err, os.RemoveAll(w.dir))
	}
	return w, nil
}

// WithMaxDescriptors is the same folder for processes that may have no more than n files and connections open.
func (w WorkDir) WithMaxDescriptors(n int) WorkDir {
	w.maxDescriptors = n
	return w
}

// Path is the data folder of a process.
func (w WorkDir) Path(name string) string { return filepath.Join(w.dir, name) }

// SocketPath is the socket of a process.
func (w WorkDir) SocketPath(name string) string { return filepath.Join(w.socketDir, name) }

// Remove removes both folders.
func (w WorkDir) Remove() error {
	return errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.socketDir))
}

// Process is this program, running one command.
type Process struct {
	cmd        *exec.Cmd
	stdin      io.Closer
	stderrFile string
	exited     chan struct{}

	mu      sync.Mutex
	lines   []string
	newLine chan struct{} // closed at the next line
}

// processTimeout is how long a process may take to start, to become ready, or to end.
const processTimeout = time.Minute

// StartProcess runs a command of the program. Its standard error goes to a file of the work folder under its name.
func StartProcess(w WorkDir, name string, command ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{stderrFile: w.Path(name + ".log"), exited: make(chan struct{}), newLine: make(chan struct{})}
	stderr, err := os.OpenFile(p.stderrFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd = w.command(self, command...)
	p.cmd.Stderr = stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go p.readOutput(out)
	return p, nil
}

// command is the program with its arguments. Where descriptors are limited, a shell lowers the hard limit, which the program
// cannot raise again, and becomes the program.
func (w WorkDir) command(executable string, args ...string) *exec.Cmd {
	if w.maxDescriptors == 0 {
		return exec.Command(executable, args...)
	}
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, w.maxDescriptors), executable}
	return exec.Command("/bin/sh", append(limited, args...)...)
}

// readOutput collects the lines of the standard output, to their end, and then waits for the process.
func (p *Process) readOutput(out io.Reader) {
	defer close(p.exited)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.newLine)
		p.newLine = make(chan struct{})
		p.mu.Unlock()
	}
	p.cmd.Wait() // how it ended is in its state
}

// WaitForLine waits for a line of the standard output that begins with prefix, and returns its last word.
func (p *Process) WaitForLine(ctx context.Context, prefix string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	for {
		p.mu.Lock()
		lines, more := p.lines, p.newLine
		p.mu.Unlock()
		for _, line := range lines {
			if words := strings.Fields(line); strings.HasPrefix(strings.TrimSpace(line), prefix) && len(words) > 0 {
				return words[len(words)-1], nil
			}
		}
		select {
		case <-more:
		case <-p.exited:
			return "", fmt.Errorf("it ended (%v) before it said %q: %s", p.cmd.ProcessState, prefix, p.LastStderr())
		case <-ctx.Done():
			return "", fmt.Errorf("it did not say %q: %w", prefix, ctx.Err())
		}
	}
}

// Kill ends the process with SIGKILL and waits for that.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.exited
	p.stdin.Close()
}

// Stop lets the process end in good order, and kills one that does not within a minute. Any other end than exit code 0 is an
// error.
func (p *Process) Stop() error {
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(processTimeout):
		p.Kill()
		return errors.New("it did not end and was killed")
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("it ended with %v: %s", p.cmd.ProcessState, p.LastStderr())
	}
	return nil
}

// Signal sends the process a signal. A process that has ended is an error.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// LastStderr is the end of what the process wrote to its standard error, at most 2,000 bytes.
func (p *Process) LastStderr() string {
	text, err := os.ReadFile(p.stderrFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
