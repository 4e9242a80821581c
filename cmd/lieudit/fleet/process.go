// Package fleet runs this very program in processes of their own: nodes, instances of the service, whatever a
// measurement needs, on free ports of the loopback and in folders of its own. No process outlives the one that
// started it, however that ends: each holds a pipe to it and ends when the pipe does.
package fleet

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

// Leashed are the words of the hidden command that runs the command after it until its standard input ends.
var Leashed = [...]string{"bench", "leashed"}

// Process is this program, running one command.
type Process struct {
	cmd   *exec.Cmd
	leash io.Closer
	errs  string // file of what it complained of
	gone  chan struct{}

	mu    sync.Mutex
	said  []string
	heard chan struct{} // closed at the next line
}

// patience is how long a process may take to say what is waited for.
const patience = time.Minute

// Start runs a command of the program. What it complains of is kept on the ground under its name.
func Start(g Ground, name string, command ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{errs: g.Folder(name + ".log"), gone: make(chan struct{}), heard: make(chan struct{})}
	complaints, err := os.OpenFile(p.errs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer complaints.Close()
	p.cmd = g.command(self, append(Leashed[:], command...)...)
	p.cmd.Stderr = complaints
	if p.leash, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go p.listen(out)
	return p, nil
}

// command is the program with its words. The shell lowers the hard limit of descriptors, which the program cannot raise
// again, and becomes the program.
func (g Ground) command(name string, words ...string) *exec.Cmd {
	if g.descriptors == 0 {
		return exec.Command(name, words...)
	}
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, g.descriptors), name}
	return exec.Command("/bin/sh", append(limited, words...)...)
}

// listen hears what the process says, to its end.
func (p *Process) listen(out io.Reader) {
	defer close(p.gone)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.said = append(p.said, lines.Text())
		close(p.heard)
		p.heard = make(chan struct{})
		p.mu.Unlock()
	}
	p.cmd.Wait() // how it ended is in its state
}

// Await is the last word of the first line that begins with what is given, once the process has said it.
func (p *Process) Await(ctx context.Context, begins string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		p.mu.Lock()
		said, more := p.said, p.heard
		p.mu.Unlock()
		for _, line := range said {
			if words := strings.Fields(line); strings.HasPrefix(strings.TrimSpace(line), begins) && len(words) > 0 {
				return words[len(words)-1], nil
			}
		}
		select {
		case <-more:
		case <-p.gone:
			return "", fmt.Errorf("it ended (%v) before it said %q: %s", p.cmd.ProcessState, begins, p.complaint())
		case <-ctx.Done():
			return "", fmt.Errorf("it did not say %q: %w", begins, ctx.Err())
		}
	}
}

// complaint is the end of what the process complained of.
func (p *Process) complaint() string {
	text, err := os.ReadFile(p.errs)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Kill ends the process as kill -9 does.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.gone
	p.leash.Close()
}

// End lets the process end in good order, and kills one that does not.
func (p *Process) End() error {
	p.leash.Close()
	select {
	case <-p.gone:
	case <-time.After(patience):
		p.Kill()
		return errors.New("it did not end and was killed")
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("it ended with %v: %s", p.cmd.ProcessState, p.complaint())
	}
	return nil
}

// Signal sends the process a signal. One that has ended gets none.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Gone is closed when the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Complaint is the end of what the process wrote to its standard error.
func (p *Process) Complaint() string { return p.complaint() }

// ID is the process's id.
func (p *Process) ID() int { return p.cmd.Process.Pid }
