package osfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lieudit/eventstore/disk/osfile"
)

func TestALockedFileIsHeldUntilItIsUnlocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, second := mustOpen(t, path), mustOpen(t, path)
	if err := osfile.TryLock(first); err != nil {
		t.Fatal(err)
	}
	if err := osfile.TryLock(second); !errors.Is(err, osfile.ErrHeld) {
		t.Errorf("got %v, want %v", err, osfile.ErrHeld)
	}
	if _, err := second.WriteString("who holds it"); err != nil {
		t.Errorf("a locked file cannot be written: %v", err)
	}
	if err := errors.Join(osfile.Unlock(first), osfile.TryLock(second)); err != nil {
		t.Error(err)
	}
}

func TestAnOpenFileIsRenamedAndWrittenOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := mustOpen(t, filepath.Join(folder, "a"))
	if err := osfile.Rename(file.Name(), filepath.Join(folder, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("x"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "b")); string(got) != "x" {
		t.Errorf("got %q (%v), want x", got, err)
	}
}

func TestRenameReplacesAFileOnceItsReaderIsGone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	from, to := filepath.Join(folder, "new"), filepath.Join(folder, "old")
	if err := errors.Join(os.WriteFile(from, []byte("new"), 0o600), os.WriteFile(to, []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	renamed := make(chan error)
	go func() { renamed <- osfile.Rename(from, to) }()
	reader.Close()
	if err := <-renamed; err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(to); string(got) != "new" {
		t.Errorf("got %q (%v), want new", got, err)
	}
}

func TestAnUnnamedFileIsReadBackAndLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, err := osfile.CreateUnnamed(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(file, 0, 10)); string(got) != "abc" {
		t.Errorf("got %q (%v), want abc", got, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); len(left) != 0 || err != nil {
		t.Errorf("got %v (%v), want nothing", left, err)
	}
}

func TestAFullDiskIsToldFromOtherErrors(t *testing.T) {
	t.Parallel()
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	if !osfile.IsDiskFull(full) || osfile.IsDiskFull(os.ErrNotExist) || osfile.IsDiskFull(nil) {
		t.Error("want true for ENOSPC alone")
	}
}

// mustOpen opens a file that is renamed or removed while it is open.
func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := osfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
