package vault

import (
	"context"
	"fmt"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// CompareNewEvents is what Run does periodically: it compares the database with what was added to the log.
func (b *Bound) CompareNewEvents(ctx context.Context) error { return b.compareNewEvents(ctx) }

// CopyRows is how many rows Copy reads at a time.
const CopyRows = copyRows

// UseElapsedClock has the ages of cache entries run by a clock of the test. It is called before first use.
func (v *Vault) UseElapsedClock(clock func() time.Time) { v.cache.clock = clock }

// InsertRows adds rows with keys at once, which takes long one by one.
func (v *Vault) InsertRows(ctx context.Context, n int) error {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return err
	}
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{Subject: fmt.Sprint("subject-", i), Key: make([]byte, keyLen), Created: table.Instant(i + 1)}
	}
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error { return sqldb.Upsert(ctx, tx, keyTable, rows) })
}

// Scrub is what Run does periodically on Postgres.
func (b *Bound) Scrub(ctx context.Context) { b.scrub(ctx) }
