package journal_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

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

// appendUntilKilled appends with four writers and says so after each append, until it is killed.
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
