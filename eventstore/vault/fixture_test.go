package vault_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// fixture is a log and the vault of its keys.
type fixture struct {
	log     eventstore.Store
	address string // of the vault
	master  []byte
}

func newFixture(t *testing.T, address string) *fixture {
	t.Helper()
	return &fixture{log: newLog(t), address: address}
}

func newLog(t testing.TB) eventstore.Store {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// instance is the part of one running service that uses the vault and the log.
type instance struct {
	*vault.Bound
	codec *eventstore.Codec
	log   eventstore.Store
	close func()
}

// startUnchecked is an instance before its first check. It may have what a simulation has of its own.
func (f *fixture) startUnchecked(t *testing.T, simulated ...sqldb.Simulated) *instance {
	t.Helper()
	v, err := vault.New(sqldbtest.DatabaseAddress(f.address), f.master, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range simulated {
		v.Simulated = s
	}
	i := &instance{Bound: vault.Bind(v, f.log, testLogger(t)), log: f.log}
	i.codec = eventstore.NewCodec(i.Bound)
	i.close = sync.OnceFunc(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(i.close)
	return i
}

// startChecked is an instance whose first check succeeded.
func (f *fixture) startChecked(t *testing.T) *instance {
	t.Helper()
	i := f.startUnchecked(t)
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// requireRefusal checks the reason why a new instance refuses the vault.
func (f *fixture) requireRefusal(t *testing.T, want string) {
	t.Helper()
	i := f.startUnchecked(t)
	defer i.close()
	i.requireWrongError(t, want)
}

// requireWrongError checks that the vault is refused with a reason.
func (i *instance) requireWrongError(t *testing.T, want string) {
	t.Helper()
	err := i.Check(t.Context())
	var wrong *vault.WrongError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || wrong.Remedy == "" {
		t.Errorf("got %v, want the vault refused because it %q, and what to do", err, want)
	}
	if err := i.Ready(t.Context()); err == nil {
		t.Error("ready on a wrong vault")
	}
}

func accountNameOf(id string) event.Personal { return event.Personal("Société " + id) }

func accountOpened(id string) event.AccountOpened {
	return event.AccountOpened{Account: id, Name: accountNameOf(id), Plan: plan.Starter, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}
}

// openAccounts opens accounts.
func (i *instance) openAccounts(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := i.appendToAccount(t, id, accountOpened(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// appendToAccount appends an event to the stream of an account.
func (i *instance) appendToAccount(t *testing.T, id string, e event.Event) error {
	t.Helper()
	return i.appendToStream(t, "account-"+id, e)
}

func (i *instance) appendToStream(t *testing.T, stream string, e event.Event) error {
	t.Helper()
	batch, err := i.codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{e})
	if err == nil {
		_, err = i.log.Append(t.Context(), stream, eventstore.Any, batch)
	}
	return err
}

func siteChange(id string) event.SitesChanged {
	return event.SitesChanged{Rows: []event.SiteRow{{ExternalID: id, Operation: event.SiteCreated, Content: `{"nom":"x"}`}}}
}

// appendSite writes a site of an account.
func (i *instance) appendSite(t *testing.T, id string) error {
	t.Helper()
	return i.appendToStream(t, "locations-"+id, siteChange(uuid.NewString()))
}

// accountName reads the sealed name in an account's first event.
func (i *instance) accountName(t *testing.T, id string) (event.Personal, error) {
	t.Helper()
	for r, err := range i.log.ReadStream(t.Context(), "account-"+id, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := i.codec.Decode(t.Context(), r)
		if err != nil {
			return "", err
		}
		return e.(event.AccountOpened).Name, nil
	}
	t.Fatalf("account %s is not on the log", id)
	return "", nil
}

// requireReadable checks that all is readable, and can be written to.
func (i *instance) requireReadable(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if got, err := i.accountName(t, id); err != nil || got != accountNameOf(id) {
			t.Errorf("%s: got %q, %v, want its name", id, got, err)
		}
		if err := i.appendSite(t, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// requireUnreadable checks that an account is neither empty nor written to.
func (i *instance) requireUnreadable(t *testing.T, id string) {
	t.Helper()
	if got, err := i.accountName(t, id); !errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("%s: got %q, %v, want it unreadable", id, got, err)
	}
	if err := i.appendSite(t, id); !errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("%s: written with %v, want it unreadable", id, err)
	}
}

// requireStopped checks that nothing is sealed or opened.
func (i *instance) requireStopped(t *testing.T, id string) {
	t.Helper()
	var wrong *vault.WrongError
	if got, err := i.accountName(t, id); !errors.As(err, &wrong) {
		t.Errorf("got %q, %v, want why the vault is wrong", got, err)
	}
	for _, err := range []error{i.appendSite(t, id), i.appendToAccount(t, "new-"+id, accountOpened("x"))} {
		if !errors.As(err, &wrong) {
			t.Errorf("written with %v, want why the vault is wrong", err)
		}
	}
}

// openDatabase opens the vault's database without the vault, as an operator with a database tool does.
func (f *fixture) openDatabase(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(f.address), sqldb.Options{Schema: "vault", Durable: true, SingleFile: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (f *fixture) execStatements(t *testing.T, statements ...string) {
	t.Helper()
	db := f.openDatabase(t)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// countKeys counts the rows of the keys.
func (f *fixture) countKeys(t *testing.T) (n int) {
	t.Helper()
	db := f.openDatabase(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*) from {data_keys}").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *fixture) isPostgres() bool { return strings.HasPrefix(f.address, "postgres") }

// backUp copies the vault. The function that it returns puts the copy in the place of a vault.
func (f *fixture) backUp(t *testing.T) func(into *fixture) {
	t.Helper()
	if !f.isPostgres() {
		data, err := os.ReadFile(sqldbtest.DatabaseAddress(f.address))
		if err != nil {
			t.Fatal(err)
		}
		return func(into *fixture) {
			path := sqldbtest.DatabaseAddress(into.address)
			if err := errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := "copy" + strings.ReplaceAll(uuid.NewString(), "-", "")
	statements := []string{"create schema " + name}
	for _, table := range []string{"data_keys", "binding", "lease"} {
		statements = append(statements, fmt.Sprintf("create table %s.%s (like vault.%[2]s including all)", name, table),
			fmt.Sprintf("insert into %s.%s select * from vault.%[2]s", name, table))
	}
	f.execStatements(t, statements...)
	return func(into *fixture) {
		if into.address != f.address {
			t.Fatal("copies of a Postgres are put back into it")
		}
		back := []string{"drop schema if exists vault cascade", "create schema vault"}
		for _, table := range []string{"data_keys", "binding", "lease"} {
			back = append(back, fmt.Sprintf("create table vault.%s (like %s.%[1]s including all)", table, name),
				fmt.Sprintf("insert into vault.%s select * from %s.%[1]s", table, name))
		}
		into.execStatements(t, back...)
	}
}

// deleteVault deletes the vault.
func (f *fixture) deleteVault(t *testing.T) {
	t.Helper()
	if f.isPostgres() {
		f.execStatements(t, "drop schema vault cascade")
	} else if err := os.Remove(sqldbtest.DatabaseAddress(f.address)); err != nil {
		t.Fatal(err)
	}
}

// deleteKeys deletes all keys and leaves the tables.
func (f *fixture) deleteKeys(t *testing.T) {
	t.Helper()
	f.execStatements(t, "delete from {data_keys}")
}

// replaceWithOtherLogs replaces the vault with that of another log.
func (f *fixture) replaceWithOtherLogs(t *testing.T) {
	t.Helper()
	f.deleteVault(t)
	other := &fixture{log: newLog(t), address: f.address}
	i := other.startChecked(t)
	i.openAccounts(t, "a", "b", "c")
	i.close()
}

// startWithEmptyCache starts an instance that is valid and has an empty cache, on a vault that another program has changed.
func (f *fixture) startWithEmptyCache(t *testing.T) *instance {
	t.Helper()
	i := f.startUnchecked(t)
	i.AcceptLostKeys = true
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// newAddress is the address of another, empty place for a vault on the same kind of database.
func newAddress(t *testing.T, address string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		return sqldbtest.NewPostgresDatabase(t)
	}
	return t.TempDir()
}

// testLogger writes log lines to the test's output.
func testLogger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
