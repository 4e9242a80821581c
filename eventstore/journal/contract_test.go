package journal_test

import (
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/storetest"
)

// segmentSize is that of the tests: a journal that is opened again remembers the ids of its last segment.
const segmentSize = 4 << 20

func TestContract(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, dir string) eventstore.Store {
		t.Helper()
		j, err := journal.Open(dir, journal.Options{SegmentSize: segmentSize})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return &in{j, dir}
	}
	reopen := func(t *testing.T, s eventstore.Store) eventstore.Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, s.(*in).dir)
	}
	storetest.RunWith(t, func(t *testing.T) eventstore.Store { return open(t, t.TempDir()) }, storetest.Options{
		Reopen: reopen,
		Forget: func(t *testing.T, s eventstore.Store) eventstore.Store {
			storetest.FillSegment(t, s, segmentSize)
			return reopen(t, s)
		},
	})
}

// in is a journal that knows its folder.
type in struct {
	*journal.Journal
	dir string
}
