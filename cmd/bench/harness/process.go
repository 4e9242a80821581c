// Package harness runs this very program in processes of their own: nodes, instances of the service, whatever a
// measurement needs, on free ports of the loopback and in folders of its own. No process outlives the one that
// started it, however that ends: each holds a pipe to it and ends when the pipe does.
package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Process is this program, running one command.
type Process struct {
	cmd        *exec.Cmd
	stdin      io.Closer
	stderrFile string // file of what it complained of
	exited     chan struct{}

	mu      sync.Mutex
	lines   []string
	newLine chan struct{} // closed at the next line
}

// processTimeout is how long a process may take to say what is waited for.
const processTimeout = time.Minute

// StartProcess runs a command of the program. What it complains of is kept on the ground under its name.
func StartProcess(g WorkDir, name string, command ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{stderrFile: g.Path(name + ".log"), exited: make(chan struct{}), newLine: make(chan struct{})}
	stderr, err := os.OpenFile(p.stderrFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd = g.command(self, command...)
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

// command is the program with its words. The shell lowers the hard limit of descriptors, which the program cannot raise
// again, and becomes the program.
func (g WorkDir) command(name string, args ...string) *exec.Cmd {
	if g.maxDescriptors == 0 {
		return exec.Command(name, args...)
	}
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, g.maxDescriptors), name}
	return exec.Command("/bin/sh", append(limited, args...)...)
}

// readOutput hears what the process says, to its end.
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

// WaitForLine is the last word of the first line that begins with what is given, once the process has said it.
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
			return "", fmt.Errorf("it ended (%v) before it said %q: %s", p.cmd.ProcessState, prefix, p.lastStderr())
		case <-ctx.Done():
			return "", fmt.Errorf("it did not say %q: %w", prefix, ctx.Err())
		}
	}
}

// lastStderr is the end of what the process complained of.
func (p *Process) lastStderr() string {
	text, err := os.ReadFile(p.stderrFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Kill ends the process as kill -9 does.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.exited
	p.stdin.Close()
}

// Stop lets the process end in good order, and kills one that does not.
func (p *Process) Stop() error {
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(processTimeout):
		p.Kill()
		return errors.New("it did not end and was killed")
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("it ended with %v: %s", p.cmd.ProcessState, p.lastStderr())
	}
	return nil
}

// Signal sends the process a signal. One that has ended gets none.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// LastStderr is the end of what the process wrote to its standard error.
func (p *Process) LastStderr() string { return p.lastStderr() }

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
