package projector

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// A caller that waits for a read model filled by another instance keeps waiting when the database's clock is set forward: the
// owner renews its lease, which seems long expired, within a fraction of a second.
func TestALeaseThatAClockEndedDoesNotEndTheWait(t *testing.T) {
	for _, c := range []struct {
		name     string
		isFilled bool // by a live owner
		want     error
		takes    time.Duration // at most
	}{
		{"an owner that is alive", true, nil, renewInterval + positionPollInterval},
		{"no owner", false, errOwnerless, ownerlessWait + positionPollInterval},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "readmodels")
			synctest.Test(t, func(t *testing.T) { testWaitAfterClockJump(t, folder, c.isFilled, c.want, c.takes) })
		})
	}
}

func testWaitAfterClockJump(t *testing.T, folder string, isFilled bool, want error, takes time.Duration) {
	registry, err := sqldb.OpenRegistry(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	set := &atomic.Int64{} // by how far the database's clock was set forward
	registry.Simulated.Clock = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
	m := Model{ReadModel: table.AccountModel}
	p := New(memory.New(time.Now), eventstore.NewCodec(nil), registry, m)
	g, err := registry.BuildGeneration(t.Context(), m.ReadModel, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.PromoteGeneration(t.Context(), m.ReadModel, g); err != nil {
		t.Fatal(err)
	}
	db, release, err := registry.OpenGeneration(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	owner := lease{db, "another", false}
	if _, err := owner.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	const position = eventstore.Position(7)
	if isFilled {
		time.AfterFunc(renewInterval, func() {
			if _, err := db.Exec(t.Context(), "update {checkpoint} set position = ?", int64(position)); err != nil || !owner.renew(t.Context()) {
				t.Errorf("the owner cannot go on: %v", err)
			}
		})
	}
	set.Store(int64(16 * 24 * time.Hour))
	begun := time.Now()
	err = p.AwaitPosition(t.Context(), position)
	if took := time.Since(begun); !errors.Is(err, want) || took > takes {
		t.Errorf("got %v after %v, want %v within %v", err, took, want, takes)
	}
}
