package projectortest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// RunOnDatabases runs a benchmark on each kind of database, under its name, and without log lines: it silences the default
// logger for the rest of the process. newDatabase makes an empty database and returns its address for sqldb.OpenRegistry.
func RunOnDatabases(b *testing.B, run func(b *testing.B, newDatabase func(*testing.B) string)) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	b.Run("sqlite", func(b *testing.B) { run(b, func(b *testing.B) string { return b.TempDir() }) })
	b.Run("postgres", func(b *testing.B) { run(b, func(b *testing.B) string { return sqldbtest.NewPostgresDatabase(b) }) })
	b.Run("pgbouncer", func(b *testing.B) {
		run(b, func(b *testing.B) string { return sqldbtest.NewPooledDatabase(b, sqldbtest.TransactionPooling) })
	})
}

// BenchmarkFill measures filling models of an empty database up to a position of a log. It reports n units per second, where
// n is how many of them the log holds. Each round fills a new database; making and closing it is not measured.
func BenchmarkFill(b *testing.B, newDatabase func(*testing.B) string, log eventstore.Store, end eventstore.Position, n int, unit string, models ...projector.Model) {
	for b.Loop() {
		b.StopTimer()
		registry, err := sqldb.OpenRegistry(newDatabase(b))
		if err != nil {
			b.Fatal(err)
		}
		p := projector.New(log, eventstore.NewCodec(&Vault{}), registry, models...)
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error)
		b.StartTimer()
		go func() { ended <- p.Run(ctx) }()
		AwaitFilled(b, p, end)
		b.StopTimer()
		stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		registry.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), unit+"/s")
}

// AwaitFilled returns once a projector's models hold a position. It retries after every error: AwaitPosition fails while no
// instance fills a generation, as may happen at the start.
func AwaitFilled(b *testing.B, p *projector.Projector, end eventstore.Position) {
	for p.AwaitPosition(b.Context(), end) != nil {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkInserts measures the raw limit of filling: rows as wide as those of a model, written by multi-row inserts and
// nothing else. Each of batches is one transaction. InsertBatches makes them, before the time runs.
func BenchmarkInserts[R any](b *testing.B, newDatabase func(*testing.B) string, t table.Table[R], batches [][]R) {
	n := 0
	for b.Loop() {
		b.StopTimer()
		db, err := sqldb.Open(b.Context(), sqldbtest.DatabaseAddress(newDatabase(b)), sqldb.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Create(b.Context(), t.Def); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, rows := range batches {
			n += len(rows)
			if err := db.RunInTx(b.Context(), func(tx *sqldb.Tx) error { return sqldb.Upsert(b.Context(), tx, t, rows) }); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		db.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

// InsertBatches makes batches of rows for BenchmarkInserts: total rows, batchSize per batch.
func InsertBatches[R any](total, batchSize int, row func(n int) R) [][]R {
	batches := make([][]R, total/batchSize)
	for i := range batches {
		batches[i] = make([]R, batchSize)
		for j := range batches[i] {
			batches[i][j] = row(i*batchSize + j)
		}
	}
	return batches
}
