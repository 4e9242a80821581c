package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
	"lieudit/schemas/token"
)

// strongbox is where a service keeps its data keys, as somebody with tools of his own sees it.
type strongbox struct {
	address string
	copies  int
}

func (b *strongbox) remote() bool { return strings.HasPrefix(b.address, "postgres") }

func (b *strongbox) database(t *testing.T) *table.DB {
	t.Helper()
	db, err := table.Open(t.Context(), b.address, table.Options{Schema: "vault", Full: true, Single: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (b *strongbox) exec(t *testing.T, statements ...string) {
	t.Helper()
	db := b.database(t)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *strongbox) keys(t *testing.T) (n int) {
	t.Helper()
	db := b.database(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*) from data_keys").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// save keeps a copy and gives what puts it back.
func (b *strongbox) save(t *testing.T) func() {
	t.Helper()
	if !b.remote() {
		kept := mustRead(t, b.address)
		return func() {
			mustWrite(t, b.address+".new", string(kept))
			if err := os.Rename(b.address+".new", b.address); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.copies++
	name := fmt.Sprint("copy", b.copies)
	b.exec(t, "create schema "+name)
	for _, of := range []string{"data_keys", "binding", "lease"} {
		b.exec(t, fmt.Sprintf("create table %s.%s (like vault.%[2]s including all)", name, of), fmt.Sprintf("insert into %s.%s select * from vault.%[2]s", name, of))
	}
	return func() {
		b.exec(t, "drop schema if exists vault cascade", "create schema vault")
		for _, of := range []string{"data_keys", "binding", "lease"} {
			b.exec(t, fmt.Sprintf("create table vault.%s (like %s.%[1]s including all)", of, name), fmt.Sprintf("insert into vault.%s select * from %s.%[1]s", of, name))
		}
	}
}

func (b *strongbox) remove(t *testing.T) {
	t.Helper()
	if b.remote() {
		b.exec(t, "drop schema vault cascade")
	} else if err := os.Remove(b.address); err != nil {
		t.Fatal(err)
	}
}

// onBoth runs a test on a service that is all embedded, and on one that is on servers.
func onBoth(t *testing.T, test func(t *testing.T, here func(*service.Config), box *strongbox)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		test(t, func(c *service.Config) { c.Data = data }, &strongbox{address: filepath.Join(data, "vault.db")})
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		n, postgres, data := startNode(t), tabletest.Postgres(t), t.TempDir()
		test(t, func(c *service.Config) {
			c.Data = data
			onServers(n, postgres)(c)
		}, &strongbox{address: postgres})
	})
}

// refused is why a service does not start.
func refused(t *testing.T, change func(*service.Config)) string {
	t.Helper()
	c := service.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", AreaListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Tokens: token.Default, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Out: &bytes.Buffer{}, Now: time.Now,
	}
	change(&c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := service.Run(ctx, c)
	if err == nil {
		t.Fatal("the service started")
	}
	return err.Error()
}

const twoSites = `{"sites":[{"external_id":"1","nom":"Zébulon","lat":44.5,"lon":3.5},{"external_id":"2","nom":"Nestor","lat":44.5,"lon":3.5}]}`

// shop opens an account with two sites and gives its key.
func (st *stage) shop(t *testing.T, id string) string {
	t.Helper()
	st.run(t, `account open "Maison `+id+`" --id `+id+` --plan STARTER`)
	key := strings.TrimSpace(st.run(t, `key issue `+id))
	st.post(t, key, "/locations/referentiels", `{"code":"m"}`)
	st.post(t, key, "/locations/referentiels/m/sites:sync", twoSites)
	return key
}

// code is the status of an answer.
func (st *stage) code(t *testing.T, key, target, content string) int {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, st.api+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := st.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// whole checks that what an account has is readable and can be written.
func (st *stage) whole(t *testing.T, id, key string) {
	t.Helper()
	if got := st.send(t, key, "GET /locations/referentiels/m/sites:export?format=ndjson", ""); !strings.Contains(got, "Zébulon") || !strings.Contains(got, "Nestor") {
		t.Errorf("%s: the export is %s", id, got)
	}
	if got := st.send(t, key, "POST /locations/referentiels/m/sites:sync", twoSites); !strings.Contains(got, `"inchanges":2`) {
		t.Errorf("%s: the same sync again says %s", id, got)
	}
	if got := st.run(t, "account show "+id); !strings.Contains(got, "Maison "+id) {
		t.Errorf("%s: the account is %s", id, got)
	}
}

// TestAServiceDoesNotStartOnAVaultThatIsNotItsLogs: it says what to do, and once that is done everything is as before,
// and can be projected anew.
func TestAServiceDoesNotStartOnAVaultThatIsNotItsLogs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, here func(*service.Config), box *strongbox) {
		st := raise(t, here)
		one := st.shop(t, "one")
		older := box.save(t)
		two := st.shop(t, "two")
		st.stop()
		newest := box.save(t)
		for _, attack := range []struct {
			do   func()
			want string
		}{
			{func() { box.remove(t) }, "sealed with its keys"},
			{func() { box.exec(t, "delete from data_keys") }, "was emptied: it holds 0 keys of 2"},
			{older, "lacks the keys of two"},
			{func() { box.exec(t, "update binding set log = '0b8d5a5e-3f0e-4b57-9d2f-2b0c4b6a3b11'") }, "belongs to the log 0b8d5a5e"},
		} {
			attack.do()
			if got := refused(t, here); !strings.Contains(got, attack.want) || !strings.Contains(got, "Put the newest copy of") {
				t.Errorf("it does not start because %q, want %q and what to do", got, attack.want)
			}
			newest()
		}
		st = raise(t, here)
		for _, model := range []string{"register", "places", "history"} {
			st.run(t, "projections rebuild "+model)
		}
		st.await(t, "the read models to be made anew", func() bool {
			told := st.run(t, "projections status")
			return strings.Count(told, "retired") == 3 && st.status(t, st.ops+"/readyz") == http.StatusOK
		})
		st.whole(t, "one", one)
		st.whole(t, "two", two)
		if got := box.keys(t); got != 2 {
			t.Errorf("%d keys, want 2", got)
		}
	})
}

func TestAServiceDoesNotStartWithoutItsMasterKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, here func(*service.Config), box *strongbox) {
		with := func(master []byte) func(*service.Config) {
			return func(c *service.Config) {
				here(c)
				c.VaultKey = master
			}
		}
		right, next := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
		st := raise(t, with(right))
		key := st.shop(t, "one")
		st.stop()
		for want, master := range map[string][]byte{"needs its master key": nil, "does not open with this master key": next} {
			if got := refused(t, with(master)); !strings.Contains(got, want) || !strings.Contains(got, "LIEUDIT_VAULT_KEY") {
				t.Errorf("it does not start because %q, want %q and what to do", got, want)
			}
		}
		var c service.Config
		with(right)(&c)
		c.Now = time.Now
		if n, err := service.Rewrap(t.Context(), c, next); err != nil || n != 1 {
			t.Fatalf("rewrap: %d keys, %v", n, err)
		}
		if got := refused(t, with(right)); !strings.Contains(got, "does not open with this master key") {
			t.Errorf("it does not start because %q", got)
		}
		st = raise(t, with(next))
		st.whole(t, "one", key)
	})
}

