//go:build unix

package network

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lieudit/queries/route/osmpbf/osmtest"
)

// A process may be forbidden to write files beyond a size, which fails as a full disk does: at some write in the middle.
func TestABuildOnAFullDiskLeavesNothing(t *testing.T) {
	const name = "LIEUDIT_TEST_FULL_DISK"
	if dir := os.Getenv(name); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 20_000, Max: 20_000}); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), filepath.Join(dir, "network"), osmtest.Path(t, "bondy"), Options{}); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("got %v, want %v", err, syscall.EFBIG)
		}
		return
	}
	t.Parallel()
	osmtest.Path(t, "bondy")
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), name+"="+dir)
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	checkNothingLeft(t, dir)
}
