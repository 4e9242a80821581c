// Package disktest gives tests a disk that is small enough to be filled. Its one job is Mount. Only Linux has it, where a file system
// in memory is mounted, which needs root.
package disktest

import (
	"os"
	"syscall"
	"testing"
)

// Mount mounts an empty disk of a size, such as 32m, for the time of the test, and returns its folder. It skips the test where it
// cannot, or fails it under cmd/check.
func Mount(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("LIEUDIT_CHECK") == "1" {
			t.Fatalf("mount a small disk: %v; run the checks as root", err)
		}
		t.Skipf("mount a small disk: %v; run the test as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}
