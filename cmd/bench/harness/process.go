// Package harness runs this very program in processes of its own: nodes, instances of the service, whatever a benchmark needs, on free ports of
// the loopback and in folders of its own. No process outlives the one that started it, however that ends: each reads its standard input, a pipe
// from its parent, and ends when the pipe does.
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

// The commands of this program that StartProcess can run: lieudit with the arguments that follow, a server with an empty net/http handler, a
// reader of the file of sites that follows, which prints how long it took and how much memory it used, and the flood of package fairness with
// the options that follow. All end when their standard input does.
const (
	LieuditCommand      = "lieudit"
	EmptyHandlerCommand = "empty-handler"
	ReadPlacesCommand   = "read-places"
	FloodCommand        = "flood"
)

// WorkDir is the folder of the processes of one benchmark: each has a data folder and a log file under its name there. Their
// sockets are in another folder, directly in the system's temporary one, because the path of a socket must not be longer than
// about a hundred bytes. A WorkDir may be copied; Remove is called once.
type WorkDir struct {
	dir, socketDir string
	maxDescriptors int    // files that a process may have open; 0: as many as this one
	program        string // path of the program that the processes run; "": this program
	isLowPriority  bool   // every other process has precedence at the processor
}

// NewWorkDir creates both folders, that of the processes within dir. After an error nothing is left.
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

// WithMaxDescriptors returns the same folder for processes that may have no more than n files and connections open. 0 means
// no limit beyond that of this process.
func (w WorkDir) WithMaxDescriptors(n int) WorkDir {
	w.maxDescriptors = n
	return w
}

// WithProgram returns the same folder for processes of another program, this one at another commit. "" is this program.
func (w WorkDir) WithProgram(path string) WorkDir {
	w.program = path
	return w
}

// WithLowPriority returns the same folder for processes that every other process has precedence over at the processor: clients that
// would have a machine of their own elsewhere. It needs the system's program nice.
func (w WorkDir) WithLowPriority() WorkDir {
	w.isLowPriority = true
	return w
}

// Path returns the data folder of the process of that name.
func (w WorkDir) Path(name string) string { return filepath.Join(w.dir, name) }

// SocketPath returns the path of the socket of the process of that name.
func (w WorkDir) SocketPath(name string) string { return filepath.Join(w.socketDir, name) }

// Remove removes both folders. The processes must have ended.
func (w WorkDir) Remove() error {
	return errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.socketDir))
}

// Process is this program, running one command in a process of its own. Its methods are safe for concurrent use. Call Kill or Stop in the end,
// even for a process that ended by itself.
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

// StartProcess starts the folder's program with the arguments in command, and does not wait for it to do anything. Its standard error
// goes to the file name.log of the work folder; a later process of the same name appends to that file. Its standard output is
// kept in memory for WaitForLine.
func StartProcess(w WorkDir, name string, command ...string) (*Process, error) {
	self, err := w.executable()
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

// executable returns the path of the program that the processes run.
func (w WorkDir) executable() (string, error) {
	if w.program != "" {
		return w.program, nil
	}
	return os.Executable()
}

// command returns the program with its arguments. If descriptors are limited, a shell lowers the hard limit, which the program cannot raise
// again, and then replaces itself with the program, so that the process id is the program's. So does nice.
func (w WorkDir) command(executable string, args ...string) *exec.Cmd {
	if w.isLowPriority {
		executable, args = "nice", append([]string{"-n", "19", executable}, args...)
	}
	if w.maxDescriptors == 0 {
		return exec.Command(executable, args...)
	}
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, w.maxDescriptors), executable}
	return exec.Command("/bin/sh", append(limited, args...)...)
}

// readOutput collects the lines of the standard output, to their end, and then waits for the process. It is the only caller
// of Wait, which closes the pipe and so must come after the last read.
func (p *Process) readOutput(out io.Reader) {
	defer close(p.exited)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.newLine)
		p.newLine = make(chan struct{})
		p.mu.Unlock()
	}
	p.cmd.Wait() // its state shows how it ended
}

// WaitForLine waits for a line of the standard output that begins with prefix, ignoring blanks, and returns its last word: an address, in the
// lines that it is used for. Earlier lines count too, so the order of calls does not matter. It returns an error if the process ends first, or
// if the line does not come within a minute.
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

// Kill ends the process with SIGKILL and returns when it has ended. It may be called again, and after Stop.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.exited
	p.stdin.Close()
}

// Stop closes the standard input, on which the process ends in good order, and kills a process that does not end within a
// minute. Any other end than exit code 0 is an error.
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

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// LastStderr returns the end of what the processes of its name wrote to standard error, at most 2,000 bytes. If it cannot be read, the text is
// the reason.
func (p *Process) LastStderr() string {
	text, err := os.ReadFile(p.stderrFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
