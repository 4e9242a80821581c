package routerprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	startTries    = 3 // another program may take the free port that was found
	probeInterval = 5 * time.Millisecond
)

// serverScript replaces the shell with a server. A cat waits next to it, whose input the system closes when this process ends, even
// by a kill; then the server is killed. Both are in one process group, so that its number is not reused meanwhile.
const serverScript = `exec 3<&0; (cat <&3 >/dev/null; kill -9 $$) & exec "$0" "$@" </dev/null 3<&-`

// Server is a running server. Stop must be called.
type Server struct {
	URL string

	folder string // its own, for its log, its configuration and its sockets
	cmd    *exec.Cmd
	input  io.Closer // its end is the server's
	ended  chan struct{}
}

// errEnded means that a server ended while it started.
var errEnded = errors.New("the server ends as soon as it starts")

// Serve starts a server on a free port of this machine, and returns when it answers. ctx limits only the start.
func (p Prepared) Serve(ctx context.Context) (s *Server, err error) {
	for range startTries {
		s, err = p.tryServe(ctx)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return s, err
}

// tryServe starts a server once. After an error nothing is left of it.
func (p Prepared) tryServe(ctx context.Context) (s *Server, err error) {
	s = &Server{ended: make(chan struct{})}
	// The paths of sockets have at most 107 bytes, so the folder is not one that the caller made.
	if s.folder, err = os.MkdirTemp("", "router"); err != nil {
		return nil, err
	}
	if err := s.start(p); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	err = s.waitUntilServing(ctx, p.probePath)
	if err == nil {
		return s, nil
	}
	output, _ := os.ReadFile(s.logPath())
	return nil, errors.Join(fmt.Errorf("%w\n%s", err, lastLines(output)), s.Stop())
}

func (s *Server) logPath() string { return filepath.Join(s.folder, "log") }

// start starts the process, and a goroutine that ends with it.
func (s *Server) start(p Prepared) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.URL = "http://127.0.0.1:" + port
	command, err := p.command(s.folder, port)
	if err != nil {
		return err
	}
	log, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", serverScript}, command...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	startInGroup(s.cmd)
	if s.input, err = s.cmd.StdinPipe(); err != nil { // Wait closes it
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		s.cmd.Wait() // its error is that it was killed
		close(s.ended)
	}()
	return nil
}

// PID is the id of the server's process: the shell that started it became the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop kills the server, waits for its end and removes its folder. The prepared files stay. It may be called again.
func (s *Server) Stop() error {
	select {
	case <-s.ended:
	default:
		killGroup(s.cmd) // it fails only if the server has ended
		<-s.ended
	}
	return os.RemoveAll(s.folder)
}

// freePort returns a port that no program listens on now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port), nil
}

// waitUntilServing waits until the server answers with JSON. It fails with errEnded if the server ends instead, and with ctx's
// error.
func (s *Server) waitUntilServing(ctx context.Context, path string) error {
	ticks := time.NewTicker(probeInterval)
	defer ticks.Stop()
	for !answersJSON(ctx, s.URL+path) {
		select {
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", ctx.Err())
		case <-ticks.C:
		}
	}
	return nil
}

func answersJSON(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	first := make([]byte, 1)
	_, err = io.ReadFull(response.Body, first)
	return err == nil && first[0] == '{'
}
