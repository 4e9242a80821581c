package vault_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/vault"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t *testing.T, address string, master []byte, now func() time.Time) *vault.Vault {
	t.Helper()
	v, err := vault.New(tabletest.File(address), master, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func key(t *testing.T, v eventstore.Vault, subject string, create bool) []byte {
	t.Helper()
	k, err := v.Key(t.Context(), subject, create)
	if err != nil {
		t.Fatalf("key of %s: %v", subject, err)
	}
	if len(k) != 32 {
		t.Fatalf("key of %d bytes, want 32", len(k))
	}
	return k
}

func refused(t *testing.T, v eventstore.Vault, subject string, create bool) {
	t.Helper()
	if k, err := v.Key(t.Context(), subject, create); !errors.Is(err, eventstore.ErrNoKey) {
		t.Errorf("key of %s: got %x, %v, want ErrNoKey", subject, k, err)
	}
}

func destroy(t *testing.T, v eventstore.Vault, subject string) {
	t.Helper()
	if err := v.Destroy(t.Context(), subject); err != nil {
		t.Fatal(err)
	}
}

// each runs a test on both databases, with and without a master key.
func each(t *testing.T, test func(t *testing.T, address string, master []byte)) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		for name, master := range map[string][]byte{"plain": nil, "wrapped": bytes.Repeat([]byte{7}, 32)} {
			t.Run(name, func(t *testing.T) { test(t, address, master) })
		}
	})
}

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v, s := open(t, address, master, time.Now), t.Name()
		refused(t, v, s, false)
		want := key(t, v, s, true)
		for _, create := range []bool{true, false} {
			if got := key(t, open(t, address, master, time.Now), s, create); !bytes.Equal(got, want) {
				t.Errorf("create %v: got %x, want %x", create, got, want)
			}
		}
		if other := key(t, v, s+"2", true); bytes.Equal(other, want) {
			t.Error("two subjects have the same key")
		}
	})
}

func TestInstancesThatMakeAKeyAtOnceAgreeOnIt(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		got := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range got {
			v := open(t, address, master, time.Now)
			all.Go(func() { got[i], _ = v.Key(t.Context(), t.Name(), true) })
		}
		all.Wait()
		for i := range got {
			if len(got[i]) != 32 || !bytes.Equal(got[i], got[0]) {
				t.Errorf("instance %d: got %x, want %x", i, got[i], got[0])
			}
		}
	})
}

func TestADestroyedKeyStaysDestroyed(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v, s := open(t, address, master, time.Now), t.Name()
		key(t, v, s, true)
		for range 2 { // twice is once
			destroy(t, v, s)
			refused(t, v, s, false)
			refused(t, v, s, true)
		}
		refused(t, open(t, address, master, time.Now), s, true)
	})
}

func TestASubjectDestroyedBeforeItHadAKeyNeverGetsOne(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		v := open(t, address, master, time.Now)
		destroy(t, v, t.Name())
		refused(t, v, t.Name(), true)
	})
}

func TestOtherInstancesRefuseADestroyedKeyWithinAMinute(t *testing.T) {
	each(t, func(t *testing.T, address string, master []byte) {
		c := newClock()
		one, two := open(t, address, master, c.Now), open(t, address, master, c.Now)
		key(t, one, t.Name(), true)
		key(t, two, t.Name(), false)
		destroy(t, one, t.Name())
		refused(t, one, t.Name(), false)
		c.pass(time.Minute)
		refused(t, two, t.Name(), false)
	})
}

func TestAMasterKeyIsNeededForWhatItWrapped(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		master := bytes.Repeat([]byte{7}, 32)
		want := key(t, open(t, address, master, time.Now), "a", true)
		for name, other := range map[string][]byte{"none": nil, "another": bytes.Repeat([]byte{8}, 32)} {
			k, err := open(t, address, other, time.Now).Key(t.Context(), "a", true)
			if err == nil || !strings.Contains(err.Error(), "master key") || errors.Is(err, eventstore.ErrNoKey) {
				t.Errorf("%s: got %x, %v, want an error about the master key", name, k, err)
			}
		}
		if held := stored(t, address); bytes.Contains(held, want) {
			t.Error("the database holds the key in clear")
		}
	})
}

func TestKeysFromBeforeTheMasterKeyStillOpen(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		want := key(t, open(t, address, nil, time.Now), "a", true)
		if got := key(t, open(t, address, bytes.Repeat([]byte{7}, 32), time.Now), "a", false); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	})
}

// stored is all the keys in the database.
func stored(t *testing.T, address string) []byte {
	t.Helper()
	db, err := table.Open(t.Context(), tabletest.File(address), table.Options{Schema: "vault"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(t.Context(), "select key from data_keys")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []byte
	for rows.Next() {
		var k []byte
		if err := rows.Scan(&k); err != nil {
			t.Fatal(err)
		}
		all = append(all, k...)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d bytes of keys, %v", len(all), err)
	}
	return all
}

func TestADestroyedKeyIsInNoFileAnyMore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v := open(t, folder, nil, time.Now)
	k := key(t, v, "a", true)
	for i := range 100 { // so that the key is in the middle of other pages too
		key(t, v, strings.Repeat("x", i+1), true)
	}
	if !inFiles(t, folder, k) {
		t.Fatal("the key is in no file while it is in use")
	}
	destroy(t, v, "a")
	if inFiles(t, folder, k) {
		t.Error("a file still holds the key")
	}
}

func inFiles(t *testing.T, folder string, k []byte) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := false
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", f, info.Mode(), err)
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, k)
	}
	return found
}

func TestKeysInUseOutliveTheirDatabaseForAWhile(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		c := newClock()
		v, err := vault.New(tabletest.File(address), nil, c.Now)
		if err != nil {
			t.Fatal(err)
		}
		want := key(t, v, "a", true)
		if err := v.Close(); err != nil { // the nearest thing to a database that is gone
			t.Fatal(err)
		}
		if got := key(t, v, "a", false); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
		c.pass(time.Minute)
		for _, subject := range []string{"a", "b"} {
			k, err := v.Key(t.Context(), subject, true)
			if err == nil || errors.Is(err, eventstore.ErrNoKey) || !strings.HasPrefix(err.Error(), "vault: data keys: ") {
				t.Errorf("key of %s: got %x, %v, want an error that names the vault's database", subject, k, err)
			}
		}
		if err := v.Destroy(t.Context(), "a"); err == nil {
			t.Error("destroyed without a database")
		}
	})
}

func TestADatabaseThatSaysNothingHoldsNobodyBeyondTheirContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	v, err := vault.New("postgres://x@"+silent.Addr().String()+"/x?sslmode=disable", nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if _, err := v.Key(ctx, "a", true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's error", err)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	all.Wait()
}

func TestParseMasterTakes32BytesOfBase64(t *testing.T) {
	t.Parallel()
	good := "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	if k, err := vault.ParseMaster(good); err != nil || len(k) != 32 || k[31] != 31 {
		t.Errorf("got %x, %v", k, err)
	}
	if k, err := vault.ParseMaster(""); err != nil || k != nil {
		t.Errorf("empty: got %x, %v, want none", k, err)
	}
	for _, bad := range []string{"AAEC", "!", good + good} {
		if _, err := vault.ParseMaster(bad); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("got %v, want an error without the key", err)
		}
	}
}
