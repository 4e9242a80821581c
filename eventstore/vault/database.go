package vault

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// database is an open database. On SQLite, file identifies the file that was opened (see checkFile).
type database struct {
	*sqldb.DB
	file os.FileInfo
}

// isPostgres reports whether the address names a Postgres server. Otherwise it is the path of a SQLite file.
func (v *Vault) isPostgres() bool { return strings.HasPrefix(v.address, "postgres") }

// openDatabase returns the database, and opens it on the first call. It fails with errDatabaseChanged when the
// SQLite file at the path is no longer the one that was opened: what is written to the opened one would be lost
// when it is closed.
func (v *Vault) openDatabase(ctx context.Context) (*sqldb.DB, error) {
	if d := v.db.Load(); d != nil {
		return d.DB, v.checkFile(d)
	}
	if err := v.openLock.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer v.openLock.Release(1)
	if d := v.db.Load(); d != nil { // another goroutine opened it meanwhile
		return d.DB, v.checkFile(d)
	}
	d, err := v.connect(ctx)
	if err != nil {
		return nil, err
	}
	v.db.Store(d)
	return d.DB, nil
}

// checkFile returns errDatabaseChanged when the file at the path is not the one that was opened.
func (v *Vault) checkFile(d *database) error {
	if d.file == nil {
		return nil
	}
	if current, err := os.Stat(v.address); err != nil || !os.SameFile(current, d.file) {
		return errDatabaseChanged
	}
	return nil
}

// closeIfReplaced closes a database whose file was replaced, and forgets everything that was read from it. The next call
// opens the new file.
func (v *Vault) closeIfReplaced() error {
	d := v.db.Load()
	if d == nil || v.checkFile(d) == nil {
		return nil
	}
	v.forgetDatabase() // first: a call must not find the new file with the binding of the old one
	v.db.Store(nil)
	return d.Close()
}

// forgetDatabase empties the cache and clears the expected binding: what was read before does not count any more.
func (v *Vault) forgetDatabase() {
	v.cache.clear()
	v.expected.Store(nil)
	v.maxVersion.Store(0)
}

// databaseExists reports whether the SQLite file exists. For Postgres it is always true: only opening it can tell.
func (v *Vault) databaseExists() (bool, error) {
	if v.isPostgres() {
		return true, nil
	}
	_, err := os.Stat(v.address)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// connect opens the database and creates its tables. The file is identified before it is opened, so that a
// replacement in between is noticed.
func (v *Vault) connect(ctx context.Context) (*database, error) {
	d := &database{}
	if err := v.createFile(); err != nil {
		return nil, err
	}
	if !v.isPostgres() {
		file, err := os.Stat(v.address)
		if err != nil {
			return nil, err
		}
		d.file = file
	}
	db, err := sqldb.Open(ctx, v.address, sqldb.Options{Name: "data keys", Schema: "vault", Durable: true, SingleFile: true, Simulated: v.Simulated})
	if err != nil {
		return nil, err
	}
	tables := []table.Def{keyTable.Def, bindingTable.Def, leaseTable.Def}
	if v.isPostgres() {
		tables = append(tables, sqldb.ScrubTable)
	}
	if err := db.Create(ctx, tables...); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.DB = db
	return d, nil
}

// createFile creates the SQLite file where it is missing, readable by this user only.
func (v *Vault) createFile() error {
	if v.isPostgres() {
		return nil
	}
	f, err := os.OpenFile(v.address, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// redactedAddress is the address without user and password, for error messages.
func (v *Vault) redactedAddress() string {
	if !v.isPostgres() {
		return v.address
	}
	if u, err := url.Parse(v.address); err == nil {
		return "postgres://" + u.Host + u.Path
	}
	return "Postgres"
}

// lease is a row that says that an instance uses the vault. Every probe extends it; Rewrap refuses to run while there is
// one. Only Postgres needs it: the data folder of a SQLite file has a lock.
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

// ErrInUse means that an instance of the service uses the vault, or did until less than leaseDuration ago.
var ErrInUse = errors.New("an instance of the service is running, or was until a moment ago: stop them all, and try again after 10 seconds")

// renewLease takes or extends the lease of an instance, and deletes those that ran out. Those that end later than any can are
// shortened, see sqldb.Tx.ShortenLeases.
func (v *Vault) renewLease(ctx context.Context, instance string) error {
	if !v.isPostgres() {
		return nil
	}
	db, err := v.openDatabase(ctx)
	if err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if err := tx.ShortenLeases(ctx, leaseTable.Def, leaseDuration); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "delete from {lease} where until < "+db.Now()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into {lease} (instance, until) values (?, "+db.Now()+" + cast(? as bigint))"+
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
	d.Exec(ctx, "delete from {lease} where instance = ?", instance)
}

// shortenLeases shortens the leases from before the database's clock was set back. It has a transaction of its own, because
// one that finds the vault in use is undone, and the lease of an instance that died would never end.
func shortenLeases(ctx context.Context, db *sqldb.DB) error {
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error { return tx.ShortenLeases(ctx, leaseTable.Def, leaseDuration) })
}

// checkUnused returns ErrInUse while any instance has a lease. shortenLeases is called before.
func checkUnused(ctx context.Context, db *sqldb.DB, tx *sqldb.Tx) error {
	var n int
	err := tx.QueryRow(ctx, "select count(*) from {lease} where until > "+db.Now()).Scan(&n)
	if err == nil && n > 0 {
		err = ErrInUse
	}
	return err
}

// scrubInterval is the least time between two scrubs: erasures are gathered.
const scrubInterval = time.Hour

// scrub takes destroyed keys out of the files of a Postgres database, if any was destroyed since the last time, at most once
// an interval. A change of data_keys waits meanwhile.
func (v *Vault) scrub(ctx context.Context) error {
	db, err := v.openDatabase(ctx)
	if err != nil || !v.isPostgres() {
		return err
	}
	_, err = db.Scrub(ctx, sqldb.Scrub{
		Tables: []table.Def{keyTable.Def}, Interval: cmp.Or(v.ScrubInterval, scrubInterval),
		Begin: func(ctx context.Context, tx *sqldb.Tx) error { // as lockBinding, with which every change begins
			_, err := tx.Exec(ctx, "update {binding} set id = id")
			return err
		},
	})
	return err
}
