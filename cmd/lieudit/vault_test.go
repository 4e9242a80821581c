package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// vaultStore is the database of a service's vault, for a test that changes it from outside.
type vaultStore struct {
	address string
	copies  int
}

func (b *vaultStore) isPostgres() bool { return strings.HasPrefix(b.address, "postgres") }

func (b *vaultStore) openDatabase(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), b.address, sqldb.Options{Schema: "vault", Durable: true, SingleFile: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (b *vaultStore) exec(t *testing.T, statements ...string) {
	t.Helper()
	db := b.openDatabase(t)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *vaultStore) countKeys(t *testing.T) (n int) {
	t.Helper()
	db := b.openDatabase(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*) from {data_keys}").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// backUp copies the vault and returns a function that puts the copy back.
func (b *vaultStore) backUp(t *testing.T) func() {
	t.Helper()
	if !b.isPostgres() {
		kept := mustReadFile(t, b.address)
		return func() {
			mustWriteFile(t, b.address+".new", string(kept))
			if err := os.Rename(b.address+".new", b.address); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.copies++
	name := fmt.Sprint("copy", b.copies)
	b.exec(t, "create schema "+name)
	for _, table := range []string{"data_keys", "binding", "lease"} {
		b.exec(t, fmt.Sprintf("create table %s.%s (like vault.%[2]s including all)", name, table), fmt.Sprintf("insert into %s.%s select * from vault.%[2]s", name, table))
	}
	return func() {
		b.exec(t, "drop schema if exists vault cascade", "create schema vault")
		for _, table := range []string{"data_keys", "binding", "lease"} {
			b.exec(t, fmt.Sprintf("create table vault.%s (like %s.%[1]s including all)", table, name), fmt.Sprintf("insert into vault.%s select * from %s.%[1]s", table, name))
		}
	}
}

func (b *vaultStore) remove(t *testing.T) {
	t.Helper()
	if b.isPostgres() {
		b.exec(t, "drop schema vault cascade")
	} else if err := os.Remove(b.address); err != nil {
		t.Fatal(err)
	}
}

// onBothProfiles runs a test with everything embedded, and again with the log and the databases on servers.
func onBothProfiles(t *testing.T, test func(t *testing.T, configure func(*service.Config), store *vaultStore)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		test(t, func(c *service.Config) { c.Data = data }, &vaultStore{address: filepath.Join(data, "vault.db")})
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		n, postgres, data := startNode(t), sqldbtest.NewPostgresDatabase(t), t.TempDir()
		test(t, func(c *service.Config) {
			c.Data = data
			withServers(n, postgres)(c)
		}, &vaultStore{address: postgres})
	})
}

// startError returns the error with which a service must refuse to start.
func startError(t *testing.T, change func(*service.Config)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := service.Run(ctx, testConfig(t, io.Discard, change))
	if err == nil {
		t.Fatal("the service started")
	}
	return err.Error()
}

const twoSites = `{"sites":[{"external_id":"1","nom":"Zébulon","lat":44.5,"lon":3.5},{"external_id":"2","nom":"Nestor","lat":44.5,"lon":3.5}]}`

// openShopAccount opens an account with two sites and returns its key.
func (svc *testService) openShopAccount(t *testing.T, id string) string {
	t.Helper()
	svc.runCommand(t, `account open "Maison `+id+`" --id `+id+` --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue `+id))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"m"}`)
	svc.mustSend(t, key, "POST /locations/referentiels/m/sites:sync", twoSites)
	return key
}

// checkIntact checks that the name and the two sites of an account can be read and written.
func (svc *testService) checkIntact(t *testing.T, id, key string) {
	t.Helper()
	if got := svc.mustSend(t, key, "GET /locations/referentiels/m/sites:export?format=ndjson", ""); !strings.Contains(got, "Zébulon") || !strings.Contains(got, "Nestor") {
		t.Errorf("%s: the export is %s", id, got)
	}
	if got := svc.mustSend(t, key, "POST /locations/referentiels/m/sites:sync", twoSites); !strings.Contains(got, `"inchanges":2`) {
		t.Errorf("%s: the same sync again says %s", id, got)
	}
	if got := svc.runCommand(t, "account show "+id); !strings.Contains(got, "Maison "+id) {
		t.Errorf("%s: the account is %s", id, got)
	}
}

// TestAServiceRefusesToStartOnAVaultOfAnotherLog damages or exchanges the vault. The error says what to do; once that is
// done, everything is as before and the read models can be rebuilt.
func TestAServiceRefusesToStartOnAVaultOfAnotherLog(t *testing.T) {
	t.Parallel()
	onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
		svc := startService(t, here)
		one := svc.openShopAccount(t, "one")
		older := store.backUp(t)
		two := svc.openShopAccount(t, "two")
		svc.stop()
		newest := store.backUp(t)
		for _, attack := range []struct {
			do   func()
			want string
		}{
			{func() { store.remove(t) }, "sealed with its keys"},
			{func() { store.exec(t, "delete from {data_keys}") }, "was emptied: it holds 0 keys of 2"},
			{older, "lacks the keys of two"},
			{func() { store.exec(t, "update {binding} set log = '0b8d5a5e-3f0e-4b57-9d2f-2b0c4b6a3b11'") }, "belongs to the log 0b8d5a5e"},
		} {
			attack.do()
			if got := startError(t, here); !strings.Contains(got, attack.want) || !strings.Contains(got, "Put the newest copy of") {
				t.Errorf("it does not start because %q, want %q and what to do", got, attack.want)
			}
			newest()
		}
		svc = startService(t, here)
		svc.rebuildReadModels(t)
		waitUntil(t, "it is ready", func() bool { return svc.isReady(t) })
		svc.checkIntact(t, "one", one)
		svc.checkIntact(t, "two", two)
		if got := store.countKeys(t); got != 2 {
			t.Errorf("%d keys, want 2", got)
		}
	})
}

func TestAServiceRefusesToStartWithoutItsMasterKey(t *testing.T) {
	t.Parallel()
	onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
		with := func(master []byte) func(*service.Config) {
			return func(c *service.Config) {
				here(c)
				c.VaultKey = master
			}
		}
		right, next := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
		svc := startService(t, with(right))
		key := svc.openShopAccount(t, "one")
		svc.stop()
		for want, master := range map[string][]byte{"needs its master key": nil, "does not open with this master key": next} {
			if got := startError(t, with(master)); !strings.Contains(got, want) || !strings.Contains(got, "LIEUDIT_VAULT_KEY") {
				t.Errorf("it does not start because %q, want %q and what to do", got, want)
			}
		}
		var c service.Config
		with(right)(&c)
		c.Now = time.Now
		if n, err := service.RewrapVault(t.Context(), c, next); err != nil || n != 1 {
			t.Fatalf("rewrap: %d keys, %v", n, err)
		}
		if got := startError(t, with(right)); !strings.Contains(got, "does not open with this master key") {
			t.Errorf("it does not start because %q", got)
		}
		svc = startService(t, with(next))
		svc.checkIntact(t, "one", key)
	})
}

// TestARunningServiceNoticesThatItsVaultIsRemoved: readiness says so, nothing is sealed meanwhile, and the service
// recovers when the vault is back.
func TestARunningServiceNoticesThatItsVaultIsRemoved(t *testing.T) {
	t.Parallel()
	onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
		svc := startService(t, here)
		key := svc.openShopAccount(t, "one")
		restore := store.backUp(t)
		store.remove(t)
		waitUntil(t, "readiness names the vault", func() bool {
			return svc.readiness(t).status == http.StatusServiceUnavailable && strings.Contains(svc.readiness(t).text, "the vault of data keys")
		})
		if got := svc.statusOf(t, key, "GET /locations/referentiels/m/sites", ""); got != http.StatusOK {
			t.Errorf("sites that are known already: %d, want 200", got)
		}
		if code, _, _ := svc.tryCommand(t, `account open "Two" --id two --plan STARTER`); code == 0 {
			t.Error("an account was opened without a vault for its name")
		}
		restore()
		waitUntil(t, "it is ready again", func() bool { return svc.isReady(t) })
		svc.checkIntact(t, "one", key)
		if got := store.countKeys(t); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
		svc.openShopAccount(t, "two")
	})
}

// TestErasedDataStaysErasedWhenAnOlderVaultIsRestored restores the vault while the service is stopped.
func TestErasedDataStaysErasedWhenAnOlderVaultIsRestored(t *testing.T) {
	t.Parallel()
	onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
		svc := startService(t, here)
		key := svc.openShopAccount(t, "one")
		svc.openShopAccount(t, "gone")
		older := store.backUp(t)
		svc.runCommand(t, "account close gone --yes")
		svc.runCommand(t, "account erase gone --yes")
		svc.stop()
		older()
		svc = startService(t, here)
		svc.runCommand(t, "projections rebuild register")
		waitUntil(t, "the read model is rebuilt", func() bool { return strings.Contains(svc.runCommand(t, "projections status"), "retired") })
		if got := svc.runCommand(t, "account show gone"); strings.Contains(got, "Maison") {
			t.Errorf("the name is back: %s", got)
		}
		db := store.openDatabase(t)
		defer db.Close()
		var left int
		if err := db.QueryRow(t.Context(), "select count(*) from {data_keys} where subject = 'gone' and length(key) > 0").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d keys of the erased account, %v", left, err)
		}
		svc.checkIntact(t, "one", key)
	})
}

// TestAServiceStartsWithoutReachingItsVault: it is not ready, serves what needs no data key, and is ready once the vault
// can be reached.
func TestAServiceStartsWithoutReachingItsVault(t *testing.T) {
	t.Parallel()
	gate, postgres := proxyPostgres(t, sqldbtest.NewPostgresDatabase(t))
	n, data := startNode(t), t.TempDir()
	here := func(c *service.Config) {
		c.Data = data
		withServers(n, postgres)(c)
	}
	svc := startService(t, here)
	key := svc.openShopAccount(t, "one")
	leaked := strings.TrimSpace(svc.runCommand(t, "key issue one --label laptop"))
	leakedID := svc.idOf(t, "key list one --json", "laptop")
	gate.setClosed(true)
	waitUntil(t, "readiness names the data keys", func() bool { return strings.Contains(svc.readiness(t).text, `"data keys":"vault: `) })
	if got := svc.statusOfMe(t, key); got != http.StatusOK {
		t.Errorf("/me without Postgres: %d, want 200", got)
	}
	svc.stop()

	svc = startServiceUnready(t, here)
	waitUntil(t, "keys are served", func() bool { return svc.statusOfMe(t, key) == http.StatusOK })
	if got := svc.readiness(t).text; !strings.Contains(got, `"vault":"vault: `) || svc.readiness(t).status != http.StatusServiceUnavailable {
		t.Errorf("readiness says %s", got)
	}
	if got := svc.statusOf(t, key, "PUT /locations/referentiels/m/sites/1", `{"nom":"Autre"}`); got != http.StatusInternalServerError {
		t.Errorf("a sealed write: %d, want 500", got)
	}
	status, answer := svc.sendToArea(t, svc.operator, "POST /accounts/one/keys/"+leakedID+":revoke", `{"reason":"Zoé has left"}`)
	if status != http.StatusOK || !strings.Contains(answer, `"champs_omis":["label","raison"]`) {
		t.Errorf("a revocation: %d %s, want 200 and that label and reason are left out", status, answer)
	}
	waitUntil(t, "the revoked key is refused", func() bool { return svc.statusOfMe(t, leaked) == http.StatusUnauthorized })
	gate.setClosed(false)
	waitUntil(t, "it is ready", func() bool { return svc.isReady(t) })
	svc.checkIntact(t, "one", key)
}

