package journal_test

import (
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, dir string) eventstore.Store {
		t.Helper()
		j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
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
	storetest.RunWith(t, func(t *testing.T) eventstore.Store { return open(t, t.TempDir()) }, storetest.Options{
		Reopen: func(t *testing.T, s eventstore.Store) eventstore.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(*in).dir)
		},
	})
}

// in is a journal that knows its folder.
type in struct {
	*journal.Journal
	dir string
}