// TestAVaultThatIsTakenAwayUnderAServiceIsNoticed: readiness says so, nothing is sealed, and all goes on when it is back.
func TestAVaultThatIsTakenAwayUnderAServiceIsNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, here func(*service.Config), box *strongbox) {
		st := raise(t, here)
		key := st.shop(t, "one")
		back := box.save(t)
		box.remove(t)
		within(t, deadlinetest.Hang, "readiness says so", func() bool {
			return st.status(t, st.ops+"/readyz") == http.StatusServiceUnavailable && strings.Contains(st.ready(t), "the vault of data keys")
		})
		if got := st.answered(t, "/locations/referentiels/m/sites", key); got != http.StatusOK {
			t.Errorf("sites that are known already: %d, want 200", got)
		}
		if code, _, _ := st.try(t, `account open "Two" --id two --plan STARTER`); code == 0 {
			t.Error("an account was opened without a vault for its name")
		}
		back()
		within(t, deadlinetest.Hang, "it is ready again", func() bool { return st.status(t, st.ops+"/readyz") == http.StatusOK })
		st.whole(t, "one", key)
		if got := box.keys(t); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
		st.shop(t, "two")
	})
}

// TestErasedStaysErasedUnderAnOlderVault that is put back while the service is down.
func TestErasedStaysErasedUnderAnOlderVault(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, here func(*service.Config), box *strongbox) {
		st := raise(t, here)
		key := st.shop(t, "one")
		st.shop(t, "gone")
		older := box.save(t)
		st.run(t, "account close gone")
		st.run(t, "account erase gone")
		st.stop()
		older()
		st = raise(t, here)
		st.run(t, "projections rebuild register")
		st.await(t, "the register to be made anew", func() bool { return strings.Contains(st.run(t, "projections status"), "retired") })
		if got := st.run(t, "account show gone"); strings.Contains(got, "Maison") {
			t.Errorf("the name is back: %s", got)
		}
		db := box.database(t)
		defer db.Close()
		var left int
		if err := db.QueryRow(t.Context(), "select count(*) from data_keys where subject = 'gone' and length(key) > 0").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d keys of the erased account, %v", left, err)
		}
		st.whole(t, "one", key)
	})
}

