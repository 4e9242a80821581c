package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"lieudit/cmd/bench/harness"
)

// installMissingTools gets what is missing: a C compiler for the race detector, Postgres for the read models, a browser for the
// pages, and Node.js for the official client that a node is asked by. It can do so as root on a machine with Debian's packages; Postgres may come from a container engine too.
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

// hasContainerEngine says whether a container hasContainerEngine answers.
func hasContainerEngine(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
