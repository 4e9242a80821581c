package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
)

// install gets what is missing: a C compiler for the race detector, Postgres for the read models, a browser for the
// pages, and Node.js for the official client that a node is asked by. It can do so as root on a machine with Debian's packages; Postgres may come from a container engine too.
func install(ctx context.Context) error {
	var missing []string
	if _, err := exec.LookPath("gcc"); err != nil {
		missing = append(missing, "gcc", "libc6-dev")
	}
	if postgresBin() == "" && !engine(ctx) {
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
		cmd := command(ctx, words...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", words, err)
		}
	}
	return nil
}

// postgresBin is the folder of the newest Postgres server on this machine, or "".
func postgresBin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	sort.Slice(found, func(i, j int) bool {
		return len(found[i]) < len(found[j]) || len(found[i]) == len(found[j]) && found[i] < found[j]
	})
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// engine says whether a container engine answers.
func engine(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
