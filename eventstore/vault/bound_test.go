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
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// world is a log and the vault of its keys.
type world struct {
	log     eventstore.Store
	address string // of the vault
	master  []byte
}

func newWorld(t *testing.T, address string) *world {
	t.Helper()
	return &world{log: newLog(t), address: address}
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

// start is an instance that has not looked at anything yet.
func (w *world) start(t *testing.T) *instance {
	t.Helper()
	v, err := vault.New(tabletest.File(w.address), w.master, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{Bound: vault.Bind(v, w.log, quiet(t)), log: w.log}
	i.codec = eventstore.NewCodec(i.Bound)
	i.close = sync.OnceFunc(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(i.close)
	return i
}

// serve is an instance that found the vault whole.
func (w *world) serve(t *testing.T) *instance {
	t.Helper()
	i := w.start(t)
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// refuses is the reason why an instance does not begin.
func (w *world) refuses(t *testing.T, want string) {
	t.Helper()
	i := w.start(t)
	defer i.close()
	i.isWrong(t, want)
}

// isWrong checks that the vault is refused with a reason.
func (i *instance) isWrong(t *testing.T, want string) {
	t.Helper()
	err := i.Check(t.Context())
	var wrong *vault.WrongError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || wrong.Do == "" {
		t.Errorf("got %v, want the vault refused because it %q, and what to do", err, want)
	}
	if err := i.Ready(t.Context()); err == nil {
		t.Error("ready on a wrong vault")
	}
}

func nameOf(id string) event.Personal { return event.Personal("Société " + id) }

func opening(id string) event.AccountOpened {
	return event.AccountOpened{Account: id, Name: nameOf(id), Plan: plan.Starter, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}
}

// open opens accounts.
func (i *instance) open(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := i.try(t, id, opening(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// try appends an event to the stream of an account.
func (i *instance) try(t *testing.T, id string, e event.Event) error {
	t.Helper()
	return i.tryIn(t, "account-"+id, e)
}

func (i *instance) tryIn(t *testing.T, stream string, e event.Event) error {
	t.Helper()
	batch, err := i.codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{e})
	if err == nil {
		_, err = i.log.Append(t.Context(), stream, eventstore.Any, batch)
	}
	return err
}

func row(id string) event.SitesChanged {
	return event.SitesChanged{Rows: []event.SiteRow{{ExternalID: id, Op: event.SiteCreated, Content: `{"nom":"x"}`}}}
}

// write writes a site of an account.
func (i *instance) write(t *testing.T, id string) error {
	t.Helper()
	return i.tryIn(t, "locations-"+id, row(uuid.NewString()))
}

// name is what an account's first event says.
func (i *instance) name(t *testing.T, id string) (event.Personal, error) {
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

// reads checks that all is readable, and can be written to.
func (i *instance) reads(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if got, err := i.name(t, id); err != nil || got != nameOf(id) {
			t.Errorf("%s: got %q, %v, want its name", id, got, err)
		}
		if err := i.write(t, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// unreadable checks that an account is neither empty nor written to.
func (i *instance) unreadable(t *testing.T, id string) {
	t.Helper()
	if got, err := i.name(t, id); !errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("%s: got %q, %v, want it unreadable", id, got, err)
	}
	if err := i.write(t, id); !errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("%s: written with %v, want it unreadable", id, err)
	}
}

// stopped checks that nothing is sealed or opened.
func (i *instance) stopped(t *testing.T, id string) {
	t.Helper()
	var wrong *vault.WrongError
	if got, err := i.name(t, id); !errors.As(err, &wrong) {
		t.Errorf("got %q, %v, want why the vault is wrong", got, err)
	}
	for _, err := range []error{i.write(t, id), i.try(t, "new-"+id, opening("x"))} {
		if !errors.As(err, &wrong) {
			t.Errorf("written with %v, want why the vault is wrong", err)
		}
	}
}

// database is the vault's, as somebody with a tool of his own sees it.
func (w *world) database(t *testing.T) *table.DB {
	t.Helper()
	db, err := table.Open(t.Context(), tabletest.File(w.address), table.Options{Schema: "vault", Full: true, Single: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (w *world) exec(t *testing.T, statements ...string) {
	t.Helper()
	db := w.database(t)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// made is how many keys there are.
func (w *world) made(t *testing.T) (n int) {
	t.Helper()
	db := w.database(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*) from data_keys").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) remote() bool { return strings.HasPrefix(w.address, "postgres") }

// copied is a copy of the vault that can be put back, anywhere.
func (w *world) copied(t *testing.T) func(into *world) {
	t.Helper()
	if !w.remote() {
		kept, err := os.ReadFile(tabletest.File(w.address))
		if err != nil {
			t.Fatal(err)
		}
		return func(into *world) {
			path := tabletest.File(into.address)
			if err := errors.Join(os.WriteFile(path+".new", kept, 0o600), os.Rename(path+".new", path)); err != nil {
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
	w.exec(t, statements...)
	return func(into *world) {
		if into.address != w.address {
			t.Fatal("copies of a Postgres are put back into it")
		}
		back := []string{"drop schema if exists vault cascade", "create schema vault"}
		for _, table := range []string{"data_keys", "binding", "lease"} {
			back = append(back, fmt.Sprintf("create table vault.%s (like %s.%[1]s including all)", table, name),
				fmt.Sprintf("insert into vault.%s select * from %s.%[1]s", table, name))
		}
		into.exec(t, back...)
	}
}

// gone deletes the vault.
func (w *world) gone(t *testing.T) {
	t.Helper()
	if w.remote() {
		w.exec(t, "drop schema vault cascade")
	} else if err := os.Remove(tabletest.File(w.address)); err != nil {
		t.Fatal(err)
	}
}

// emptied leaves the tables and takes the keys.
func (w *world) emptied(t *testing.T) {
	t.Helper()
	w.exec(t, "delete from data_keys")
}

// stranger puts the vault of another log in this one's place.
func (w *world) stranger(t *testing.T) {
	t.Helper()
	w.gone(t)
	other := &world{log: newLog(t), address: w.address}
	i := other.serve(t)
	i.open(t, "a", "b", "c")
	i.close()
}

// attacks are what may be found in the place of a log's vault.
func attacks() map[string]struct {
	do   func(w *world, t *testing.T)
	want string // what is said
} {
	type attack = struct {
		do   func(w *world, t *testing.T)
		want string
	}
	return map[string]attack{
		"deleted": {(*world).gone, ""},
		"emptied": {(*world).emptied, "emptied"},
		"another": {(*world).stranger, "belongs to the log"},
		"unbound and another": {func(w *world, t *testing.T) {
			w.stranger(t)
			w.exec(t, "delete from binding")
		}, "another log's"},
		"unbound and empty": {func(w *world, t *testing.T) {
			w.emptied(t)
			w.exec(t, "delete from binding")
		}, "empty"},
	}
}

// TestAVaultThatIsNotTheLogsIsRefusedAtStart: whatever was put in its place, nothing is served as if it had been erased, no
// key is made, and the good vault put back opens everything.
func TestAVaultThatIsNotTheLogsIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, attack := range attacks() {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, fresh(t, address))
				i := w.serve(t)
				i.open(t, "a", "b")
				i.close()
				good := w.copied(t)
				attack.do(w, t)
				for range 2 {
					w.refuses(t, attack.want)
				}
				good(w)
				w.serve(t).reads(t, "a", "b")
				if got := w.made(t); got != 2 {
					t.Errorf("%d keys, want the 2 there were", got)
				}
			})
		}
	})
}

// TestAVaultThatIsTakenAwayWhileItServesIsNoticed, and stops nothing for good.
func TestAVaultThatIsTakenAwayWhileItServesIsNoticed(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, attack := range attacks() {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, fresh(t, address))
				i := w.serve(t)
				i.open(t, "a", "b")
				good := w.copied(t)
				attack.do(w, t)
				if err := i.try(t, "c", opening("x")); err == nil {
					t.Error("a key was made before it was noticed")
				}
				i.isWrong(t, attack.want)
				i.stopped(t, "a")
				good(w)
				if err := i.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				i.reads(t, "a", "b")
				if got := w.made(t); got != 2 {
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
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		i := w.serve(t)
		i.open(t, "a")
		older := w.copied(t)
		i.open(t, "b", "c")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		good := w.copied(t)
		older(w)
		w.refuses(t, "lacks the keys of b, c")
		i.isWrong(t, "lacks the keys of b, c")
		i.stopped(t, "a")
		good(w)
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.reads(t, "a", "b", "c")
		w.serve(t).reads(t, "a", "b", "c")
		if got := w.made(t); got != 3 {
			t.Errorf("%d keys, want 3", got)
		}
	})
}

// TestLostKeysCanBeGivenUp, and then what was sealed with them is unreadable, not empty.
func TestLostKeysCanBeGivenUp(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, lose := range map[string]func(*world, *testing.T){"deleted": (*world).gone, "emptied": (*world).emptied} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, fresh(t, address))
				i := w.serve(t)
				i.open(t, "a")
				i.close()
				lose(w, t)
				i = w.start(t)
				i.AcceptLost = true
				if err := i.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				i.unreadable(t, "a")
				if err := i.Reachable(t.Context()); err == nil || !strings.Contains(err.Error(), "a") {
					t.Errorf("got %v, want the account named", err)
				}
				i.open(t, "b")
				i.close()
				i = w.serve(t) // once is enough
				i.reads(t, "b")
				i.unreadable(t, "a")
			})
		}
	})
}

// TestErasedStaysErasedWithAnOlderVault: its keys are destroyed again.
func TestErasedStaysErasedWithAnOlderVault(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		i := w.serve(t)
		i.open(t, "a", "b")
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		older := w.copied(t)
		if err := i.try(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		if err := i.codec.Forget(t.Context(), "account-a"); err != nil {
			t.Fatal(err)
		}
		older(w)
		i = w.serve(t)
		if got, err := i.name(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		if err := i.write(t, "a"); !errors.Is(err, eventstore.ErrDestroyed) {
			t.Errorf("written with %v, want ErrDestroyed", err)
		}
		i.reads(t, "b")
		var live int
		db := w.database(t)
		defer db.Close()
		if err := db.QueryRow(t.Context(), "select count(*) from data_keys where subject = 'a' and length(key) > 0").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d keys of the erased account, %v", live, err)
		}
	})
}

// swapped is a log in whose place there can be another, as behind an address that leads to another cluster.
type swapped struct {
	eventstore.Store
	log atomic.Pointer[eventstore.Store]
}

func (s *swapped) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return (*s.log.Load()).ReadAll(ctx, after, want)
}

