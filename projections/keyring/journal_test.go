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

// book is a journal, and the end of it.
func book(t *testing.T) (*journal.Journal, func(stream string, events ...event.Event) eventstore.Position) {
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

func await(t *testing.T, r *Ring, at eventstore.Position) {
	t.Helper()
	if err := r.Wait(deadlinetest.Context(t, deadlinetest.Hang), at); err != nil {
		t.Fatal(err)
	}
}

func TestTwoRingsOfOneJournalSeeEveryRevocationAtOnce(t *testing.T) {
	t.Parallel()
	j, say := book(t)
	one, _ := run(t, j, "")
	two, _ := run(t, j, "")
	say("account-a", opened("a"))
	for range 20 {
		at := say("account-a", issueSecret("k"))
		await(t, one, at)
		await(t, two, at)
		if !has(one, "k") || !has(two, "k") {
			t.Fatal("issued and not found")
		}
		at = say("account-a", revoke("k"))
		await(t, one, at)
		await(t, two, at)
		if has(one, "k") || has(two, "k") {
			t.Fatal("revoked and found")
		}
	}
}

func TestARingOfAJournalGoesOnFromItsSnapshotAndLeavesThatOfAnother(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring")
	j, say := book(t)
	say("account-a", opened("a"), issueSecret("k"))
	r, end := run(t, j, file)
	until(t, "the ring is fresh", func() bool { return fresh(r) })
	end()
	at := say("account-a", revoke("k"), issueSecret("j"))
	r, end = run(t, j, file)
	await(t, r, at)
	if has(r, "k") || !has(r, "j") {
		t.Errorf("revoked %v, issued %v", has(r, "k"), has(r, "j"))
	}
	end()
	other, say := book(t)
	say("account-b", opened("b"), issueSecret("i"))
	r, _ = run(t, other, file)
	until(t, "the ring is fresh", func() bool { return fresh(r) })
	if has(r, "j") || !has(r, "i") {
		t.Errorf("of the other log %v, of this one %v", has(r, "j"), has(r, "i"))
	}
}

func TestARingIsStaleASecondAfterItsJournalIsClosed(t *testing.T) {
	t.Parallel()
	j, say := book(t)
	say("account-a", opened("a"), issueSecret("k"))
	r, _ := run(t, j, "")
	until(t, "the ring is fresh", func() bool { return fresh(r) })
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Now()
	until(t, "the ring says why it is stale", func() bool { return r.Status(time.Now()).Reason != "" })
	if r.Fresh(closed.Add(Staleness)) {
		t.Errorf("fresh a second after: %+v", r.Status(closed.Add(Staleness)))
	}
}
