package projector_test

import (
	"context"
	"sync"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/audit"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// cachingVault is one instance's vault on the keys that all instances share.
type cachingVault struct {
	*projectortest.Vault
	cached sync.Map
}

func (v *cachingVault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if key, ok := v.cached.Load(subject); ok {
		return key.([]byte), nil
	}
	key, err := v.Vault.Key(ctx, subject, create)
	if err == nil {
		v.cached.Store(subject, key)
	}
	return key, err
}

func (v *cachingVault) DestroyKey(ctx context.Context, subject string) error {
	v.cached.Delete(subject)
	return v.Vault.DestroyKey(ctx, subject)
}

func (v *cachingVault) ForgetKeys() { v.cached.Clear() }

// TestWhoeverTakesOverOpensNothingBehindAnErasureWithAKeyFromMemory: the previous owner destroyed the key of an account when
// it reached the erasure. The next owner still has the key in memory, and the events after the erasure were sealed with it.
func TestWhoeverTakesOverOpensNothingBehindAnErasureWithAKeyFromMemory(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		first := s.startInstance(t, audit.Model)
		first.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 1))

		// The writer is an instance of its own: the next owner forgets its keys the moment it takes over.
		keys, writersKeys := &cachingVault{Vault: s.vault}, &cachingVault{Vault: s.vault}
		codec, writer := eventstore.NewCodec(keys), eventstore.NewCodec(writersKeys)
		for _, cached := range []*cachingVault{keys, writersKeys} {
			if _, err := cached.Key(t.Context(), "a000000", false); err != nil {
				t.Fatal(err)
			}
		}
		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		next := s.runProjector(t, projector.New(s.log, codec, registry, audit.Model), registry)
		first.awaitPosition(t, projectortest.Append(t, s.log, s.codec, "account-a000000", event.AccountErased{}))
		first.stop()

		next.awaitPosition(t, projectortest.Append(t, s.log, writer, "account-a000000", event.AccountOpened{Name: "somebody", Plan: "STARTER", Anchor: plan.Date{Year: 2026, Month: 11, Day: 1}}))
		var texts []table.AuditText
		err = registry.Read(t.Context(), table.AuditModel, func(db *sqldb.DB) (err error) {
			texts, err = sqldb.Select(t.Context(), db, table.AuditTexts, "where account = ?", "a000000")
			return err
		})
		if err != nil || len(texts) > 0 {
			t.Errorf("what was typed of an erased account is kept: %+v (%v)", texts, err)
		}
	})
}
