package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// step is one check: a command that must succeed.
type step struct {
	name         string
	command      []string // the program and its arguments
	failOnOutput bool     // whether any line on standard output is a finding: gofmt -l exits with 0
}

// steps are the checks in their order, the quick ones first. limit bounds the tests of one package. The packages of
// whole services run one after the other (-p 1), so that neither slows the other down.
func steps(limit time.Duration) []step {
	return []step{
		{"modules", []string{"go", "mod", "verify"}, false},
		{"gofmt", []string{"gofmt", "-l", "."}, true},
		{"vet", []string{"go", "vet", "./..."}, false},
		{"staticcheck", []string{"go", "tool", "staticcheck", "./..."}, true},
		{"build without cgo", []string{"env", "CGO_ENABLED=0", "go", "build", "./cmd/lieudit", "./cmd/bench"}, false},
		{"tests", []string{"sh", "-c", "go test -race -timeout " + limit.String() + " $(go list ./... | grep -vx -e " + wholeServicePackage + " -e " + benchPackage + ")"}, false},
		{"tests of whole services", []string{"go", "test", "-p", "1", "-timeout", limit.String(), wholeServicePackage, benchPackage}, false},
		{"simulated days", []string{"go", "run", "./cmd/bench", "simulate", "--days", "100", "--seed", "1", "--keep", os.TempDir()}, false},
		{"simulated days with the race detector", []string{"go", "run", "./cmd/bench", "simulate", "--days", "20", "--history", "10", "--seed", "1", "--race", "--keep", os.TempDir()}, false},
		{"the API with the race detector", []string{"go", "test", "-race", "-timeout", limit.String(), "-run", "^TestAPI", wholeServicePackage}, false},
	}
}

// The packages whose tests run whole services and processes, and mostly wait for them. With the race detector they take
// longer than all other packages together, so only their API tests run with it.
const (
	wholeServicePackage = "lieudit/cmd/lieudit"
	benchPackage        = "lieudit/cmd/bench"
)

// runCommand runs the command with the variables of env added to the environment. It shows the output as it comes.
func (s step) runCommand(ctx context.Context, env []string) error {
	startedAt := time.Now()
	fmt.Printf("== %s: %s\n", s.name, strings.Join(s.command, " "))
	var output bytes.Buffer
	cmd := newCommand(ctx, s.command...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout = io.MultiWriter(os.Stdout, &output)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if s.failOnOutput && output.Len() > 0 {
		return fmt.Errorf("%s: found something", s.name)
	}
	fmt.Printf("   %s: ok, %.1f s\n", s.name, time.Since(startedAt).Seconds())
	return nil
}

// newCommand prepares a command that writes to this program's output. When ctx ends the command is interrupted, so that
// tests can stop their servers, and killed ten seconds later.
func newCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}
