package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"lieudit/cmd/bench/harness"
)

// installMissingTools installs the tools that are missing: a C compiler for the race detector, Postgres for the read
// models, a browser for the pages, and Node.js for the official EventStoreDB client that is run against a node. It needs
// root and Debian's packages; a container engine can stand in for Postgres.
func installMissingTools(ctx context.Context) error {
	var missing []string
	if _, err := exec.LookPath("gcc"); err != nil {
		missing = append(missing, "gcc", "libc6-dev")
	}
	if harness.FindPostgres() == "" && !hasContainerEngine(ctx) {
		missing = append(missing, "postgresql")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		missing = append(missing, "chromium")
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing = append(missing, "nodejs")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		missing = append(missing, "npm")
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("missing: %v; install them, or run this as root where apt-get is", missing)
	}
	fmt.Println("== install:", missing)
	for _, words := range [][]string{{"apt-get", "update", "-qq"}, append([]string{"apt-get", "install", "-y", "-qq", "--no-install-recommends"}, missing...)} {
		cmd := newCommand(ctx, words...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", words, err)
		}
	}
	return nil
}

// hasContainerEngine says whether a container engine answers.
func hasContainerEngine(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// postgres is the server that the tests of this run use.
type postgres struct {
	url  string
	stop func()
}

// postgresVariable names a server that runs already. Tests make databases of their own in it.
const postgresVariable = "LIEUDIT_TEST_POSTGRES"

// startPostgres uses the server of the environment, else starts the installed Postgres in a folder of its own, else a
// container.
func startPostgres(ctx context.Context) (*postgres, error) {
	if givenURL := os.Getenv(postgresVariable); givenURL != "" {
		return &postgres{givenURL, func() {}}, nil
	}
	if bin := harness.FindPostgres(); bin != "" {
		cluster, err := harness.StartPostgres(ctx, bin)
		if err != nil {
			return nil, err
		}
		return &postgres{cluster.URL, func() { cluster.Remove() }}, nil
	}
	return startContainer(ctx)
}

// startContainer starts the Postgres of compose.yaml.
func startContainer(ctx context.Context) (*postgres, error) {
	if err := newCommand(ctx, "docker", "compose", "up", "-d", "--wait", "postgres").Run(); err != nil {
		return nil, fmt.Errorf("docker compose: %w", err)
	}
	return &postgres{"postgres://lieudit:lieudit@127.0.0.1:5432/lieudit", func() {
		newCommand(context.WithoutCancel(ctx), "docker", "compose", "stop", "postgres").Run() // left running when this fails
	}}, nil
}
