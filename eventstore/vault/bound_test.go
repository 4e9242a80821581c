package vault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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

// instance is what one running service has of both.
type instance struct {
	*vault.Bound
	codec *eventstore.Codec
	log   eventstore.Store
	close func()
}

// startUnchecked is an instance that has not looked at anything yet.
func (w *fixture) startUnchecked(t *testing.T) *instance {
	t.Helper()
	v, err := vault.New(sqldbtest.DatabaseAddress(w.address), w.master, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{Bound: vault.Bind(v, w.log, testLogger(t)), log: w.log}
	i.codec = eventstore.NewCodec(i.Bound)
	i.close = sync.OnceFunc(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(i.close)
	return i
}

// startChecked is an instance that found the vault whole.
func (w *fixture) startChecked(t *testing.T) *instance {
	t.Helper()
	i := w.startUnchecked(t)
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// requireRefusal is the reason why an instance does not begin.
func (w *fixture) requireRefusal(t *testing.T, want string) {
	t.Helper()
	i := w.startUnchecked(t)
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

func row(id string) event.SitesChanged {
	return event.SitesChanged{Rows: []event.SiteRow{{ExternalID: id, Operation: event.SiteCreated, Content: `{"nom":"x"}`}}}
}

// appendSite writes a site of an account.
func (i *instance) appendSite(t *testing.T, id string) error {
	t.Helper()
	return i.appendToStream(t, "locations-"+id, row(uuid.NewString()))
}

// accountName is what an account's first event says.
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

// openDatabase is the vault's, as somebody with a tool of his own sees it.
func (w *fixture) openDatabase(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(w.address), sqldb.Options{Schema: "vault", Durable: true, SingleFile: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (w *fixture) execStatements(t *testing.T, statements ...string) {
	t.Helper()
	db := w.openDatabase(t)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// countKeys is how many keys there are.
func (w *fixture) countKeys(t *testing.T) (n int) {
	t.Helper()
	db := w.openDatabase(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*) from data_keys").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *fixture) isPostgres() bool { return strings.HasPrefix(w.address, "postgres") }

// backUp is a copy of the vault that can be put back, anywhere.
func (w *fixture) backUp(t *testing.T) func(into *fixture) {
	t.Helper()
	if !w.isPostgres() {
		data, err := os.ReadFile(sqldbtest.DatabaseAddress(w.address))
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
	w.execStatements(t, statements...)
	return func(into *fixture) {
		if into.address != w.address {
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
func (w *fixture) deleteVault(t *testing.T) {
	t.Helper()
	if w.isPostgres() {
		w.execStatements(t, "drop schema vault cascade")
	} else if err := os.Remove(sqldbtest.DatabaseAddress(w.address)); err != nil {
		t.Fatal(err)
	}
}

// deleteKeys leaves the tables and takes the keys.
func (w *fixture) deleteKeys(t *testing.T) {
	t.Helper()
	w.execStatements(t, "delete from data_keys")
}

// replaceWithOtherLogs puts the vault of another log in this one's place.
func (w *fixture) replaceWithOtherLogs(t *testing.T) {
	t.Helper()
	w.deleteVault(t)
	other := &fixture{log: newLog(t), address: w.address}
	i := other.startChecked(t)
	i.openAccounts(t, "a", "b", "c")
	i.close()
}

// replacedVaults are what may be found in the place of a log's vault.
func replacedVaults() map[string]struct {
	do   func(w *fixture, t *testing.T)
	want string // what is said
} {
	type attack = struct {
		do   func(w *fixture, t *testing.T)
		want string
	}
	return map[string]attack{
		"deleted": {(*fixture).deleteVault, ""},
		"emptied": {(*fixture).deleteKeys, "emptied"},
		"another": {(*fixture).replaceWithOtherLogs, "belongs to the log"},
		"unbound and another": {func(w *fixture, t *testing.T) {
			w.replaceWithOtherLogs(t)
			w.execStatements(t, "delete from binding")
		}, "another log's"},
		"unbound and empty": {func(w *fixture, t *testing.T) {
			w.deleteKeys(t)
			w.execStatements(t, "delete from binding")
		}, "empty"},
	}
}

// TestAVaultThatIsNotTheLogsIsRefusedAtStart: whatever was put in its place, nothing is served as if it had been erased, no
// key is made, and the good vault put back opens everything.
func TestAVaultThatIsNotTheLogsIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, attack := range replacedVaults() {
			t.Run(name, func(t *testing.T) {
				w := newFixture(t, newAddress(t, address))
				i := w.startChecked(t)
				i.openAccounts(t, "a", "b")
				i.close()
				good := w.backUp(t)
				attack.do(w, t)
				for range 2 {
					w.requireRefusal(t, attack.want)
				}
				good(w)
				w.startChecked(t).requireReadable(t, "a", "b")
				if got := w.countKeys(t); got != 2 {
					t.Errorf("%d keys, want the 2 there were", got)
				}
			})
		}
	})
}

// TestAVaultThatIsTakenAwayWhileItServesIsNoticed, and stops nothing for good.
func TestAVaultThatIsTakenAwayWhileItServesIsNoticed(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, attack := range replacedVaults() {
			t.Run(name, func(t *testing.T) {
				w := newFixture(t, newAddress(t, address))
				i := w.startChecked(t)
				i.openAccounts(t, "a", "b")
				good := w.backUp(t)
				attack.do(w, t)
				if err := i.appendToAccount(t, "c", accountOpened("x")); err == nil {
					t.Error("a key was made before it was noticed")
				}
				i.requireWrongError(t, attack.want)
				i.requireStopped(t, "a")
				good(w)
				if err := i.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				i.requireReadable(t, "a", "b")
				if got := w.countKeys(t); got != 2 {
					t.Errorf("%d keys, want the 2 there were", got)
				}
				if err := i.Ready(t.Context()); err != nil {
					t.Errorf("not ready again: %v", err)
				}
			})
		}
	})
}

// TestAnOlderCopyThatLacksKeysIsRefused until the newest one is back, at the start and while it serves.
func TestAnOlderCopyThatLacksKeysIsRefused(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		i := w.startChecked(t)
		i.openAccounts(t, "a")
		older := w.backUp(t)
		i.openAccounts(t, "b", "c")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		good := w.backUp(t)
		older(w)
		w.requireRefusal(t, "lacks the keys of b, c")
		i.requireWrongError(t, "lacks the keys of b, c")
		i.requireStopped(t, "a")
		good(w)
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.requireReadable(t, "a", "b", "c")
		w.startChecked(t).requireReadable(t, "a", "b", "c")
		if got := w.countKeys(t); got != 3 {
			t.Errorf("%d keys, want 3", got)
		}
	})
}

// TestLostKeysCanBeGivenUp, and then what was sealed with them is unreadable, not empty.
func TestLostKeysCanBeGivenUp(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, lose := range map[string]func(*fixture, *testing.T){"deleted": (*fixture).deleteVault, "emptied": (*fixture).deleteKeys} {
			t.Run(name, func(t *testing.T) {
				w := newFixture(t, newAddress(t, address))
				i := w.startChecked(t)
				i.openAccounts(t, "a")
				i.close()
				lose(w, t)
				i = w.startUnchecked(t)
				i.AcceptLostKeys = true
				if err := i.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				i.requireUnreadable(t, "a")
				if err := i.Reachable(t.Context()); err == nil || !strings.Contains(err.Error(), "a") {
					t.Errorf("got %v, want the account named", err)
				}
				i.openAccounts(t, "b")
				i.close()
				i = w.startChecked(t) // once is enough
				i.requireReadable(t, "b")
				i.requireUnreadable(t, "a")
			})
		}
	})
}

// TestErasedStaysErasedWithAnOlderVault: its keys are destroyed again.
func TestErasedStaysErasedWithAnOlderVault(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		i := w.startChecked(t)
		i.openAccounts(t, "a", "b")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		older := w.backUp(t)
		if err := i.appendToAccount(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		if err := i.codec.DestroyKey(t.Context(), "account-a"); err != nil {
			t.Fatal(err)
		}
		older(w)
		i = w.startChecked(t)
		if got, err := i.accountName(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		if err := i.appendSite(t, "a"); !errors.Is(err, eventstore.ErrDestroyed) {
			t.Errorf("written with %v, want ErrDestroyed", err)
		}
		i.requireReadable(t, "b")
		var live int
		db := w.openDatabase(t)
		defer db.Close()
		if err := db.QueryRow(t.Context(), "select count(*) from data_keys where subject = 'a' and length(key) > 0").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d keys of the erased account, %v", live, err)
		}
	})
}

// swappableLog is a log in whose place there can be another, as behind an address that leads to another cluster.
type swappableLog struct {
	eventstore.Store
	log atomic.Pointer[eventstore.Store]
}

func (s *swappableLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return (*s.log.Load()).ReadAll(ctx, after, want)
}

// TestErasuresOfAnotherLogDestroyNoKey: accounts of both may bear the same id.
func TestErasuresOfAnotherLogDestroyNoKey(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		log := &swappableLog{Store: w.log}
		log.log.Store(&log.Store)
		w.log = log
		i := w.startChecked(t)
		i.openAccounts(t, "a", "b")
		if err := i.CompareNewEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := newFixture(t, newAddress(t, address))
		j := other.startChecked(t)
		j.openAccounts(t, "a")
		if err := j.appendToAccount(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		log.log.Store(&other.log)
		var diverged *eventstore.DivergedError
		if err := i.CompareNewEvents(t.Context()); !errors.As(err, &diverged) {
			t.Errorf("got %v, want the other log refused", err)
		}
		log.log.Store(&log.Store)
		i.close()
		w.startChecked(t).requireReadable(t, "a", "b")
	})
}

// TestAnErasureThatWasCutIsFinished: the log said it, and the vault was away when the key was to be destroyed.
func TestAnErasureThatWasCutIsFinished(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		i := w.startChecked(t)
		i.openAccounts(t, "a")
		if err := i.appendToAccount(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		i.close()
		if got := storedKey(t, w.address); len(got) != 32 {
			t.Fatalf("%d bytes of keys before it is finished, want one key", len(got))
		}
		i = w.startChecked(t)
		if got, err := i.accountName(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		db := w.openDatabase(t)
		defer db.Close()
		var live int
		if err := db.QueryRow(t.Context(), "select count(*) from data_keys where destroyed = 0").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d keys left, %v", live, err)
		}
	})
}

