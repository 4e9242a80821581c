package journal_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/journal"
)

func TestASecondHolderLearnsWhoTheFirstIs(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	first := openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize, Clock: func() time.Time { return now }})

	_, err := journal.Open(dir, journal.Options{SegmentSize: smallSegmentSize})
	var held *dirlock.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || !held.Since.Equal(now) || held.Dir != dir {
		t.Errorf("a second Open says %v, want the holder %d since %s", err, os.Getpid(), now)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envOpenIn+"="+dir)
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), held.Error()) {
		t.Errorf("a second process says %q (%v), want %q", out, err, held)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize})
}

func TestAJournalWhoseFolderIsNotThereAnyMoreSaysSo(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"moved away": false, "replaced": true} {
		dir := filepath.Join(t.TempDir(), "log")
		j := openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize})
		if err := j.Health(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		if again {
			openJournal(t, dir, journal.Options{SegmentSize: smallSegmentSize})
		}
		if err := j.Health(); !errors.Is(err, eventstore.ErrUnavailable) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: health is %v, want that %s is not its folder any more", name, err, dir)
		}
	}
}
