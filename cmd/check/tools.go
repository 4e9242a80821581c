package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"lieudit/cmd/bench/harness"
	"lieudit/eventstore/leveltest"
	"lieudit/queries/route/routerprocess"
)

// installMissingTools installs a level's missing tools. It uses apt-get and needs root.
func installMissingTools(ctx context.Context, level leveltest.Level) error {
	missing := missingTools(ctx)
	if level == leveltest.Whole {
		missing = append(missing, missingToolsOfAll(ctx)...)
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("missing: %v; install them, or run this as root where apt-get is", missing)
	}
	fmt.Println("== install:", missing)
	for _, command := range [][]string{{"apt-get", "update", "-qq"}, append([]string{"apt-get", "install", "-y", "-qq", "--no-install-recommends"}, missing...)} {
		cmd := newCommand(ctx, command...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive") // otherwise a package may ask a question
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return nil
}

// missingTools are the packages that the usual level needs and that are not installed: Postgres for the read models, unless a
// container engine runs, a browser for the web pages, and curl, with which their tests run the lines that pages show.
func missingTools(ctx context.Context) (missing []string) {
	if harness.FindPostgres() == "" && !hasContainerEngine(ctx) {
		missing = append(missing, "postgresql")
	}
	for _, program := range []string{"chromium", "curl"} { // the packages have the names of the programs
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}

// missingToolsOfAll are the packages that the whole level also needs: a C compiler for the race detector, PgBouncer, Node.js
// for the official EventStoreDB client, which a test runs against lieudit node, the proxies that the operators' guide has
// configurations for, promtool, which checks metrics and alerts, and pip, which downloads the routing servers.
func missingToolsOfAll(ctx context.Context) (missing []string) {
	packages := []struct {
		program string
		names   []string
	}{
		{"gcc", []string{"gcc", "libc6-dev"}}, {"node", []string{"nodejs"}}, {"npm", []string{"npm"}}, {"nginx", []string{"nginx-light"}},
		{"haproxy", []string{"haproxy"}}, {"caddy", []string{"caddy"}}, {"systemd-analyze", []string{"systemd"}}, {"promtool", []string{"prometheus"}},
	}
	for _, p := range packages {
		if _, err := exec.LookPath(p.program); err != nil {
			missing = append(missing, p.names...)
		}
	}
	if harness.FindPgBouncer() == "" && os.Getenv(pgBouncerVariable) == "" {
		missing = append(missing, "pgbouncer")
	}
	if exec.CommandContext(ctx, "python3", "-m", "pip", "--version").Run() != nil && os.Getenv(routerprocess.FolderVariable) == "" {
		missing = append(missing, "python3-pip")
	}
	return missing
}

// hasContainerEngine reports whether Docker is installed and its engine answers.
func hasContainerEngine(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// postgres is the server that the tests of this run use, or the pooler in front of it.
type postgres struct {
	url  string
	stop func() // ends whatever was started here; it drops errors, because the checks are over by then
}

// postgresVariable holds the URL of a server that is already running. Tests make databases of their own in it. The steps get
// the server of this run under the same name.
const postgresVariable = "LIEUDIT_TEST_POSTGRES"

// startPostgres returns the server that postgresVariable names. Otherwise it starts the installed Postgres on a folder of its
// own, or, if none is installed, a container. The caller calls stop.
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

// pgBouncerVariable holds the URL of a running PgBouncer in front of the same Postgres. Its users are session and
// transaction, each with the pool mode of that name. The steps get the PgBouncer of this run under the same name.
const pgBouncerVariable = "LIEUDIT_TEST_PGBOUNCER"

// startPgBouncer returns the PgBouncer that pgBouncerVariable names. Otherwise it starts the installed one in front of a
// Postgres. The caller calls stop.
func startPgBouncer(ctx context.Context, server string) (*postgres, error) {
	if givenURL := os.Getenv(pgBouncerVariable); givenURL != "" {
		return &postgres{givenURL, func() {}}, nil
	}
	pooler, err := harness.StartPgBouncer(ctx, harness.FindPgBouncer(), server)
	if err != nil {
		return nil, err
	}
	return &postgres{pooler.URL, func() { pooler.Remove() }}, nil
}

// startContainer starts the Postgres of compose.yaml and waits until it is healthy. User, password and port are those of
// that file. stop keeps the container and its data.
func startContainer(ctx context.Context) (*postgres, error) {
	if err := newCommand(ctx, "docker", "compose", "up", "-d", "--wait", "postgres").Run(); err != nil {
		return nil, fmt.Errorf("docker compose: %w", err)
	}
	return &postgres{"postgres://lieudit:lieudit@127.0.0.1:5432/lieudit", func() {
		newCommand(context.WithoutCancel(ctx), "docker", "compose", "stop", "postgres").Run() // left running if this fails
	}}, nil
}
