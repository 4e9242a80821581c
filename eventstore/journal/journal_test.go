package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/storetest"
)

// testSegmentSize is small, since a reopened journal remembers the ids of its last segment.
const testSegmentSize = 4 << 20

func TestContract(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, dir string) eventstore.Store {
		t.Helper()
		j, err := journal.Open(dir, journal.Options{SegmentSize: testSegmentSize})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return &journalInDir{j, dir}
	}
	reopen := func(t *testing.T, s eventstore.Store) eventstore.Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, s.(*journalInDir).dir)
	}
	storetest.Run(t, func(t *testing.T) eventstore.Store { return open(t, t.TempDir()) }, storetest.Options{
		Reopen: reopen,
		ReopenWithoutIDs: func(t *testing.T, s eventstore.Store) eventstore.Store {
			storetest.FillSegment(t, s, testSegmentSize)
			return reopen(t, s)
		},
	})
}

// journalInDir is a journal with the path of its folder.
type journalInDir struct {
	*journal.Journal
	dir string
}

func TestSecondOpenReportsTheHolderOfTheFolder(t *testing.T) {
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

func TestHealthReportsAFolderMovedOrReplaced(t *testing.T) {
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

// Some tests need a second process: this binary again, with the folder in one of these variables.
const (
	envWriteIn = "LIEUDIT_TEST_JOURNAL_WRITE"
	envOpenIn  = "LIEUDIT_TEST_JOURNAL_OPEN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envWriteIn); dir != "" {
		os.Exit(exitCode(appendUntilKilled(dir)))
	}
	if dir := os.Getenv(envOpenIn); dir != "" {
		_, err := journal.Open(dir, journal.Options{SegmentSize: smallSegmentSize})
		os.Exit(exitCode(err))
	}
	os.Exit(m.Run())
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// appendUntilKilled appends with four writers and prints a line after each append, until it is killed.
func appendUntilKilled(dir string) error {
	j, err := journal.Open(dir, journal.Options{SegmentSize: 64 << 10})
	if err != nil {
		return err
	}
	var out sync.Mutex
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				batch := make([]eventstore.ProposedEvent, 1+n%3)
				for i := range batch {
					data := fmt.Appendf(nil, "%d of %d %0*d", i, len(batch), n*37%400, 0)
					batch[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: "t", Data: data}
				}
				c, err := j.Append(context.Background(), fmt.Sprintf("s-%d", w), eventstore.Any, batch)
				out.Lock()
				if err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println("ack", c.Position, batch[len(batch)-1].ID)
				out.Unlock()
			}
		})
	}
	writers.Wait()
	return j.Close()
}
