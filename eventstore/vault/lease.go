package vault

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// lease says that an instance uses the vault. Only Postgres needs it: the data folder of a SQLite file has a lock.
type lease struct {
	Instance string
	Until    table.Instant // end of the lease, by the clock of the database
}

var leaseTable = table.Table[lease]{
	Def:    table.Def{Name: "lease", KeyColumns: 1, Columns: []table.Column{{Name: "instance", Type: table.Text}, {Name: "until", Type: table.Timestamp}}},
	Fields: func(r *lease) []any { return []any{&r.Instance, &r.Until} },
}

// leaseDuration is how long an instance that died still blocks Rewrap, which needs the vault for itself.
const leaseDuration = 10 * time.Second

// ErrInUse: an instance of the service uses the vault.
var ErrInUse = errors.New("an instance of the service is running, or was until a moment ago: stop them all, and try again after 10 seconds")

// renewLease takes or extends the lease of an instance, and deletes those that ran out.
func (v *Vault) renewLease(ctx context.Context, instance string) error {
	if !v.isPostgres() {
		return nil
	}
	db, err := v.openDatabase(ctx)
	if err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, "delete from lease where until < "+db.Now()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into lease (instance, until) values (?, "+db.Now()+" + cast(? as bigint))"+
			" on conflict (instance) do update set until = excluded.until", instance, leaseDuration.Microseconds())
		return err
	})
}

// releaseLease deletes the lease of an instance. It ignores errors: the lease then runs out.
func (v *Vault) releaseLease(instance string) {
	d := v.db.Load()
	if d == nil || !v.isPostgres() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d.Exec(ctx, "delete from lease where instance = ?", instance)
}

// checkUnused returns ErrInUse while any instance has a lease.
func checkUnused(ctx context.Context, db *sqldb.DB, tx *sqldb.Tx) error {
	var n int
	err := tx.QueryRow(ctx, "select count(*) from lease where until > "+db.Now()).Scan(&n)
	if err == nil && n > 0 {
		err = ErrInUse
	}
	return err
}
