package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/disk/disktest"
)

// runKilled runs the program in a process of its own, kills it after a time, and reports whether it had ended by itself.
func runKilled(t *testing.T, after time.Duration, line string) (hasEnded bool) {
	t.Helper()
	command := exec.Command(os.Args[0], splitWords(line)...)
	command.Env = append(os.Environ(), asProgramVariable+"=1")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { command.Process.Kill() })
	err := command.Wait()
	kill.Stop()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.Exited()) {
		t.Fatalf("lieudit %s: %v", line, err)
	}
	return err == nil
}

// killTimes calls do with times that grow until it says that a process has ended by itself.
func killTimes(t *testing.T, do func(after time.Duration) (hasEnded bool)) {
	t.Helper()
	killed := 0
	for after := 2 * time.Millisecond; !do(after); after += after / 3 {
		killed++
	}
	if killed < 5 {
		t.Errorf("%d processes were killed: too few to have met every step", killed)
	}
}

// TestAKilledBackupLeavesNoFile kills a backup at many times. The next one of the same name is whole.
func TestAKilledBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	killTimes(t, func(after time.Duration) bool {
		hasEnded := runKilled(t, after, "backup --data "+data+" --out "+file)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return false
		}
		svc.runCommand(t, "backup --verify "+file) // it was renamed, so it is whole, killed or not
		if !hasEnded {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		return hasEnded
	})
}

// TestNoServiceOpensAKilledRestore kills a restore at many times. Nothing opens what it leaves, until the next restore ends.
func TestNoServiceOpensAKilledRestore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	key := svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	svc.runCommand(t, "backup --data "+data+" --out "+file)
	svc.stop()
	dir := filepath.Join(t.TempDir(), "restored")
	killTimes(t, func(after time.Duration) bool {
		if hasEnded := runKilled(t, after, "restore "+file+" --nothing-since --data "+dir); hasEnded {
			return true
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
			return false // it had not begun
		}
		if _, err := os.Stat(filepath.Join(dir, "restoring")); err == nil {
			if got := startError(t, func(c *service.Config) { c.Data = dir }); !strings.Contains(got, "cut off") {
				t.Errorf("a service on it says %q", got)
			}
		} else if _, err := os.Stat(filepath.Join(dir, "log")); err == nil {
			return true // it was killed after its last step
		}
		if _, err := os.Stat(filepath.Join(dir, "log")); err == nil { // cut off among the renames
			if code, _, stderr := svc.tryCommand(t, "restore "+file+" --nothing-since --data "+dir); code != 1 || !strings.Contains(stderr, "empty it") {
				t.Errorf("the next restore: exit %d, %s", code, stderr)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
	svc = startService(t, func(c *service.Config) { c.Data = dir })
	svc.checkIntact(t, "one", key)
}

// TestAFullDiskLeavesNeitherBackupNorRestore writes both to disks that grow, until there is room enough.
func TestAFullDiskLeavesNeitherBackupNorRestore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	key := svc.openShopAccount(t, "one")
	growDisk(t, func(kib int) int { return kib + 4 }, func(disk string) (int, string) {
		code, _, stderr := svc.tryCommand(t, "backup --data "+data+" --out "+filepath.Join(disk, "backup"))
		return code, stderr
	})
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	svc.runCommand(t, "backup --data "+data+" --out "+file)
	growDisk(t, func(kib int) int { return 2 * kib }, func(disk string) (int, string) {
		code, _, stderr := svc.tryCommand(t, "restore "+file+" --nothing-since --data "+disk)
		return code, stderr
	})
	svc.checkIntact(t, "one", key)
}

// growDisk runs a command on disks of more and more KiB until it succeeds. Each time before, it must say that the disk is full and
// leave nothing.
func growDisk(t *testing.T, grow func(kib int) int, run func(disk string) (code int, stderr string)) {
	t.Helper()
	failed := 0
	for kib := 4; ; kib = grow(kib) {
		disk := disktest.Mount(t, fmt.Sprintf("%dk", kib))
		code, stderr := run(disk)
		if code == 0 {
			break
		}
		failed++
		if code != 1 || !strings.Contains(stderr, "no space left") && !strings.Contains(stderr, "disk is full") {
			t.Errorf("%d KiB: exit %d, %s; want that the disk is full", kib, code, stderr)
		}
		if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
			t.Errorf("%d KiB: it left %v, %v", kib, entries, err)
		}
	}
	if failed < 4 {
		t.Errorf("it failed %d times: too few to have met every step", failed)
	}
}
