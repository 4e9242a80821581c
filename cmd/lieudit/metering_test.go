package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/api"
	"lieudit/cmd/bench/metering"
	"lieudit/schemas/deadlinetest"
)

// TestMeteringIsExactWhileProcessesAreKilled: kill -9 of instances and of the node, connections cut as ticks pass.
// The long form is lieudit bench meter --chaos.
func TestMeteringIsExactWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	rep := runMeteringBench(t, "--chaos", "--instances", "2", "--connections", "8", "--cap", "400", "--requests", "900")
	if !slices.ContainsFunc(rep.Processes, func(l metering.Process) bool { return l.Killed }) {
		t.Error("no instance was killed")
	}
	t.Logf("seed %d: %d served of %d, %d incidents", rep.Seed, rep.Served, rep.Cap, len(rep.Incidents))
}

func TestACapIsExactOnProcessesThatShareANode(t *testing.T) {
	t.Parallel()
	rep := runMeteringBench(t, "--instances", "2", "--connections", "8", "--cap", "400", "--requests", "900")
	if rep.Served != 400 || rep.Counted != 400 {
		t.Errorf("served %d, counted %d, want exactly 400", rep.Served, rep.Counted)
	}
}

func TestBenchAPITellsWhatItMeasured(t *testing.T) {
	t.Parallel()
	var f api.Figure
	runBenchProcess(t, &f, "bench", "api", "--log", "journal", "--connections", "2", "--accounts", "3", "--path", "/me", "--seconds", "1", "--turns", "1")
	if f.PerSecond <= 0 || f.EmptyPerSecond <= 0 || f.P99 < f.P50 || f.EventsPerMillion < 500_000 || f.EventsPerMillion > 1_100_000 {
		t.Errorf("got %+v; want figures, and between one event for two requests and one for each, a balance now and then", f)
	}
}

// runMeteringBench runs lieudit bench meter, which must find nothing violated.
func runMeteringBench(t *testing.T, words ...string) (rep metering.Report) {
	t.Helper()
	runBenchProcess(t, &rep, append([]string{"bench", "meter"}, words...)...)
	if len(rep.Violations) > 0 {
		t.Errorf("violated: %s", strings.Join(rep.Violations, "; "))
	}
	return rep
}

// runBenchProcess runs the program in a process of its own and reads the JSON it prints. It must leave nothing behind.
func runBenchProcess(t *testing.T, into any, words ...string) {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(8*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append(words, "--json", "--dir", dir)...)
	cmd.Env = append(os.Environ(), asProgramVariable+"=1")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &stderr)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