// TestOneKeyThatIsLostMakesItsAccountUnreadableAlone: missing, another, or destroyed though the log erased nothing.
func TestOneKeyThatIsLostMakesItsAccountUnreadableAlone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, statement := range map[string]string{
			"missing":   "delete from data_keys where subject = 'a'",
			"another":   "update data_keys set key = (select key from data_keys where subject = 'b') where subject = 'a'",
			"destroyed": "update data_keys set key = (select key from data_keys where 1 = 0 union all select substr(key, 1, 0) from data_keys where subject = 'b'), destroyed = 1 where subject = 'a'",
		} {
			t.Run(name, func(t *testing.T) {
				w := newFixture(t, newAddress(t, address))
				i := w.startChecked(t)
				i.openAccounts(t, "a", "b")
				good := w.backUp(t)
				w.execStatements(t, statement)
				i = w.startWithEmptyCache(t)
				i.requireUnreadable(t, "a")
				i.requireReadable(t, "b")
				if got := w.countKeys(t); got > 2 {
					t.Errorf("%d keys, want none made", got)
				}
				good(w)
				i.Check(t.Context())
				i.requireReadable(t, "a", "b")
			})
		}
	})
}

// startWithEmptyCache is an instance that serves and has nothing in its cache, on a vault that was changed behind its back.
func (w *fixture) startWithEmptyCache(t *testing.T) *instance {
	t.Helper()
	i := w.startUnchecked(t)
	i.AcceptLostKeys = true
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestMasterKeysThatAreWrongOrMissingAreRefused(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for _, bound := range []bool{true, false} {
			t.Run(fmt.Sprint("bound ", bound), func(t *testing.T) {
				w := newFixture(t, newAddress(t, address))
				w.master = bytes.Repeat([]byte{7}, 32)
				i := w.startChecked(t)
				i.openAccounts(t, "a")
				i.close()
				if !bound {
					w.execStatements(t, "delete from binding")
				}
				for want, master := range map[string][]byte{"needs its master key": nil, "does not open with this master key": bytes.Repeat([]byte{8}, 32)} {
					w.master = master
					w.requireRefusal(t, want)
				}
				w.master = bytes.Repeat([]byte{7}, 32)
				w.startChecked(t).requireReadable(t, "a")
			})
		}
	})
}

