// Package vault keeps the data keys of personal fields in a database of its own making, outside the log, where
// they can be destroyed. Several instances share one and agree on every key; what one destroys, all
// refuse within a minute, so no key is remembered for longer than that.
package vault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// Vault implements eventstore.Vault on Postgres or in a SQLite file, knowing nothing of the log: see Bound. The database may be away when it is opened,
// and come and go later: keys used a moment ago are there all the same.
type Vault struct {
	address string
	wrapper wrapper
	clock   func() time.Time
	cache   cache
	reader  follower

	turn  chan struct{} // holds one when nobody reaches for the database
	db    atomic.Pointer[database]
	bound atomic.Pointer[binding] // what answers must come from, nil as long as that is not known
	seen  atomic.Int64            // the highest version of the binding
}

// database is an open database and, on SQLite, the file it was when it was opened.
type database struct {
	*table.DB
	file os.FileInfo
}

// row is a subject's key. A destroyed one has no key left, and keeps the subject from ever getting another.
type row struct {
	Subject   string
	Key       []byte
	Created   table.Instant
	Destroyed table.Instant
}

var keys = table.Table[row]{
	Def: table.Def{Name: "data_keys", Key: 1, Indexes: []string{"created"}, Columns: []table.Column{
		{Name: "subject", Type: table.Text}, {Name: "key", Type: table.Bytes},
		{Name: "created", Type: table.Moment}, {Name: "destroyed", Type: table.Moment},
	}},
	Fields: func(r *row) []any { return []any{&r.Subject, &r.Key, &r.Created, &r.Destroyed} },
}

// New is the vault at an address: postgres://… or the path of a SQLite file, made when missing. With a
// master key (see ParseMaster) the keys it makes are of no use without it; nil stores them as they are.
func New(address string, master []byte, clock func() time.Time) (*Vault, error) {
	w, err := newWrapper(master)
	if err != nil {
		return nil, err
	}
	v := &Vault{address: address, wrapper: w, clock: clock, cache: cache{clock: clock}, turn: make(chan struct{}, 1)}
	v.turn <- struct{}{}
	return v, nil
}

// Key is the subject's data key, which must not be changed; see eventstore.Vault.
func (v *Vault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if key, known := v.cache.find(subject); known {
		return usable(key)
	}
	asked := v.clock()
	r, err := v.row(ctx, subject, create)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if r == nil {
		return nil, eventstore.ErrNoKey
	}
	var key []byte
	if r.Destroyed == 0 {
		if key, err = v.wrapper.open(subject, r.Key); err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
	}
	if !create && v.reader.follows(*r) {
		v.readAhead(ctx, *r)
	}
	return usable(v.cache.put(subject, key, asked))
}

func usable(key []byte) ([]byte, error) {
	if key == nil {
		return nil, eventstore.ErrDestroyed
	}
	return key, nil
}

// row is what the database holds for a subject, nil for nothing.
func (v *Vault) row(ctx context.Context, subject string, create bool) (*row, error) {
	db, err := v.reach(ctx)
	if err != nil {
		return nil, err
	}
	found, err := v.lookUp(ctx, db, subject)
	if err == nil && found == nil && create {
		if err = v.insert(ctx, db, subject); err == nil {
			found, err = v.lookUp(ctx, db, subject)
		}
	}
	return found, err
}

// insert makes a key, unless another instance was faster: then that one's is the key.
func (v *Vault) insert(ctx context.Context, db *table.DB, subject string) error {
	key := make([]byte, keyLen)
	rand.Read(key) // never fails: the runtime ends the program first
	err := db.Tx(ctx, func(tx *table.Tx) error {
		if err := v.enter(ctx, tx); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, "insert into data_keys (subject, key, created, destroyed) values (?, ?, ?, 0) on conflict do nothing",
			subject, v.wrapper.seal(subject, key), int64(table.At(v.clock())))
		if err != nil {
			return err
		}
		return v.made(ctx, tx, n)
	})
	if err != nil {
		return err
	}
	_, err = v.reach(ctx) // the file that has the key is still the one that is found at its path
	return err
}

