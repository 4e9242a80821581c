package vault_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/vault"
	"lieudit/schemas/event"
	"lieudit/schemas/table/tabletest"
)

func master(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// rewrap changes the master key, and the one that instances are started with.
func (w *world) rewrap(t *testing.T, to []byte) int {
	t.Helper()
	n, err := vault.Rewrap(t.Context(), tabletest.File(w.address), w.master, to)
	if err != nil {
		t.Fatal(err)
	}
	w.master = to
	return n
}

func TestRewrapWrapsKeysInClearAndChangesTheMasterKey(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		i := w.serve(t)
		i.open(t, "a", "b", "erased")
		if err := errors.Join(i.try(t, "erased", event.AccountErased{}), i.codec.Forget(t.Context(), "account-erased")); err != nil {
			t.Fatal(err)
		}
		i.close()
		inClear := stored(t, w.address)
		if n := w.rewrap(t, master(1)); n != 2 {
			t.Errorf("%d keys wrapped, want 2", n)
		}
		if n := w.rewrap(t, master(2)); n != 2 {
			t.Errorf("%d keys wrapped again, want 2", n)
		}
		for at := 0; at < len(inClear); at += 32 {
			if bytes.Contains(stored(t, w.address), inClear[at:at+32]) {
				t.Error("a key is still stored in clear")
			}
			if !w.remote() && inFiles(t, w.address, inClear[at:at+32]) {
				t.Error("a key is still in a file in clear")
			}
		}
		for _, old := range [][]byte{nil, master(1)} {
			w.master = old
			w.refuses(t, "master key")
		}
		w.master = master(2)
		i = w.serve(t)
		i.reads(t, "a", "b")
		if got, err := i.name(t, "erased"); err != nil || got != "" {
			t.Errorf("got %q, %v, want it erased", got, err)
		}
	})
}

func TestRewrapChangesAllOrNothing(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := newWorld(t, address)
		w.master = master(1)
		i := w.serve(t)
		for n := range 3 {
			i.open(t, string(rune('a'+n)))
		}
		i.close()
		w.exec(t, "update data_keys set key = (select key from data_keys where subject = 'a') where subject = 'c'") // does not open for c
		before := stored(t, w.address)
		for name, old := range map[string][]byte{"a key that does not open": master(1), "the wrong old key": master(2), "no old key": nil} {
			if _, err := vault.Rewrap(t.Context(), tabletest.File(w.address), old, master(3)); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if !bytes.Equal(stored(t, w.address), before) {
			t.Error("keys were changed")
		}
		w.serve(t).reads(t, "a", "b")
	})
}

func TestRewrapNeedsAVaultAndAnotherKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := vault.Rewrap(t.Context(), path, nil, master(1)); err == nil || !strings.Contains(err.Error(), "there is none at "+path) {
		t.Errorf("got %v, want that there is no vault", err)
	}
	for _, to := range [][]byte{nil, master(1)} {
		if _, err := vault.Rewrap(t.Context(), path, master(1), to); err == nil || !strings.Contains(err.Error(), "new master key") {
			t.Errorf("got %v, want what is wrong with the new key", err)
		}
	}
}

// TestRewrapIsRefusedWhileAnInstanceRuns, and an instance that did not notice makes no key that nobody could open.
func TestRewrapIsRefusedWhileAnInstanceRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tabletest.Postgres(t))
	i := w.serve(t)
	i.open(t, "a")
	if _, err := vault.Rewrap(t.Context(), w.address, nil, master(1)); !errors.Is(err, vault.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse", err)
	}
	w.exec(t, "delete from lease") // as if it had stood still for long
	if _, err := vault.Rewrap(t.Context(), w.address, nil, master(1)); err != nil {
		t.Fatal(err)
	}
	var wrong *vault.WrongError
	if err := i.try(t, "b", opening("b")); !errors.As(err, &wrong) {
		t.Errorf("it made a key: %v", err)
	}
	if got := w.made(t); got != 1 {
		t.Errorf("%d keys, want 1", got)
	}
	if err := i.write(t, "a"); err == nil || errors.Is(err, eventstore.ErrUnreadable) {
		t.Errorf("got %v, want why the vault is wrong", err)
	}
	w.master = master(1)
	w.serve(t).reads(t, "a")
}