// TestInstancesOfTwoMasterKeysNeverMixTheirs: the first key that is wrapped decides.
func TestInstancesOfTwoMasterKeysNeverMixTheirs(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.startChecked(t).openAccounts(t, "clear")
		w.master = bytes.Repeat([]byte{7}, 32)
		one := w.startChecked(t)
		w.master = bytes.Repeat([]byte{8}, 32)
		two := w.startChecked(t) // nothing is wrapped yet
		one.openAccounts(t, "a")
		var wrong *vault.WrongError
		if err := two.appendToAccount(t, "b", accountOpened("x")); !errors.As(err, &wrong) {
			t.Errorf("the second wrapped a key: %v", err)
		}
		one.requireReadable(t, "clear", "a")
	})
}

func TestAVaultFromBeforeBindingsIsBoundOnceItOpensTheLog(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		i := w.startChecked(t)
		i.openAccounts(t, "erased", "a", "b")
		if err := errors.Join(i.appendToAccount(t, "erased", event.AccountErased{}), i.codec.DestroyKey(t.Context(), "account-erased")); err != nil {
			t.Fatal(err)
		}
		i.close()
		w.execStatements(t, "delete from binding")
		w.startChecked(t).requireReadable(t, "a", "b")
		other := &fixture{log: newLog(t), address: w.address}
		other.requireRefusal(t, "belongs to the log")
	})
}

func TestInstancesThatBeginAtOnceBindTheVaultOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		all := make([]*instance, 6)
		for n := range all {
			all[n] = w.startUnchecked(t)
		}
		var starts sync.WaitGroup
		for _, i := range all {
			starts.Go(func() {
				if err := i.Check(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if err := i.appendToAccount(t, "shared", accountOpened("shared")); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		for _, i := range all {
			i.requireReadable(t, "shared")
		}
		if got := w.countKeys(t); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
	})
}

// newAddress is an address of the same kind that nothing was put at.
func newAddress(t *testing.T, address string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		return sqldbtest.NewPostgresDatabase(t)
	}
	return t.TempDir()
}
