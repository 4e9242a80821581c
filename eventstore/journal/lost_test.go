package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// TestALostFileStopsWriting: a log that kept writing into an unreachable file would acknowledge appends that are lost.
func TestALostFileStopsWriting(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(dir string) error{
		"the active segment is removed": func(dir string) error { return os.Remove(filepath.Join(dir, segmentFileName(0))) },
		"a segment is replaced by a copy": func(dir string) error {
			path := filepath.Join(dir, segmentFileName(0))
			b, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, b, 0o600))
		},
		"the lock is removed": func(dir string) error { return os.Remove(filepath.Join(dir, "lock")) },
		"the folder is moved": func(dir string) error { return os.Rename(dir, dir+"-moved") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "log")
			j := openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize, Logger: discardLogger()})
			appendOne(t, j, "a", "before")
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			if err := j.Health(); !errors.Is(err, eventstore.ErrUnavailable) || !strings.Contains(err.Error(), "moved, removed or replaced") {
				t.Errorf("health is %v", err)
			}
			var err error
			for begun := time.Now(); err == nil && time.Since(begun) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
				_, err = j.Append(t.Context(), "a", eventstore.Any, newBatch("after"))
			}
			if !errors.Is(err, eventstore.ErrUnavailable) || !errors.Is(err, eventstore.ErrStopped) {
				t.Errorf("appends end with %v", err)
			}
		})
	}
}

// TestALogThatStoppedMakesNoFiles: the folder under its name may belong to another log by then, with segments and indexes of
// the same names.
func TestALogThatStoppedMakesNoFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	j := openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize, Logger: discardLogger()})
	for n := range 40 { // into the second segment, so that a third is made
		appendOne(t, j, "a", fmt.Sprint("before ", n, strings.Repeat(" ", smallSegmentSize/32)))
	}
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	var err error
	for begun, n := time.Now(), 0; !errors.Is(err, eventstore.ErrStopped) && time.Since(begun) < 10*time.Second; n++ {
		_, err = j.Append(t.Context(), "a", eventstore.Any, newBatch(fmt.Sprint("after ", n, strings.Repeat(" ", smallSegmentSize/32))))
	}
	if !errors.Is(err, eventstore.ErrStopped) {
		t.Fatalf("appends end with %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_ = j.Close() // the lock is gone with the folder
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		t.Errorf("the other folder holds %v, %v", found, err)
	}
}

// TestAnAppendThatALogStopsAtEndsAtOnce: its outcome stays unknown until the log is opened again.
func TestAnAppendThatALogStopsAtEndsAtOnce(t *testing.T) {
	t.Parallel()
	m := newPowerLossFS(1)
	j := openOn(t, m)
	appendOne(t, j, "a", "before")
	m.mu.Lock()
	m.fault = func(op, _ string) error {
		if op == "write" {
			return syscall.EPERM
		}
		return nil
	}
	m.mu.Unlock()
	begun := time.Now()
	_, err := eventstore.AppendUntilKnown(t.Context(), j, "a", eventstore.Any, newBatch("after"), eventstore.Resend{})
	if !errors.Is(err, eventstore.ErrUnknown) || !errors.Is(err, syscall.EPERM) || time.Since(begun) > time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}
