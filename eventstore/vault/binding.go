package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// binding is the single row that records which log the keys belong to, and up to which event the log was compared with them.
// It is stored next to the keys, so a restored backup carries its own, older, position and version.
type binding struct {
	ID       int64  // always 1
	Log      string // UUID of the log; "": not bound yet
	Position int64  // up to this position of the log every subject has its key and every erased subject has none
	Event    string // UUID of the event at Position
	Keys     int64  // how many rows data_keys has at least; fewer mean that keys were lost
	Version  int64  // grows with every change of data_keys
	Master   []byte // a proof (see wrapper.proof) of the master key; empty as long as no key is wrapped
}

// bindingTable is the table of the one binding.
var bindingTable = table.Table[binding]{
	Def: table.Def{Name: "binding", KeyColumns: 1, Columns: []table.Column{
		{Name: "id", Type: table.Integer}, {Name: "log", Type: table.Text}, {Name: "position", Type: table.Integer},
		{Name: "event", Type: table.Text}, {Name: "keys", Type: table.Integer}, {Name: "version", Type: table.Integer},
		{Name: "master", Type: table.Bytes},
	}},
	Fields: func(r *binding) []any {
		return []any{&r.ID, &r.Log, &r.Position, &r.Event, &r.Keys, &r.Version, &r.Master}
	},
}

// errDatabaseChanged means that the database was replaced or restored since the last check. It must be checked again
// before it is used. Bound.callVault does so and repeats the call.
var errDatabaseChanged = errors.New("the database of the data keys is not the one that was checked")

// checkpoint returns Position and Event as a checkpoint of the log; the zero checkpoint before the first
// comparison.
func (b binding) checkpoint() (eventstore.Checkpoint, error) {
	if b.Position == 0 {
		return eventstore.Checkpoint{}, nil
	}
	log, err := uuid.Parse(b.Log)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	id, err := uuid.Parse(b.Event)
	return eventstore.Checkpoint{Log: log, Position: eventstore.Position(b.Position), Event: id}, err
}

// databaseState is what a check reads of the database before it decides.
type databaseState struct {
	binding
	rows       int64 // rows of data_keys; readBinding stops counting at 1
	wrappedRow *row  // a row whose key is wrapped; nil: there is none, or readBinding did not look
}

// readBinding reads the binding and whether data_keys has any row. It is cheap: it runs every probeInterval.
func (v *Vault) readBinding(ctx context.Context) (databaseState, error) {
	return v.queryState(ctx, "select count(*) as n from (select 1 from {data_keys} limit 1) as one")
}

// readState reads the binding, counts the rows of data_keys and finds one whose key is wrapped.
func (v *Vault) readState(ctx context.Context) (databaseState, error) {
	state, err := v.queryState(ctx, "select count(*) as n from {data_keys}")
	if err != nil {
		return state, err
	}
	db, err := v.openDatabase(ctx)
	if err != nil {
		return state, err
	}
	found, err := sqldb.Select(ctx, db, keyTable, "where destroyed = 0 and length(key) <> ? order by created limit 1", keyLen)
	if err == nil && len(found) > 0 {
		state.wrappedRow = &found[0]
	}
	return state, err
}

// queryState reads the binding, and the number of rows with the query count. One statement reads both: another instance may bind the
// database and create the first key at any time, and keys without a binding would look like those of another log.
func (v *Vault) queryState(ctx context.Context, count string) (state databaseState, err error) {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return state, err
	}
	err = db.QueryRow(ctx, "select counted.n, coalesce(b.id, 0), coalesce(b.log, ''), coalesce(b.position, 0), coalesce(b.event, ''), coalesce(b.keys, 0),"+
		" coalesce(b.version, 0), b.master from ("+count+") as counted left join {binding} b on b.id = 1").
		Scan(append([]any{&state.rows}, bindingTable.Fields(&state.binding)...)...)
	return state, err
}

// insertBinding binds the database to a log and counts the keys that it holds. If another instance bound it first, that
// binding stays.
func (v *Vault) insertBinding(ctx context.Context, log uuid.UUID) error {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return err
	}
	return db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		var rows int64
		if err := tx.QueryRow(ctx, "select count(*) from {data_keys}").Scan(&rows); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into {binding} (id, log, position, event, keys, version, master) values (1, ?, 0, '', ?, 1, ?) on conflict do nothing",
			log.String(), rows, []byte{})
		return err
	})
}

// setExpectedBinding makes every later lookup and change fail with errDatabaseChanged unless the database has this binding.
func (v *Vault) setExpectedBinding(b binding) {
	v.expected.Store(&b)
	v.raiseVersion(b.Version)
}

// requiredBinding returns the binding that the database must have. The vault of a log has none before its first check, and again while
// a database that has changed is checked: then it fails with errDatabaseChanged. nil: the vault is used without a log.
func (v *Vault) requiredBinding() (*binding, error) {
	b := v.expected.Load()
	if b == nil && v.isBound {
		return nil, errDatabaseChanged
	}
	return b, nil
}