// TestAServiceStartsWhileItsVaultIsAway, says that it is not ready, and is once the vault is there.
func TestAServiceStartsWhileItsVaultIsAway(t *testing.T) {
	t.Parallel()
	n, postgres, data := startNode(t), tabletest.Postgres(t), t.TempDir()
	u, err := url.Parse(postgres)
	if err != nil || u.Port() == "" {
		t.Skipf("the Postgres of the tests has no port: %v", err)
	}
	g := openGate(t, u.Host)
	u.Host = g.listen.Addr().String()
	here := func(c *service.Config) {
		c.Data = data
		onServers(n, u.String())(c)
	}
	st := raise(t, here)
	key := st.shop(t, "one")
	g.shut(true)
	st.await(t, "readiness to name the keys", func() bool { return strings.Contains(st.ready(t), `"data keys":"vault: `) })
	if got := st.me(t, key); got != http.StatusOK {
		t.Errorf("/me without Postgres: %d, want 200", got)
	}
	st.stop()

	st = raiseUnready(t, here)
	within(t, deadlinetest.Hang, "keys are served", func() bool { return st.me(t, key) == http.StatusOK })
	if got := st.ready(t); !strings.Contains(got, `"vault":"vault: `) || st.status(t, st.ops+"/readyz") != http.StatusServiceUnavailable {
		t.Errorf("readiness says %s", got)
	}
	if got := st.code(t, key, "PUT /locations/referentiels/m/sites/1", `{"nom":"Autre"}`); got != http.StatusInternalServerError {
		t.Errorf("a sealed write: %d, want 500", got)
	}
	g.shut(false)
	within(t, deadlinetest.Hang, "it is ready", func() bool { return st.status(t, st.ops+"/readyz") == http.StatusOK })
	st.whole(t, "one", key)
}

// TestAnAccountWhoseKeyIsLostIsUnreadableAlone: nothing stands in the place of what it sealed, nothing is written to it, and once
// the key is back so are its rows, without a restart or a rebuild.
func TestAnAccountWhoseKeyIsLostIsUnreadableAlone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]string{
		"another":   "update data_keys set key = (select key from data_keys where subject = 'two') where subject = 'one'",
		"destroyed": "update data_keys set key = substr(key, 1, 0), destroyed = 1 where subject = 'one'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, here func(*service.Config), box *strongbox) {
				st := raise(t, here)
				one, two := st.shop(t, "one"), st.shop(t, "two")
				st.stop()
				back := box.save(t)
				box.exec(t, lose)
				st = raise(t, here)
				for _, model := range []string{"register", "places", "history"} {
					st.run(t, "projections rebuild "+model)
				}
				st.await(t, "the read models to be made anew", func() bool { return strings.Count(st.run(t, "projections status"), "retired") == 3 })
				for _, target := range []string{"GET /locations/referentiels/m/sites", "GET /locations/referentiels/m/sites:export?format=csv", "GET /locations/search"} {
					if got := st.code(t, one, target, ""); got != http.StatusInternalServerError {
						t.Errorf("%s: %d, want 500", target, got)
					}
					if got := st.code(t, two, target, ""); got != http.StatusOK {
						t.Errorf("%s of another account: %d, want 200", target, got)
					}
				}
				for _, target := range []string{"PUT /locations/referentiels/m/sites/3", "PATCH /locations/referentiels/m/sites/1"} {
					if got := st.code(t, one, target, `{"nom":"Autre"}`); got != http.StatusInternalServerError {
						t.Errorf("%s: %d, want 500", target, got)
					}
				}
				if code, shown, _ := st.try(t, "account show one"); code == 0 {
					t.Errorf("the account is shown as %s", shown)
				}
				st.whole(t, "two", two)
				if got := st.ready(t); !strings.Contains(got, "one") || st.status(t, st.ops+"/readyz") != http.StatusOK {
					t.Errorf("readiness says %s, want the account named and the instance ready", got)
				}
				back()
				st.await(t, "the account to be readable again", func() bool { return st.code(t, one, "GET /locations/referentiels/m/sites", "") == http.StatusOK })
				st.whole(t, "one", one)
				if got := box.keys(t); got != 2 {
					t.Errorf("%d keys, want 2", got)
				}
			})
		})
	}
}