// TestErasuresOfAnotherLogDestroyNoKey: accounts of both may bear the same id.
func TestErasuresOfAnotherLogDestroyNoKey(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		log := &swapped{Store: w.log}
		log.log.Store(&log.Store)
		w.log = log
		i := w.serve(t)
		i.open(t, "a", "b")
		if err := i.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := newWorld(t, fresh(t, address))
		j := other.serve(t)
		j.open(t, "a")
		if err := j.try(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		log.log.Store(&other.log)
		var diverged *eventstore.DivergedError
		if err := i.CatchUp(t.Context()); !errors.As(err, &diverged) {
			t.Errorf("got %v, want the other log refused", err)
		}
		log.log.Store(&log.Store)
		i.close()
		w.serve(t).reads(t, "a", "b")
	})
}

// TestAnErasureThatWasCutIsFinished: the log said it, and the vault was away when the key was to be destroyed.
func TestAnErasureThatWasCutIsFinished(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		i := w.serve(t)
		i.open(t, "a")
		if err := i.try(t, "a", event.AccountErased{}); err != nil {
			t.Fatal(err)
		}
		i.close()
		if got := stored(t, w.address); len(got) != 32 {
			t.Fatalf("%d bytes of keys before it is finished, want one key", len(got))
		}
		i = w.serve(t)
		if got, err := i.name(t, "a"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
		db := w.database(t)
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
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, statement := range map[string]string{
			"missing":   "delete from data_keys where subject = 'a'",
			"another":   "update data_keys set key = (select key from data_keys where subject = 'b') where subject = 'a'",
			"destroyed": "update data_keys set key = (select key from data_keys where 1 = 0 union all select substr(key, 1, 0) from data_keys where subject = 'b'), destroyed = 1 where subject = 'a'",
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, fresh(t, address))
				i := w.serve(t)
				i.open(t, "a", "b")
				good := w.copied(t)
				w.exec(t, statement)
				i = w.unchecked(t)
				i.unreadable(t, "a")
				i.reads(t, "b")
				if got := w.made(t); got > 2 {
					t.Errorf("%d keys, want none made", got)
				}
				good(w)
				i.Check(t.Context())
				i.reads(t, "a", "b")
			})
		}
	})
}