// raiseVersion keeps the highest version that was read. The version of a database only grows, so a lower one shows that
// an older copy was restored.
func (v *Vault) raiseVersion(version int64) {
	for current := v.maxVersion.Load(); version > current; current = v.maxVersion.Load() {
		if v.maxVersion.CompareAndSwap(current, version) {
			return
		}
	}
}

// storeCheckpoint stores up to where the log was compared with the keys. It fails with errDatabaseChanged if an older copy of
// the database was restored since b was read: its keys were not compared.
func (v *Vault) storeCheckpoint(ctx context.Context, b binding, to eventstore.Checkpoint) error {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return err
	}
	n, err := db.Exec(ctx, "update {binding} set position = ?, event = ? where id = 1 and log = ? and version >= ?", int64(to.Position), to.Event.String(), b.Log, b.Version)
	if err == nil && n != 1 {
		err = errDatabaseChanged
	}
	return err
}

// storeKeyCount accepts a loss of keys: the number of rows that are left becomes the expected one.
func (v *Vault) storeKeyCount(ctx context.Context, rows int64) error {
	db, err := v.openDatabase(ctx)
	if err == nil {
		_, err = db.Exec(ctx, "update {binding} set keys = ?, version = version + 1 where id = 1", rows)
	}
	return err
}

// lockBinding begins a change of data_keys in a transaction. Its update locks the row of the binding until the transaction
// ends. It fails with errDatabaseChanged unless the binding is still the one that was checked and keys are still there.
// The statement that waits for the row must not read data_keys: a scrub holds the row while it locks readers out of that
// table, and Postgres would end one of the two as a deadlock.
//
// wrapsKey means that a key is added. A proof of the master key is stored with the first wrapped key; every later key must be
// wrapped with the same master key.
func (v *Vault) lockBinding(ctx context.Context, tx *sqldb.Tx, wrapsKey bool) error {
	b, err := v.requiredBinding()
	if b == nil || err != nil {
		return err
	}
	before := append([]byte{}, b.Master...)
	after := before
	if len(before) == 0 && wrapsKey {
		after = v.wrapper.proof()
	}
	n, err := tx.Exec(ctx, "update {binding} set version = version + 1, master = ? where id = 1 and log = ? and master = ? and version >= ?",
		after, b.Log, before, b.Version)
	if err != nil {
		return err
	}
	lost := n != 1
	if !lost {
		err = tx.QueryRow(ctx, "select b.keys > 0 and not exists (select 1 from {data_keys}) from {binding} b where b.id = 1").Scan(&lost)
	}
	if err == nil && lost {
		err = errDatabaseChanged
	}
	return err
}

// addToKeyCount adds the rows that the transaction has inserted to binding.Keys, by which a later check notices
// rows that were lost.
func (v *Vault) addToKeyCount(ctx context.Context, tx *sqldb.Tx, rows int64) error {
	if v.expected.Load() == nil || rows == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "update {binding} set keys = keys + ? where id = 1", rows)
	return err
}

// storeMasterProof stores a proof of the master key if the binding has none yet: in a vault from before bindings whose keys
// are wrapped.
func (v *Vault) storeMasterProof(ctx context.Context) error {
	db, err := v.openDatabase(ctx)
	if err == nil {
		_, err = db.Exec(ctx, "update {binding} set master = ?, version = version + 1 where id = 1 and length(master) = 0", v.wrapper.proof())
	}
	return err
}

// lookUpRow reads a row and the binding in one query, so that the row is known to come from the database that was
// checked. Otherwise it fails with errDatabaseChanged. nil: the subject has no row.
func (v *Vault) lookUpRow(ctx context.Context, db *sqldb.DB, subject string) (*row, error) {
	expected, err := v.requiredBinding()
	if err != nil {
		return nil, err
	}
	minVersion := v.maxVersion.Load()
	found, err := db.Query(ctx, "select coalesce(b.log, ''), coalesce(b.version, 0), k.key, k.created, k.destroyed from (select 1 as id) as one"+
		" left join {binding} b on b.id = one.id left join {data_keys} k on k.subject = ?", subject)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var log string
	var version int64
	var key []byte
	var created, destroyed *int64
	if !found.Next() {
		return nil, errors.Join(errors.New("no answer"), found.Err())
	}
	if err := found.Scan(&log, &version, &key, &created, &destroyed); err != nil {
		return nil, fmt.Errorf("key of %s: %w", subject, err)
	}
	if expected != nil && (log != expected.Log || version < minVersion) {
		return nil, errDatabaseChanged
	}
	v.raiseVersion(version)
	if created == nil {
		return nil, nil
	}
	return &row{subject, key, table.Instant(*created), table.Instant(*destroyed)}, nil
}
