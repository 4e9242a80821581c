// Package disktest gives tests a disk small enough to be filled: Mount. It exists only on Linux, where it mounts a file
// system in memory, which needs root.
package disktest

import (
	"syscall"
	"testing"

	"lieudit/eventstore/leveltest"
)

// Mount mounts an empty disk of a size, such as 32m, for the time of the test, and returns its folder. A test that calls it
// belongs to the whole level of the check, and is skipped if a user other than root runs it manually.
func Mount(t *testing.T, size string) string {
	t.Helper()
	leveltest.Need(t, leveltest.Whole, "")
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		leveltest.Need(t, leveltest.Whole, leveltest.Missing("mount a small disk as root", err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}
