package main

import (
	"context"
	"fmt"
	"os"

	"lieudit/cmd/bench/harness"
)

// postgres is a server for this run alone.
type postgres struct {
	url  string
	stop func()
}

// postgresVariable is a server somebody else runs: tests make databases of their own in it.
const postgresVariable = "LIEUDIT_TEST_POSTGRES"

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

// startContainer runs the Postgres of compose.yaml.
func startContainer(ctx context.Context) (*postgres, error) {
	if err := newCommand(ctx, "docker", "compose", "up", "-d", "--wait", "postgres").Run(); err != nil {
		return nil, fmt.Errorf("docker compose: %w", err)
	}
	return &postgres{"postgres://lieudit:lieudit@127.0.0.1:5432/lieudit", func() {
		newCommand(context.WithoutCancel(ctx), "docker", "compose", "stop", "postgres").Run() // best effort
	}}, nil
}
