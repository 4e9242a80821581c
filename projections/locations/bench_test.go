package locations_test

import (
	"context"
	"fmt"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/projections/audit"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

const (
	benchAccounts = 10
	benchSites    = 10_000 // of each
)

// BenchmarkProjection fills the sites, the audit trail and both from an existing journal of syncs: with the first sync of
// each account, and with a second one that updates every site. The raw limit is the rows alone, written by multi-row inserts
// and nothing else.
func BenchmarkProjection(b *testing.B) {
	const rows = benchAccounts * benchSites
	projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) {
		for what, models := range map[string][]projector.Model{
			"inventory": {locations.Model(false)}, "outbox": {locations.Model(true)}, "history": {audit.Model}, "both": {locations.Model(false), audit.Model},
		} {
			for syncs, version := range []string{"first", "twice"} {
				b.Run(what+"/"+version, func(b *testing.B) {
					log, end := journalOfSyncs(b, eventstore.NewCodec(&projectortest.Vault{}), syncs+1)
					projectortest.BenchmarkFill(b, newDatabase, log, end, (syncs+1)*rows, "rows", models...)
				})
			}
		}
		b.Run("rows alone/site", func(b *testing.B) {
			projectortest.BenchmarkInserts(b, newDatabase, table.Sites, projectortest.InsertBatches(rows, benchSites, benchSite))
		})
		b.Run("rows alone/entry", func(b *testing.B) {
			projectortest.BenchmarkInserts(b, newDatabase, table.AuditEntries, projectortest.InsertBatches(rows, benchSites, benchEntry))
		})
	})
}

// journalOfSyncs returns a journal with n syncs of each account.
func journalOfSyncs(b *testing.B, codec *eventstore.Codec, syncs int) (log eventstore.Store, end eventstore.Position) {
	log = projectortest.OpenJournal(b)
	for i := range syncs {
		for a := range benchAccounts {
			stream, op := fmt.Sprint("locations-a", a), event.SiteUpdated
			if i == 0 {
				projectortest.Append(b, log, codec, stream, event.ReferentialOpened{Code: code})
				op = event.SiteCreated
			}
			end = projectortest.AppendSync(b, log, codec, stream, sitesWritten(benchSites), projectortest.SiteRows(op, int64(i+1), benchSites))
		}
	}
	return log, end
}

// BenchmarkSync measures from the commit of 10,000 rows until all awaited read models show it: for the first sync of an
// account, and for one that changes every site.
func BenchmarkSync(b *testing.B) {
	projectortest.RunOnDatabases(b, func(b *testing.B, newDatabase func(*testing.B) string) {
		for what, models := range map[string][]projector.Model{
			"inventory": {locations.Model(false)}, "history": {audit.Model}, "both": {locations.Model(false), audit.Model},
		} {
			for i, op := range []string{event.SiteCreated, event.SiteUpdated} {
				b.Run(what+"/"+op, func(b *testing.B) { benchmarkSync(b, newDatabase(b), i, models) })
			}
		}
	})
}

func benchmarkSync(b *testing.B, address string, updates int, models []projector.Model) {
	log, codec := projectortest.OpenJournal(b), eventstore.NewCodec(&projectortest.Vault{})
	p := projector.New(log, codec, openRegistry(b, address), models...)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	written := sitesWritten(benchSites)
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		stream := fmt.Sprint("locations-a", n)
		projectortest.Append(b, log, codec, stream, event.ReferentialOpened{Code: code})
		for i := range updates {
			at := projectortest.AppendSync(b, log, codec, stream, written, projectortest.SiteRows(event.SiteCreated, int64(i+1), benchSites))
			projectortest.AwaitFilled(b, p, at)
		}
		op := event.SiteCreated
		if updates > 0 {
			op = event.SiteUpdated
		}
		commit := projectortest.AppendStagedRows(b, log, codec, stream, written, projectortest.SiteRows(op, 2, benchSites))
		b.StartTimer()
		projectortest.AwaitFilled(b, p, projectortest.Append(b, log, codec, stream, commit))
	}
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

func openRegistry(b *testing.B, address string) *sqldb.Registry {
	s, err := sqldb.OpenRegistry(address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func benchSite(n int) table.Site {
	account, id := fmt.Sprint("a", n/benchSites), fmt.Sprintf("shop-%05d", n%benchSites)
	return table.Site{ID: table.SiteID(account, code, id), Account: account, Referential: code, ExternalID: id, PublicID: "b3c0de00-0000-5000-8000-" + fmt.Sprintf("%012d", n),
		Active: true, Version: 1, Content: string(projectortest.SiteContent(n)), Created: 1, Modified: 1, Position: int64(n / benchSites)}
}

func benchEntry(n int) table.AuditEntry {
	account, id := fmt.Sprint("a", n/benchSites), fmt.Sprintf("shop-%05d", n%benchSites)
	return table.AuditEntry{Position: int64(n), Account: account, Recorded: 1, Type: "sync.staged.v1", Kind: "sites", Subject: "magasins/" + id,
		Actor: "token:t1", Sentence: "created site " + id + " of magasins (version 1)", Data: `{"externalId":"` + id + `","site":"b3c0de00-0000-5000-8000-000000000000","op":"created","version":1}`}
}
