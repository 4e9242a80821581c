package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// BenchmarkReconcile reconciles a month of 10,000 accounts with a million requests between them. A tick counts one request,
// as for accounts that send few, or ten. The floor is the log alone: read, decoded, not folded.
func BenchmarkReconcile(b *testing.B) {
	for _, perTick := range []int64{1, 10} {
		b.Run(fmt.Sprintf("%d requests a tick", perTick), func(b *testing.B) {
			log, rows, lines := newBenchLog(b, 10_000, 100/int(perTick), perTick)
			r := reconcile.Reconciler{
				Log: log, Read: openReader(b, rows, lines), WaitForUsage: func(context.Context) {},
				RunningInstances: func(context.Context) (map[string]bool, error) { return nil, nil },
			}
			b.Run("reconcile", func(b *testing.B) {
				for b.Loop() {
					found, err := r.Run(b.Context(), "")
					if err != nil || len(found.Differences) > 0 || found.Requests != 1_000_000 {
						b.Fatalf("%d requests, %d differences, %v", found.Requests, len(found.Differences), err)
					}
				}
			})
			b.Run("log alone", func(b *testing.B) {
				for b.Loop() {
					for s, err := range log.ReadAll(b.Context(), eventstore.Checkpoint{}, eventstore.Filter{"usage", "incarnation"}) {
						if err == nil && s.Kind == eventstore.EventAppeared {
							_, err = event.Decode(s.Event.Type, s.Event.Data)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		})
	}
}

// newBenchLog makes a log of accounts that each have some ticks in one period, and the rows that a read model has of them.
func newBenchLog(b *testing.B, accounts, ticks int, perTick int64) (*journal.Journal, []table.UsagePeriod, []table.UsageLine) {
	log, err := journal.Open(b.TempDir(), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { log.Close() })
	codec := eventstore.NewCodec(noVault{})
	var rows []table.UsagePeriod
	var lines []table.UsageLine
	for a := range accounts {
		id := fmt.Sprintf("account-%05d", a)
		stream, folded := usagefold.StreamName(id, firstDay), usagefold.NewPeriodUsage()
		events := []event.Event{event.UsageOpened{Contract: id, First: firstDay, Next: lastDay, Cap: 1 << 40}}
		for t := range ticks {
			day := plan.DateOf(firstDay.Start().AddDate(0, 0, t%25))
			events = append(events, event.UsageTicked{InstanceID: "0d9e7c1a-5b1f-4d57-9a43-1f2c8d7e6b5a", Sequence: int64(t + 1), Day: day, AsOfRevision: int64(t),
				Counts: []event.UsageCount{{Account: id, Key: id + "-k1", Endpoint: "GET /address/verify", Requests: perTick}}})
		}
		batch, err := codec.Encode(b.Context(), stream, uuid.New(), eventstore.Metadata{}, events)
		if err == nil {
			_, err = log.Append(b.Context(), stream, eventstore.Any, batch)
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range events {
			folded.Apply(e, lastDay.Start())
		}
		rows = append(rows, table.UsagePeriod{Stream: stream, Contract: id, First: firstDay.String(), Next: lastDay.String(), Cap: 1 << 40,
			Used: folded.Used(id), Revision: int64(ticks)})
		for at, n := range folded.Lines {
			lines = append(lines, table.UsageLine{First: firstDay.String(), Account: at.Account, Contract: id, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: n})
		}
	}
	return log, rows, lines
}

// openReader makes a Reader of a SQLite file with these rows.
func openReader(b testing.TB, rows []table.UsagePeriod, lines []table.UsageLine) *usage.Reader {
	registry, db, promote := sqldbtest.NewGeneration(b, b.TempDir(), table.UsageModel)
	err := db.RunInTx(b.Context(), func(tx *sqldb.Tx) error {
		if err := sqldb.Upsert(b.Context(), tx, table.UsagePeriods, rows); err != nil {
			return err
		}
		return sqldb.Upsert(b.Context(), tx, table.UsageLines, lines)
	})
	if err != nil {
		b.Fatal(err)
	}
	promote()
	return usage.New(registry)
}
