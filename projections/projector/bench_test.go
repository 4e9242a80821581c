package projector_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

const benchEvents = 100_000

// BenchmarkProjection fills read models from a journal of account and key events that is there already.
func BenchmarkProjection(b *testing.B) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	log, codec := projectortest.OpenJournal(b), eventstore.NewCodec(&projectortest.Vault{})
	end := projectortest.AppendAccounts(b, log, codec, benchEvents/projectortest.EventsPerAccount)
	for name, place := range map[string]func(*testing.B) string{
		"sqlite":   func(b *testing.B) string { return b.TempDir() },
		"postgres": func(b *testing.B) string { return tabletest.NewPostgresDatabase(b) },
	} {
		b.Run(name+"/register", func(b *testing.B) { benchmarkFill(b, log, codec, end, place, account.Model) })
		b.Run(name+"/history", func(b *testing.B) { benchmarkFill(b, log, codec, end, place, audit.Model) })
		b.Run(name+"/both", func(b *testing.B) { benchmarkFill(b, log, codec, end, place, account.Model, audit.Model) })
		b.Run(name+"/rows alone", func(b *testing.B) { benchmarkInserts(b, place) })
	}
}

func benchmarkFill(b *testing.B, log eventstore.Store, codec *eventstore.Codec, end eventstore.Position, place func(*testing.B) string, models ...projector.Model) {
	for b.Loop() {
		b.StopTimer()
		registry, err := table.OpenRegistry(place(b))
		if err != nil {
			b.Fatal(err)
		}
		p := projector.New(log, codec, registry, models...)
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error)
		b.StartTimer()
		go func() { ended <- p.Run(ctx) }()
		for p.AwaitPosition(ctx, end) != nil {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		registry.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(benchEvents)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// benchmarkInserts is the raw limit: rows as wide as those of the audit trail, by inserts of many rows and nothing else.
func benchmarkInserts(b *testing.B, place func(*testing.B) string) {
	for b.Loop() {
		b.StopTimer()
		db, err := table.Open(b.Context(), tabletest.DatabaseAddress(place(b)), table.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Create(b.Context(), table.AuditEntries.Def); err != nil {
			b.Fatal(err)
		}
		batches := benchEntries()
		b.StartTimer()
		for _, rows := range batches {
			if err := db.RunInTx(b.Context(), func(tx *table.Tx) error { return table.Upsert(b.Context(), tx, table.AuditEntries, rows) }); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		db.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(benchEvents)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func benchEntries() [][]table.AuditEntry {
	data, _ := json.Marshal(map[string]string{"key": "k", "label": "server", "hint": "ld_sk_…abcd", "hash": strings.Repeat("x", 43) + "="})
	batches := make([][]table.AuditEntry, benchEvents/500)
	for i := range batches {
		batches[i] = make([]table.AuditEntry, 500)
		for j := range batches[i] {
			n := int64(i*500 + j + 1)
			batches[i][j] = table.AuditEntry{Position: n * 300, Account: "a0001", Recorded: table.Instant(n), Type: "account.secret-key-issued.v1",
				Kind: table.AuditKindKeys, Subject: "a0001-k1", Actor: "token:t1", Reason: "because", Sentence: "issued secret key a0001-k1 (ld_sk_…abcd)", Data: string(data)}
		}
	}
	return batches
}