// TestOnlyTheAccountOfALostKeyIsUnreadable loses the data key of one account. Nothing is shown in place of what it sealed,
// nothing is written to it, and once the key is back so are its rows, without a restart or a rebuild.
func TestOnlyTheAccountOfALostKeyIsUnreadable(t *testing.T) {
	t.Parallel()
	for name, loss := range map[string]string{
		"another":   "update {data_keys} set key = (select key from {data_keys} where subject = 'two') where subject = 'one'",
		"destroyed": "update {data_keys} set key = substr(key, 1, 0), destroyed = 1 where subject = 'one'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
				svc := startService(t, here)
				one, two := svc.openShopAccount(t, "one"), svc.openShopAccount(t, "two")
				svc.stop()
				restore := store.backUp(t)
				store.exec(t, loss)
				svc = startService(t, here)
				svc.rebuildReadModels(t)
				svc.checkUnreadable(t, one, two)
				restore()
				waitUntil(t, "the account is readable again", func() bool {
					return svc.statusOf(t, one, "GET /locations/referentiels/m/sites", "") == http.StatusOK
				})
				svc.checkIntact(t, "one", one)
				if got := store.countKeys(t); got != 2 {
					t.Errorf("%d keys, want 2", got)
				}
			})
		})
	}
}

// The key of an account is lost for good: its name cannot be read any more, but it can be closed and erased, which ends it.
func TestAnAccountOfALostKeyIsClosedAndErased(t *testing.T) {
	t.Parallel()
	onBothProfiles(t, func(t *testing.T, here func(*service.Config), store *vaultStore) {
		svc := startService(t, here)
		svc.openShopAccount(t, "one")
		svc.openShopAccount(t, "two")
		svc.stop()
		store.exec(t, "update {data_keys} set key = substr(key, 1, 0), destroyed = 1 where subject = 'one'")
		svc = startService(t, here)
		svc.rebuildReadModels(t)
		if code, _, stderr := svc.tryCommand(t, "account show one"); code != 1 {
			t.Errorf("its name is shown: %d, %s", code, stderr)
		}
		for _, command := range []string{"usage show one", "account close one --yes", "account erase one --yes", "account show one"} {
			svc.runCommand(t, command)
		}
		waitUntil(t, "readiness names it no longer", func() bool { return !strings.Contains(svc.readiness(t).text, "account one") })
	})
}

