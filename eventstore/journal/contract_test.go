package journal_test

import (
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/storetest"
)

// testSegmentSize is that of the tests: a journal that is opened again remembers the ids of its last segment.
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

// journalInDir is a journal that knows its folder.
type journalInDir struct {
	*journal.Journal
	dir string
}
