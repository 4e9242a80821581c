package projector_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/table"
)

const benchEvents = 100_000

// BenchmarkProjection fills read models from an existing journal of account and key events.
func BenchmarkProjection(b *testing.B) {
	log, codec := projectortest.OpenJournal(b), eventstore.NewCodec(&projectortest.Vault{})
	end := projectortest.AppendAccounts(b, log, codec, benchEvents/projectortest.EventsPerAccount)
	projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) {
		fill := func(models ...projector.Model) func(*testing.B) {
			return func(b *testing.B) {
				projectortest.BenchmarkFill(b, newDatabase, log, end, benchEvents, "events", models...)
			}
		}
		b.Run("register", fill(account.Model))
		b.Run("history", fill(audit.Model))
		b.Run("both", fill(account.Model, audit.Model))
		b.Run("rows alone", func(b *testing.B) {
			projectortest.BenchmarkInserts(b, newDatabase, table.AuditEntries, projectortest.InsertBatches(benchEvents, 500, benchEntry))
		})
	})
}

func benchEntry(n int) table.AuditEntry {
	data, _ := json.Marshal(map[string]string{"key": "k", "label": "server", "hint": "ld_sk_…abcd", "hash": strings.Repeat("x", 43) + "="})
	return table.AuditEntry{Position: int64(n+1) * 300, Account: "a0001", Recorded: table.Instant(n + 1), Type: "account.secret-key-issued.v1",
		Kind: table.AuditKindKeys, Subject: "a0001-k1", Actor: "token:t1", Sentence: "issued secret key a0001-k1 (ld_sk_…abcd)", Data: string(data)}
}
