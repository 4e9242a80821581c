package keyring

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
)

// noVault has no keys to give: neither the ring nor these events need any.
type noVault struct{ eventstore.Vault }

// openJournal is a journal, and the end of it.
func openJournal(t *testing.T) (*journal.Journal, func(stream string, events ...event.Event) eventstore.Position) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	codec := eventstore.NewCodec(noVault{})
	return j, func(stream string, events ...event.Event) eventstore.Position {
		t.Helper()
		batch, err := codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, events)
		if err != nil {
			t.Fatal(err)
		}
		at, err := j.Append(t.Context(), stream, eventstore.Any, batch)
		if err != nil {
			t.Fatal(err)
		}
		return at.Position
	}
}

func awaitPosition(t *testing.T, r *Ring, at eventstore.Position) {
	t.Helper()
	if err := r.AwaitPosition(deadlinetest.Context(t, deadlinetest.DefaultLimit), at); err != nil {
		t.Fatal(err)
	}
}

func TestTwoRingsOfOneJournalSeeEveryRevocationAtOnce(t *testing.T) {
	t.Parallel()
	j, appendEvents := openJournal(t)
	one, _ := startRing(t, j, "")
	two, _ := startRing(t, j, "")
	appendEvents("account-a", accountOpened("a"))
	for range 20 {
		at := appendEvents("account-a", secretIssued("k"))
		awaitPosition(t, one, at)
		awaitPosition(t, two, at)
		if !hasKey(one, "k") || !hasKey(two, "k") {
			t.Fatal("issued and not found")
		}
		at = appendEvents("account-a", keyRevoked("k"))
		awaitPosition(t, one, at)
		awaitPosition(t, two, at)
		if hasKey(one, "k") || hasKey(two, "k") {
			t.Fatal("revoked and found")
		}
	}
}

func TestARingOfAJournalGoesOnFromItsSnapshotAndLeavesThatOfAnother(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring")
	j, appendEvents := openJournal(t)
	appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	r, end := startRing(t, j, file)
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	end()
	at := appendEvents("account-a", keyRevoked("k"), secretIssued("j"))
	r, end = startRing(t, j, file)
	awaitPosition(t, r, at)
	if hasKey(r, "k") || !hasKey(r, "j") {
		t.Errorf("revoked %v, issued %v", hasKey(r, "k"), hasKey(r, "j"))
	}
	end()
	other, appendEvents := openJournal(t)
	appendEvents("account-b", accountOpened("b"), secretIssued("i"))
	r, _ = startRing(t, other, file)
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	if hasKey(r, "j") || !hasKey(r, "i") {
		t.Errorf("of the other log %v, of this one %v", hasKey(r, "j"), hasKey(r, "i"))
	}
}

func TestARingIsStaleASecondAfterItsJournalIsClosed(t *testing.T) {
	t.Parallel()
	j, appendEvents := openJournal(t)
	appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	r, _ := startRing(t, j, "")
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Now()
	until(t, "the ring says why it is stale", func() bool { return r.Status(time.Now()).Reason != "" })
	if r.IsFresh(closed.Add(Staleness)) {
		t.Errorf("fresh a second after: %+v", r.Status(closed.Add(Staleness)))
	}
}
