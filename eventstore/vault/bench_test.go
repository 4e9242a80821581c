package vault_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
)

// BenchmarkReplay reads the keys of many subjects in the order in which they were made, as a reader of the whole log
// needs them.
func BenchmarkReplay(b *testing.B) {
	const subjects = 5000
	for name, address := range map[string]func() string{"sqlite": b.TempDir, "postgres": func() string { return sqldbtest.NewPostgresDatabase(b) }} {
		b.Run(name, func(b *testing.B) {
			address := sqldbtest.DatabaseAddress(address())
			readKeys := func(create bool) {
				v, err := vault.New(address, nil, time.Now)
				if err != nil {
					b.Fatal(err)
				}
				defer v.Close()
				for i := range subjects {
					if _, err := v.Key(b.Context(), fmt.Sprint("account-", i), create); err != nil {
						b.Fatal(err)
					}
				}
			}
			readKeys(true)
			for b.Loop() {
				readKeys(false)
			}
			b.ReportMetric(float64(b.N*subjects)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// BenchmarkCachedKey reads a key that was used a moment ago.
func BenchmarkCachedKey(b *testing.B) {
	v, err := vault.New(sqldbtest.DatabaseAddress(b.TempDir()), nil, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for b.Loop() {
		if _, err := v.Key(b.Context(), "a", true); err != nil {
			b.Fatal(err)
		}
	}
}

// derivedVault gives every subject the key that follows from its name.
type derivedVault struct{}

func (derivedVault) Key(_ context.Context, subject string, _ bool) ([]byte, error) {
	key := sha256.Sum256([]byte(subject))
	return key[:], nil
}
func (derivedVault) DestroyKey(context.Context, string) error { return nil }

func (derivedVault) ForgetKeys() {}

// BenchmarkCheck compares a vault with a log of many accounts: the first time, from the log's beginning, and at every
// start after that.
func BenchmarkCheck(b *testing.B) {
	const accounts = 100_000
	log := newLog(b)
	fillLog(b, log, accounts)
	for name, address := range map[string]func() string{"sqlite": b.TempDir, "postgres": func() string { return sqldbtest.NewPostgresDatabase(b) }} {
		b.Run(name, func(b *testing.B) {
			address := sqldbtest.DatabaseAddress(address())
			check := func() {
				v, err := vault.New(address, nil, time.Now)
				if err != nil {
					b.Fatal(err)
				}
				i := vault.Bind(v, log, slog.New(slog.DiscardHandler))
				defer i.Close()
				if err := i.Check(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			fillVault(b, address, accounts)
			for what, reset := range map[string]string{"first": "update {binding} set position = 0", "again": "update {binding} set keys = keys"} {
				b.Run(what, func(b *testing.B) {
					check()
					db, err := sqldb.Open(b.Context(), address, sqldb.Options{Schema: "vault", SingleFile: true})
					if err != nil {
						b.Fatal(err)
					}
					defer db.Close()
					for b.Loop() {
						b.StopTimer()
						if _, err := db.Exec(b.Context(), reset); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						check()
					}
				})
			}
		})
	}
}

func fillLog(b *testing.B, log eventstore.Store, accounts int) {
	b.Helper()
	codec := eventstore.NewCodec(derivedVault{})
	for n := range accounts {
		id := fmt.Sprintf("a%06d", n)
		batch, err := codec.Encode(b.Context(), "account-"+id, uuid.New(), eventstore.Metadata{}, []event.Event{accountOpened(id), event.AgencyActivated{}, event.AccountClosed{}})
		if err == nil {
			_, err = log.Append(b.Context(), "account-"+id, eventstore.NoStream, batch)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func fillVault(b *testing.B, address string, accounts int) {
	b.Helper()
	v, err := vault.New(address, nil, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	v.Key(b.Context(), "first", true) // makes the tables
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sqldb.Open(b.Context(), address, sqldb.Options{Schema: "vault", SingleFile: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	err = db.RunInTx(b.Context(), func(tx *sqldb.Tx) error {
		for n := range accounts {
			id := fmt.Sprintf("a%06d", n)
			key, _ := derivedVault{}.Key(b.Context(), id, true)
			if _, err := tx.Exec(b.Context(), "insert into {data_keys} (subject, key, created, destroyed) values (?, ?, ?, 0)", id, key, int64(n+1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
