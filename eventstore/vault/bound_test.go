package vault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
)

// replacedVaults are the ways in which another vault, or none, may be at the address of a log's vault.
func replacedVaults() map[string]struct {
	do   func(f *fixture, t *testing.T)
	want string // what is said
} {
	type attack = struct {
		do   func(f *fixture, t *testing.T)
		want string
	}
	return map[string]attack{
		"deleted": {(*fixture).deleteVault, ""},
		"emptied": {(*fixture).deleteKeys, "emptied"},
		"another": {(*fixture).replaceWithOtherLogs, "belongs to the log"},
		"unbound and another": {func(f *fixture, t *testing.T) {
			f.replaceWithOtherLogs(t)
			f.execStatements(t, "delete from {binding}")
		}, "another log's"},
		"unbound and empty": {func(f *fixture, t *testing.T) {
			f.deleteKeys(t)
			f.execStatements(t, "delete from {binding}")
		}, "empty"},
	}
}

// Whatever was put in the place of the log's vault, no field reads as if it had been erased and no key is made. The right
// vault, put back, opens everything.
func TestAVaultThatIsNotTheLogsIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, attack := range replacedVaults() {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, newAddress(t, address))
				i := f.startChecked(t)
				i.openAccounts(t, "a", "b")
				i.close()
				good := f.backUp(t)
				attack.do(f, t)
				for range 2 {
					f.requireRefusal(t, attack.want)
				}
				good(f)
				f.startChecked(t).requireReadable(t, "a", "b")
				if got := f.countKeys(t); got != 2 {
					t.Errorf("%d keys, want the 2 there were", got)
				}
			})
		}
	})
}

// A vault that is replaced while an instance runs stops its calls until the right one is back.
func TestAVaultThatIsReplacedWhileItServesIsNoticed(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, attack := range replacedVaults() {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, newAddress(t, address))
				i := f.startChecked(t)
				i.openAccounts(t, "a", "b")
				good := f.backUp(t)
				attack.do(f, t)
				if err := i.appendToAccount(t, "c", accountOpened("x")); err == nil {
					t.Error("a key was made before it was noticed")
				}
				i.requireWrongError(t, attack.want)
				i.requireStopped(t, "a")
				good(f)
				if err := i.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				i.requireReadable(t, "a", "b")
				if got := f.countKeys(t); got != 2 {
					t.Errorf("%d keys, want the 2 there were", got)
				}
				if err := i.Ready(t.Context()); err != nil {
					t.Errorf("not ready again: %v", err)
				}
			})
		}
	})
}

// An older copy is refused at the start and while an instance runs, until the newest copy is back.
func TestAnOlderCopyThatLacksKeysIsRefused(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		i := f.startChecked(t)
		i.openAccounts(t, "a")
		older := f.backUp(t)
		i.openAccounts(t, "b", "c")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		good := f.backUp(t)
		older(f)
		f.requireRefusal(t, "lacks the keys of b, c")
		i.requireWrongError(t, "lacks the keys of b, c")
		i.requireStopped(t, "a")
		good(f)
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.requireReadable(t, "a", "b", "c")
		f.startChecked(t).requireReadable(t, "a", "b", "c")
		if got := f.countKeys(t); got != 3 {
			t.Errorf("%d keys, want 3", got)
		}
	})
}

// When the loss of keys is accepted, what was sealed with them is unreadable and does not read as empty.
func TestLostKeysCanBeGivenUp(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, lose := range map[string]func(*fixture, *testing.T){"deleted": (*fixture).deleteVault, "emptied": (*fixture).deleteKeys} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, newAddress(t, address))
				i := f.startChecked(t)
				i.openAccounts(t, "a")
				i.close()
				lose(f, t)
				i = f.startUnchecked(t)
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
				i = f.startChecked(t) // once is enough
				i.requireReadable(t, "b")
				i.requireUnreadable(t, "a")
			})
		}
	})
}

// An older copy of the vault has the keys of subjects that were erased since. The check destroys them again.
func TestErasedStaysErasedWithAnOlderVault(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		i := f.startChecked(t)
		i.openAccounts(t, "a", "b")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		older := f.backUp(t)
		if err := i.appendToAccount(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		if err := i.codec.DestroyKey(t.Context(), "account-a"); err != nil {
			t.Fatal(err)
		}
		older(f)
		i = f.startChecked(t)
		if got, err := i.accountName(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		if err := i.appendSite(t, "a"); !errors.Is(err, eventstore.ErrDestroyed) {
			t.Errorf("written with %v, want ErrDestroyed", err)
		}
		i.requireReadable(t, "b")
		var live int
		db := f.openDatabase(t)
		defer db.Close()
		if err := db.QueryRow(t.Context(), "select count(*) from {data_keys} where subject = 'a' and length(key) > 0").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d keys of the erased account, %v", live, err)
		}
	})
}

