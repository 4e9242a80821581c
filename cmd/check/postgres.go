package main

import (
	"context"
	"fmt"
	"os"

	"lieudit/cmd/lieudit/fleet"
)

// postgres is a server for this run alone.
type postgres struct {
	url  string
	stop func()
}

// named is a server somebody else runs: tests make databases of their own in it.
const named = "LIEUDIT_TEST_POSTGRES"

func startPostgres(ctx context.Context) (*postgres, error) {
	if given := os.Getenv(named); given != "" {
		return &postgres{given, func() {}}, nil
	}
	if bin := fleet.PostgresBin(); bin != "" {
		cluster, err := fleet.NewCluster(ctx, bin)
		if err != nil {
			return nil, err
		}
		return &postgres{cluster.URL, func() { cluster.Clear() }}, nil
	}
	return startContainer(ctx)
}

// startContainer runs the Postgres of compose.yaml.
func startContainer(ctx context.Context) (*postgres, error) {
	if err := command(ctx, "docker", "compose", "up", "-d", "--wait", "postgres").Run(); err != nil {
		return nil, fmt.Errorf("docker compose: %w", err)
	}
	return &postgres{"postgres://lieudit:lieudit@127.0.0.1:5432/lieudit", func() {
		command(context.WithoutCancel(ctx), "docker", "compose", "stop", "postgres").Run() // best effort
	}}, nil
}