// unchecked is an instance that serves and has nothing in its cache, on a vault that was changed behind its back.
func (w *world) unchecked(t *testing.T) *instance {
	t.Helper()
	i := w.start(t)
	i.AcceptLost = true
	if err := i.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestMasterKeysThatAreWrongOrMissingAreRefused(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for _, bound := range []bool{true, false} {
			t.Run(fmt.Sprint("bound ", bound), func(t *testing.T) {
				w := newWorld(t, fresh(t, address))
				w.master = bytes.Repeat([]byte{7}, 32)
				i := w.serve(t)
				i.open(t, "a")
				i.close()
				if !bound {
					w.exec(t, "delete from binding")
				}
				for want, master := range map[string][]byte{"needs its master key": nil, "does not open with this master key": bytes.Repeat([]byte{8}, 32)} {
					w.master = master
					w.refuses(t, want)
				}
				w.master = bytes.Repeat([]byte{7}, 32)
				w.serve(t).reads(t, "a")
			})
		}
	})
}

// TestInstancesOfTwoMasterKeysNeverMixTheirs: the first key that is wrapped decides.
func TestInstancesOfTwoMasterKeysNeverMixTheirs(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		w.serve(t).open(t, "clear")
		w.master = bytes.Repeat([]byte{7}, 32)
		one := w.serve(t)
		w.master = bytes.Repeat([]byte{8}, 32)
		two := w.serve(t) // nothing is wrapped yet
		one.open(t, "a")
		var wrong *vault.WrongError
		if err := two.try(t, "b", opening("x")); !errors.As(err, &wrong) {
			t.Errorf("the second wrapped a key: %v", err)
		}
		one.reads(t, "clear", "a")
	})
}

func TestAVaultFromBeforeBindingsIsBoundOnceItOpensTheLog(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		i := w.serve(t)
		i.open(t, "erased", "a", "b")
		if err := errors.Join(i.try(t, "erased", event.AccountErased{}), i.codec.Forget(t.Context(), "account-erased")); err != nil {
			t.Fatal(err)
		}
		i.close()
		w.exec(t, "delete from binding")
		w.serve(t).reads(t, "a", "b")
		other := &world{log: newLog(t), address: w.address}
		other.refuses(t, "belongs to the log")
	})
}

func TestInstancesThatBeginAtOnceBindTheVaultOnce(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		all := make([]*instance, 6)
		for n := range all {
			all[n] = w.start(t)
		}
		var starts sync.WaitGroup
		for _, i := range all {
			starts.Go(func() {
				if err := i.Check(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if err := i.try(t, "shared", opening("shared")); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		for _, i := range all {
			i.reads(t, "shared")
		}
		if got := w.made(t); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
	})
}

// fresh is an address of the same kind that nothing was put at.
func fresh(t *testing.T, address string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		return tabletest.Postgres(t)
	}
	return t.TempDir()
}
