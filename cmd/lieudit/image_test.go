//go:build linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lieudit/eventstore/leveltest"
)

// imageUser is the user that compose.yaml runs the program as.
const imageUser = 65532

// The root of the image that compose.yaml makes, as a folder: the program, a folder that it may write to, and nothing else. No
// shell, no library and no zone file is there.
func TestTheProgramStartsInAnImageThatHoldsNothingElse(t *testing.T) {
	t.Parallel()
	missing := ""
	if os.Getuid() != 0 {
		missing = "only root can change the root folder of a process"
	}
	leveltest.Need(t, leveltest.Whole, missing)
	root, err := os.MkdirTemp("", "image") // the folders above it let the other user in, unlike t.TempDir's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	// The image's -trimpath would build every package once more; it changes the paths in messages alone.
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(root, "lieudit"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	data := filepath.Join(root, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, imageUser, imageUser); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	serve := commandInImage(t, root, "serve", "--data", "/data", "--listen", "127.0.0.1:0", "--area-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	serve.Stderr = os.Stderr
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
	})
	lines, ops := bufio.NewScanner(out), ""
	for ops == "" && lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "health, metrics"); ok {
			ops = strings.TrimSpace(address)
		}
	}
	if ops == "" {
		t.Fatalf("the program did not start: %v", lines.Err())
	}
	waitUntil(t, "the instance in the image is healthy", func() bool {
		return commandInImage(t, root, "health", "--ops", ops).Run() == nil
	})
	waitUntil(t, "the demo key is in a file of the owner's", func() bool {
		info, err := os.Stat(filepath.Join(data, "demo-key"))
		return err == nil && info.Mode().Perm() == 0o600
	})
}

// commandInImage is a run of the program whose root folder is the image's, as the image's user and without an environment.
func commandInImage(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/lieudit", args...)
	c.Dir, c.Env = "/", []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	return c
}
