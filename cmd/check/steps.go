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

	"lieudit/eventstore/leveltest"
)

// step is one check: a command that must succeed.
type step struct {
	name         string
	command      []string // the program and its arguments
	failOnOutput bool     // whether any line on standard output is a failure: gofmt -l exits with 0
	race         bool     // whether something is built with the race detector, which needs cgo
}

// steps are the checks of a level in order, the quick ones first. limit bounds the tests of one package.
func steps(level leveltest.Level, limit time.Duration) []step {
	gofmt := step{"gofmt", []string{"gofmt", "-l", "."}, true, false}
	vet := step{"vet", []string{"go", "vet", "./..."}, false, false}
	staticcheck := step{"staticcheck", []string{"go", "tool", "staticcheck", "./..."}, true, false}
	switch level {
	case leveltest.Quick:
		return []step{gofmt, vet, goTestExcept("tests", testCommand(limit, "-short"), false, wholeServicePackage, benchPackage)}
	case leveltest.Usual:
		return []step{
			gofmt, vet, staticcheck,
			goTestExcept("tests", testCommand(limit), false, wholeServicePackage, benchPackage),
			{"tests of whole services", append(wholeServiceCommand(limit), wholeServicePackage, benchPackage), false, false},
			{"simulated days", []string{"go", "run", "./cmd/bench", "simulate", "--days", "20", "--seed", "1", "--keep", os.TempDir()}, false, false},
		}
	}
	return append([]step{{"modules", []string{"go", "mod", "verify"}, false, false}, gofmt, vet, staticcheck}, wholeSteps(limit)...)
}

// wholeSteps are the steps of the whole level, after those that only read the source. The packages of whole services run one
// after the other (-p 1), so that they do not slow each other down. go test does not repeat the checks of the step vet. The
// API's tests run only with the race detector: whatever fails without it fails with it.
func wholeSteps(limit time.Duration) []step {
	return []step{
		{"build without cgo", []string{"go", "build", "./cmd/lieudit", "./cmd/bench"}, false, false},
		{"vet on Windows", []string{"env", "GOOS=windows", "GOARCH=amd64", "go", "vet", "./..."}, false, false},
		{"build for ARM and macOS", []string{"env", "GOOS=darwin", "GOARCH=arm64", "go", "build", "-o", os.DevNull, "./cmd/lieudit"}, false, false},
		{"tests without goroutines", append(testCommand(limit), packagesWithoutGoroutines()...), false, false},
		goTestExcept("tests with the race detector", testCommand(limit, "-race", "-skip", "'"+largeTests+"'"), true, append(packagesWithoutGoroutines(), wholeServicePackage, benchPackage)...),
		{"tests of large inputs", append(testCommand(limit, "-run", largeTests), largeTestPackages()...), false, false},
		{"tests of whole services", append(wholeServiceCommand(limit, "-skip", apiTests), wholeServicePackage, benchPackage), false, false},
		{"simulated days", []string{"go", "run", "./cmd/bench", "simulate", "--days", "100", "--seed", "1", "--keep", os.TempDir()}, false, false},
		{"simulated days with the race detector", []string{"go", "run", "./cmd/bench", "simulate", "--days", "10", "--history", "5", "--seed", "1", "--race", "--keep", os.TempDir()}, false, false},
		{"the API with the race detector", append(testCommand(limit, "-race", "-run", apiTests), wholeServicePackage), false, true},
	}
}

// goTestExcept is a step that tests all packages except some.
func goTestExcept(name string, command []string, race bool, except ...string) step {
	return step{name, []string{"sh", "-c", strings.Join(command, " ") + " $(go list ./... | grep -vx -e " + strings.Join(except, " -e ") + ")"}, false, race}
}

// wholeServiceCommand is a testCommand for tests that run whole services and mostly wait for them.
func wholeServiceCommand(limit time.Duration, flags ...string) []string {
	return testCommand(limit, append([]string{"-p", "1", "-parallel", waitingTests}, flags...)...)
}

// testCommand is go test with a time limit for each package, and more flags.
func testCommand(limit time.Duration, flags ...string) []string {
	return append([]string{"go", "test", "-vet=off", "-timeout", limit.String()}, flags...)
}

// The packages whose tests run whole services and processes, and mostly wait for them. With the race detector they take
// longer than all other packages together, so only their API tests run with it.
const (
	wholeServicePackage = "lieudit/cmd/lieudit"
	benchPackage        = "lieudit/cmd/bench"
	apiTests            = "^TestAPI"
	waitingTests        = "4" // at once, more than there may be processors
)

// largeTests read so much that the race detector would turn their seconds into minutes. With it, smaller inputs take the same
// paths in the other tests of their packages.
const largeTests = "^(TestNeighboursComeNearestFirst|TestRoutesCountByTheirSize|TestDelawareHasTheRoadsThatAnotherReaderCounted)$"

func largeTestPackages() []string {
	return []string{"lieudit/http/api", "lieudit/queries/address", "lieudit/queries/route/network"}
}

// packagesWithoutGoroutines are tested without the race detector, which would find nothing: neither they nor their tests nor
// what they import from this module starts a goroutine or locks anything. A test enforces that. Building their tests with it
// takes longer than running them.
func packagesWithoutGoroutines() []string {
	return []string{
		"lieudit/eventstore/deadlinetest",
		"lieudit/http/csvfile",
		"lieudit/http/pages/chart",
		"lieudit/http/sitefile/clean",
		"lieudit/http/sitefile/record",
		"lieudit/http/sitefile/record/xlsx",
		"lieudit/schemas/meiliclient",
		"lieudit/queries/address/parse",
		"lieudit/queries/address/text",
		"lieudit/queries/locations/search",
		"lieudit/queries/route/guidance",
		"lieudit/queries/route/isochrone",
		"lieudit/queries/route/profile",
		"lieudit/queries/route/streetname",
		"lieudit/queries/route/tour",
		"lieudit/schemas/grant",
		"lieudit/schemas/body",
		"lieudit/schemas/event",
		"lieudit/schemas/usagefold",
		"lieudit/schemas/locations",
		"lieudit/schemas/origin",
		"lieudit/schemas/plan",
		"lieudit/schemas/refusal",
		"lieudit/schemas/token",
	}
}

// runCommand runs the command with the variables of env added to the environment. It shows the output as it comes. All steps
// except those with the race detector run without cgo, as the program ships, so packages are built twice and not three times.
func (s step) runCommand(ctx context.Context, env []string) error {
	fmt.Printf("== %s: %s\n", s.name, strings.Join(s.command, " "))
	var output bytes.Buffer
	cmd := newCommand(ctx, s.command...)
	cmd.Env = append(os.Environ(), env...)
	if !s.race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	cmd.Stdout = io.MultiWriter(os.Stdout, &output)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if s.failOnOutput && output.Len() > 0 {
		return fmt.Errorf("%s: found something", s.name)
	}
	return nil
}

// newCommand prepares a command that writes to this program's output. When ctx ends the command is interrupted, so that tests
// can stop their servers, and killed ten seconds later.
func newCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}