// swappableLog is a log that a test replaces with another, as an address may lead to another cluster later.
type swappableLog struct {
	eventstore.Store
	log atomic.Pointer[eventstore.Store]
}

func (s *swappableLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return (*s.log.Load()).ReadAll(ctx, after, want)
}

// Accounts of two logs may have the same id, so an erasure on the wrong log says nothing about a key.
func TestErasuresOfAnotherLogDestroyNoKey(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		log := &swappableLog{Store: f.log}
		log.log.Store(&log.Store)
		f.log = log
		i := f.startChecked(t)
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
		f.startChecked(t).requireReadable(t, "a", "b")
	})
}

// The erasure is on the log, but the vault was unreachable when the key was to be destroyed. A later check destroys it.
func TestAnErasureThatWasCutIsFinished(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		i := f.startChecked(t)
		i.openAccounts(t, "a")
		if err := i.appendToAccount(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		i.close()
		if got := storedKey(t, f.address); len(got) != 32 {
			t.Fatalf("%d bytes of keys before it is finished, want one key", len(got))
		}
		i = f.startChecked(t)
		if got, err := i.accountName(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		db := f.openDatabase(t)
		defer db.Close()
		var live int
		if err := db.QueryRow(t.Context(), "select count(*) from {data_keys} where destroyed = 0").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d keys left, %v", live, err)
		}
	})
}

// A key is missing, is another, or was destroyed although the log holds no erasure. Only its account is unreadable.
func TestOneKeyThatIsLostMakesItsAccountUnreadableAlone(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for name, statement := range map[string]string{
			"missing":   "delete from {data_keys} where subject = 'a'",
			"another":   "update {data_keys} set key = (select key from {data_keys} where subject = 'b') where subject = 'a'",
			"destroyed": "update {data_keys} set key = (select key from {data_keys} where 1 = 0 union all select substr(key, 1, 0) from {data_keys} where subject = 'b'), destroyed = 1 where subject = 'a'",
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, newAddress(t, address))
				i := f.startChecked(t)
				i.openAccounts(t, "a", "b")
				good := f.backUp(t)
				f.execStatements(t, statement)
				i = f.startWithEmptyCache(t)
				i.requireUnreadable(t, "a")
				i.requireReadable(t, "b")
				if got := f.countKeys(t); got > 2 {
					t.Errorf("%d keys, want none made", got)
				}
				good(f)
				i.Check(t.Context())
				i.requireReadable(t, "a", "b")
			})
		}
	})
}

func TestMasterKeysThatAreWrongOrMissingAreRefused(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		for _, bound := range []bool{true, false} {
			t.Run(fmt.Sprint("bound ", bound), func(t *testing.T) {
				f := newFixture(t, newAddress(t, address))
				f.master = bytes.Repeat([]byte{7}, 32)
				i := f.startChecked(t)
				i.openAccounts(t, "a")
				i.close()
				if !bound {
					f.execStatements(t, "delete from {binding}")
				}
				for want, master := range map[string][]byte{"needs its master key": nil, "does not open with this master key": bytes.Repeat([]byte{8}, 32)} {
					f.master = master
					f.requireRefusal(t, want)
				}
				f.master = bytes.Repeat([]byte{7}, 32)
				f.startChecked(t).requireReadable(t, "a")
			})
		}
	})
}

// The first key that is wrapped decides which master key the vault has. Instances with another one are refused.
func TestInstancesOfTwoMasterKeysNeverMixTheirs(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		f.startChecked(t).openAccounts(t, "clear")
		f.master = bytes.Repeat([]byte{7}, 32)
		one := f.startChecked(t)
		f.master = bytes.Repeat([]byte{8}, 32)
		two := f.startChecked(t) // nothing is wrapped yet
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
		f := newFixture(t, address)
		i := f.startChecked(t)
		i.openAccounts(t, "erased", "a", "b")
		if err := errors.Join(i.appendToAccount(t, "erased", event.AccountErased{}), i.codec.DestroyKey(t.Context(), "account-erased")); err != nil {
			t.Fatal(err)
		}
		i.close()
		f.execStatements(t, "delete from {binding}")
		f.startChecked(t).requireReadable(t, "a", "b")
		other := &fixture{log: newLog(t), address: f.address}
		other.requireRefusal(t, "belongs to the log")
	})
}

func TestInstancesThatBeginAtOnceBindTheVaultOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		all := make([]*instance, 6)
		for n := range all {
			all[n] = f.startUnchecked(t)
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
		if got := f.countKeys(t); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
	})
}