// rebuildReadModels rebuilds the three read models of the core log and waits until the old generations are retired.
func (svc *testService) rebuildReadModels(t *testing.T) {
	t.Helper()
	for _, model := range []string{"register", "places", "history"} {
		svc.runCommand(t, "projections rebuild "+model)
	}
	waitUntil(t, "the read models are rebuilt", func() bool { return strings.Count(svc.runCommand(t, "projections status"), "retired") == 3 })
}

// checkUnreadable checks that the account of the first key, "one", answers 500 to every read and write of sealed fields,
// that the other account does not notice, and that readiness names the account while the instance stays ready.
func (svc *testService) checkUnreadable(t *testing.T, one, two string) {
	t.Helper()
	for _, target := range []string{"GET /locations/referentiels/m/sites", "GET /locations/referentiels/m/sites:export?format=csv", "GET /locations/search"} {
		if got := svc.statusOf(t, one, target, ""); got != http.StatusInternalServerError {
			t.Errorf("%s: %d, want 500", target, got)
		}
		if got := svc.statusOf(t, two, target, ""); got != http.StatusOK {
			t.Errorf("%s of another account: %d, want 200", target, got)
		}
	}
	for _, target := range []string{"PUT /locations/referentiels/m/sites/3", "PATCH /locations/referentiels/m/sites/1"} {
		if got := svc.statusOf(t, one, target, `{"nom":"Autre"}`); got != http.StatusInternalServerError {
			t.Errorf("%s: %d, want 500", target, got)
		}
	}
	if code, shown, _ := svc.tryCommand(t, "account show one"); code == 0 {
		t.Errorf("the account is shown as %s", shown)
	}
	svc.checkIntact(t, "two", two)
	if r := svc.readiness(t); !strings.Contains(r.text, "one") || r.status != http.StatusOK {
		t.Errorf("readiness says %s, want the account named and the instance ready", r.text)
	}
}