// Destroy ends a subject's key, here at once and on the other instances within a minute. A subject that has no
// key will never have one. Backups of the database are beyond its reach.
func (v *Vault) Destroy(ctx context.Context, subject string) error { return v.destroy(ctx, subject) }

func (v *Vault) destroy(ctx context.Context, subjects ...string) error {
	for _, subject := range subjects {
		v.cache.forget(subject)
	}
	db, err := v.reach(ctx)
	if err == nil {
		err = v.overwrite(ctx, db, subjects)
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, subject := range subjects {
		v.cache.put(subject, nil, v.clock())
	}
	return nil
}

func (v *Vault) overwrite(ctx context.Context, db *table.DB, subjects []string) error {
	now := int64(table.At(v.clock()))
	err := db.Tx(ctx, func(tx *table.Tx) error {
		if err := v.enter(ctx, tx); err != nil {
			return err
		}
		for _, subject := range subjects {
			n, err := tx.Exec(ctx, "insert into data_keys (subject, key, created, destroyed) values (?, ?, ?, ?) on conflict do nothing", subject, []byte{}, now, now)
			if err == nil && n == 0 {
				_, err = tx.Exec(ctx, "update data_keys set key = ?, destroyed = ? where subject = ? and destroyed = 0", []byte{}, now, subject)
			}
			if err == nil {
				err = v.made(ctx, tx, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return db.Scrub(ctx)
}

func (v *Vault) remote() bool { return strings.HasPrefix(v.address, "postgres") }

// reach is the database, opened by whoever needs it first. It is errMoved when the file at its path is another than the
// one that was opened: what is written to that may be gone when it is closed.
func (v *Vault) reach(ctx context.Context) (*table.DB, error) {
	if d := v.db.Load(); d != nil {
		return d.DB, v.moved(d)
	}
	select {
	case <-v.turn:
		defer func() { v.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := v.db.Load(); d != nil { // somebody was faster
		return d.DB, v.moved(d)
	}
	d, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	v.db.Store(d)
	return d.DB, nil
}

// moved is errMoved when a database is no longer the one at its path.
func (v *Vault) moved(d *database) error {
	if d.file == nil {
		return nil
	}
	if there, err := os.Stat(v.address); err != nil || !os.SameFile(there, d.file) {
		return errMoved
	}
	return nil
}

// refresh lets go of a database that is no longer the one at its path, and of all that is known from it.
func (v *Vault) refresh() error {
	d := v.db.Load()
	if d == nil || v.moved(d) == nil {
		return nil
	}
	v.db.Store(nil)
	v.forget()
	return d.Close()
}

// forget drops all that is remembered of a database: it is not what it was.
func (v *Vault) forget() {
	v.cache.clear()
	v.bound.Store(nil)
	v.seen.Store(0)
}

// exists says whether there is a database to open. Of a server only opening it tells.
func (v *Vault) exists() (bool, error) {
	if v.remote() {
		return true, nil
	}
	_, err := os.Stat(v.address)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (v *Vault) open(ctx context.Context) (*database, error) {
	d := &database{}
	if err := v.prepare(); err != nil {
		return nil, err
	}
	if !v.remote() {
		file, err := os.Stat(v.address)
		if err != nil {
			return nil, err
		}
		d.file = file
	}
	db, err := table.Open(ctx, v.address, table.Options{Name: "data keys", Schema: "vault", Full: true, Single: true})
	if err != nil {
		return nil, err
	}
	if err := db.Create(ctx, keys.Def, bindings.Def, leases.Def); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.DB = db
	return d, nil
}

// prepare makes a file that nobody else can read.
func (v *Vault) prepare() error {
	if v.remote() {
		return nil
	}
	f, err := os.OpenFile(v.address, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Close frees everything. No call may be running, nor come later.
func (v *Vault) Close() error {
	if d := v.db.Load(); d != nil {
		return d.Close()
	}
	return nil
}

// place is where the database is, without what would let somebody in.
func (v *Vault) place() string {
	if !v.remote() {
		return v.address
	}
	if u, err := url.Parse(v.address); err == nil {
		return "postgres://" + u.Host + u.Path
	}
	return "Postgres"
}
