package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// binding is the one row that says which log the keys are of, and how far the log was compared with them. It travels with
// the keys: an older copy of the database says by itself what it does not know of.
type binding struct {
	ID       int64  // always 1
	Log      string // the log's UUID, "" for no log yet
	Position int64  // up to here every subject of the log had its key, and every erasure was done,
	Event    string // where this event stands
	Keys     int64  // rows that there are at least
	Version  int64  // rises with every key made or destroyed
	Master   []byte // something that only the master key opens, empty as long as no key is wrapped
}

var bindings = table.Table[binding]{
	Def: table.Def{Name: "binding", Key: 1, Columns: []table.Column{
		{Name: "id", Type: table.Integer}, {Name: "log", Type: table.Text}, {Name: "position", Type: table.Integer},
		{Name: "event", Type: table.Text}, {Name: "keys", Type: table.Integer}, {Name: "version", Type: table.Integer},
		{Name: "master", Type: table.Bytes},
	}},
	Fields: func(r *binding) []any {
		return []any{&r.ID, &r.Log, &r.Position, &r.Event, &r.Keys, &r.Version, &r.Master}
	},
}

// errMoved: the database is not the one that was checked, or no longer what it was then. It has to be checked again.
var errMoved = errors.New("the database of the data keys is not the one that was checked")

// mark is the place of the log that the keys were compared up to.
func (b binding) mark() (eventstore.Mark, error) {
	if b.Position == 0 {
		return eventstore.Mark{}, nil
	}
	log, err := uuid.Parse(b.Log)
	if err != nil {
		return eventstore.Mark{}, err
	}
	id, err := uuid.Parse(b.Event)
	return eventstore.Mark{Log: log, Position: eventstore.Position(b.Position), Event: id}, err
}

// contents are what the database holds, as far as it says whether it is whole.
type contents struct {
	binding
	rows    int64 // all that there are; 0 or 1 where they were not counted
	wrapped *row  // one whose key is wrapped, if any
}

// glance reads the binding and whether there are keys at all.
func (v *Vault) glance(ctx context.Context) (contents, error) {
	return v.read(ctx, "select count(*) from (select 1 from data_keys limit 1) as one")
}

// inspect reads the binding, counts the keys and finds one that is wrapped.
func (v *Vault) inspect(ctx context.Context) (contents, error) {
	c, err := v.read(ctx, "select count(*) from data_keys")
	if err != nil {
		return c, err
	}
	db, err := v.reach(ctx)
	if err != nil {
		return c, err
	}
	found, err := table.Select(ctx, db, keys, "where destroyed = 0 and length(key) <> ? order by created limit 1", keyLen)
	if err == nil && len(found) > 0 {
		c.wrapped = &found[0]
	}
	return c, err
}

func (v *Vault) read(ctx context.Context, count string) (c contents, err error) {
	db, err := v.reach(ctx)
	if err != nil {
		return c, err
	}
	found, err := table.Select(ctx, db, bindings, "")
	if err != nil {
		return c, err
	}
	if len(found) > 0 {
		c.binding = found[0]
	}
	err = db.QueryRow(ctx, count).Scan(&c.rows)
	return c, err
}

// bind makes the database be a log's, unless another instance was faster.
func (v *Vault) bind(ctx context.Context, log uuid.UUID) error {
	db, err := v.reach(ctx)
	if err != nil {
		return err
	}
	return db.Tx(ctx, func(tx *table.Tx) error {
		var rows int64
		if err := tx.QueryRow(ctx, "select count(*) from data_keys").Scan(&rows); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into binding (id, log, position, event, keys, version, master) values (1, ?, 0, '', ?, 1, ?) on conflict do nothing",
			log.String(), rows, []byte{})
		return err
	})
}

// expect has every answer from now on come from a database that is bound as b says.
func (v *Vault) expect(b binding) {
	v.bound.Store(&b)
	v.notice(b.Version)
}

// notice remembers the highest version that was seen: a lower one is an older copy's.
func (v *Vault) notice(version int64) {
	for seen := v.seen.Load(); version > seen; seen = v.seen.Load() {
		if v.seen.CompareAndSwap(seen, version) {
			return
		}
	}
}

// advance notes how far the log was compared with the keys.
func (v *Vault) advance(ctx context.Context, b binding, to eventstore.Mark) error {
	db, err := v.reach(ctx)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, "update binding set position = ?, event = ? where id = 1 and log = ?", int64(to.Position), to.Event.String(), b.Log)
	return err
}

// recount takes the keys that there are for all that there should be.
func (v *Vault) recount(ctx context.Context, rows int64) error {
	db, err := v.reach(ctx)
	if err == nil {
		_, err = db.Exec(ctx, "update binding set keys = ?, version = version + 1 where id = 1", rows)
	}
	return err
}

// enter begins to change keys in a transaction: the row of the binding is this one's until the end, and is what it was when
// it was checked.
func (v *Vault) enter(ctx context.Context, tx *table.Tx) error {
	b := v.bound.Load()
	if b == nil {
		return nil
	}
	before := append([]byte{}, b.Master...)
	after := before
	if len(before) == 0 {
		after = v.wrapper.proof() // the first key that is wrapped says with which master key all are
	}
	n, err := tx.Exec(ctx, "update binding set version = version + 1, master = ? where id = 1 and log = ? and master = ? and version >= ?"+
		" and (keys = 0 or exists (select 1 from data_keys))", after, b.Log, before, b.Version)
	if err == nil && n != 1 {
		err = errMoved
	}
	return err
}

// made notes rows that were added in the transaction.
func (v *Vault) made(ctx context.Context, tx *table.Tx, rows int64) error {
	if v.bound.Load() == nil || rows == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "update binding set keys = keys + ? where id = 1", rows)
	return err
}

// proveMaster leaves something in the database that only the master key opens, before the first key is wrapped with it.
func (v *Vault) proveMaster(ctx context.Context) error {
	db, err := v.reach(ctx)
	if err == nil {
		_, err = db.Exec(ctx, "update binding set master = ?, version = version + 1 where id = 1 and length(master) = 0", v.wrapper.proof())
	}
	return err
}

// lookUp reads a row as the database has it now, together with the binding.
func (v *Vault) lookUp(ctx context.Context, db *table.DB, subject string) (*row, error) {
	expected, seen := v.bound.Load(), v.seen.Load()
	found, err := db.Query(ctx, "select coalesce(b.log, ''), coalesce(b.version, 0), k.key, k.created, k.destroyed from (select 1 as id) as one"+
		" left join binding b on b.id = one.id left join data_keys k on k.subject = ?", subject)
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
	if expected != nil && (log != expected.Log || version < seen) {
		return nil, errMoved
	}
	v.notice(version)
	if created == nil {
		return nil, nil
	}
	return &row{subject, key, table.Instant(*created), table.Instant(*destroyed)}, nil
}