// TestErasedDataIsInNoFileOfTheDataFolder searches all files for an account's name and the texts of its sites, those of the retired
// generations of read models included.
func TestErasedDataIsInNoFileOfTheDataFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.runCommand(t, `account open "Nestor Retiré" --id zeb --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue zeb`))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"m"}`)
	svc.mustSend(t, key, "POST /locations/referentiels/m/sites:sync", `{"sites":[{"external_id":"1","nom":"Zébulon","lat":44.5,"lon":3.5,"proprietes":{"long":"`+
		strings.Repeat("Zébulon, ", 1500)+`"}},{"external_id":"2","nom":"Zébulon aussi","lat":44.5,"lon":3.5}]}`)
	svc.runCommand(t, `projections rebuild register`)
	svc.runCommand(t, `projections rebuild places`)
	waitUntil(t, "both models have a retired generation", func() bool {
		return strings.Count(svc.runCommand(t, "projections status"), "retired") == 2
	})
	for _, text := range []string{"Nestor", "Zébulon"} {
		if !folderContains(t, data, text) {
			t.Fatalf("%s is in no file while it is in use", text)
		}
	}
	svc.runCommand(t, "account close zeb --yes")
	svc.runCommand(t, "account erase zeb --yes")
	for _, text := range []string{"Nestor", "Zébulon"} {
		if folderContains(t, data, text) {
			t.Errorf("a file still holds %s", text)
		}
	}
	if told := svc.runCommand(t, "audit log zeb --kind sites --subject m/1"); !strings.Contains(told, "created site 1 of m") {
		t.Errorf("the history of the site is %q", told)
	}
}

// folderContains reports whether a text is in a file below a folder.
func folderContains(t *testing.T, folder, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
