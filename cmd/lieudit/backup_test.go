package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// backedUp is a service and where its parts are, for the flags of backup and restore.
type backedUp struct {
	*testService
	flags string    // of the service that is copied
	node  *testNode // nil: all is embedded
}

// onEveryLog runs a test with everything embedded, and again with the log on a node and the vault in Postgres.
func onEveryLog(t *testing.T, test func(t *testing.T, svc *backedUp)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		change := func(c *service.Config) { c.Data = data }
		test(t, &backedUp{testService: startService(t, change), flags: " --data " + data})
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		n, postgres, data := startNode(t), sqldbtest.NewPostgresDatabase(t), t.TempDir()
		configureServers := withServers(n, postgres)
		change := func(c *service.Config) { c.Data = data; configureServers(c) }
		flags := fmt.Sprintf(" --data %s --node %s --postgres %s", data, n.dir, postgres)
		test(t, &backedUp{testService: startService(t, change), node: n, flags: flags})
	})
}

// backUp writes a backup and returns its file.
func (svc *backedUp) backUp(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	svc.runCommand(t, "backup --out "+file+svc.flags)
	return file
}

// newPlace is an empty place of the same kind as that of a service: the flags of a restore into it, and what starts a service there.
func (svc *backedUp) newPlace(t *testing.T) (flags string, start func(t *testing.T) *testService) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "restored")
	if svc.node == nil {
		return " --data " + data, func(t *testing.T) *testService {
			return startService(t, func(c *service.Config) { c.Data = data })
		}
	}
	n := &testNode{dir: t.TempDir(), socket: filepath.Join(t.TempDir(), "node.sock")}
	postgres := sqldbtest.NewPostgresDatabase(t)
	flags = fmt.Sprintf(" --data %s --node %s --postgres %s", data, n.dir, postgres)
	return flags, func(t *testing.T) *testService {
		n.start(t)
		t.Cleanup(func() { n.stop() })
		configureServers := withServers(n, postgres)
		return startService(t, func(c *service.Config) { c.Data = data; configureServers(c) })
	}
}

// restore restores a backup of svc elsewhere and starts a service there.
func (svc *backedUp) restore(t *testing.T, file, since string) *testService {
	t.Helper()
	flags, start := svc.newPlace(t)
	svc.runCommand(t, "restore "+file+flags+" "+since)
	return start(t)
}

// answers are what a customer and an operator are told of an account, without what changes with each request.
func (svc *testService) answers(t *testing.T, account, key string) string {
	t.Helper()
	var all []string
	for _, target := range []string{"/locations/referentiels/m/sites:export?format=ndjson", "/locations/search?q=nestor", "/locations/referentiels"} {
		all = append(all, svc.mustSend(t, key, "GET "+target, ""))
	}
	for _, line := range []string{"account show ", "audit log --json "} {
		all = append(all, svc.runCommand(t, line+account))
	}
	return strings.Join(all, "\n")
}

// usageTotal is what was counted for an account.
func (svc *testService) usageTotal(t *testing.T, account string) int64 {
	t.Helper()
	var shown struct{ Total int64 }
	if err := json.Unmarshal([]byte(svc.runCommand(t, "usage show --json "+account)), &shown); err != nil {
		t.Fatal(err)
	}
	return shown.Total
}

// TestABackupUnderLoadGivesTheSameAnswersElsewhere: clients write sites of other accounts and use up quotas while the backup is taken.
func TestABackupUnderLoadGivesTheSameAnswersElsewhere(t *testing.T) {
	t.Parallel()
	onEveryLog(t, func(t *testing.T, svc *backedUp) {
		key, busyKey := svc.openShopAccount(t, "quiet"), svc.openShopAccount(t, "busy")
		want := svc.answers(t, "quiet", key)
		const wantTotal = 5 // two to make the shop, three in answers
		waitUntil(t, "all requests are counted", func() bool { return svc.usageTotal(t, "quiet") == wantTotal })

		var stopped atomic.Bool
		var written atomic.Int64 // the greatest number of a site that was acknowledged
		var clients sync.WaitGroup
		clients.Go(func() {
			for i := int64(1); !stopped.Load(); i++ {
				target := fmt.Sprintf("PUT /locations/referentiels/m/sites/n%d", i)
				if svc.statusOf(t, busyKey, target, `{"nom":"Zébulon","lat":44.5,"lon":3.5}`)/100 == 2 {
					written.Store(i)
				}
			}
		})
		clients.Go(func() {
			for i := 0; !stopped.Load(); i++ {
				svc.tryCommand(t, fmt.Sprintf("account open Nouveau --plan STARTER --id new%d", i)) // each makes a key in the vault
			}
		})
		waitUntil(t, "sites are written", func() bool { return written.Load() > 20 })
		acknowledged := written.Load()
		file := svc.backUp(t)
		stopped.Store(true)
		clients.Wait()

		restored := svc.restore(t, file, "--nothing-since")
		if total := restored.usageTotal(t, "quiet"); total != wantTotal {
			t.Errorf("%d requests are counted, want %d", total, wantTotal)
		}
		if got := restored.answers(t, "quiet", key); got != want {
			t.Errorf("it answers\n%s\nwant\n%s", got, want)
		}
		for _, i := range []int64{1, acknowledged} {
			if got := restored.statusOf(t, busyKey, fmt.Sprintf("GET /locations/referentiels/m/sites/n%d", i), ""); got != http.StatusOK {
				t.Errorf("site %d of %d that were acknowledged before: %d", i, acknowledged, got)
			}
		}
		restored.checkIntact(t, "quiet", key)
		if got := restored.runCommand(t, "usage reconcile"); !strings.Contains(got, "; 0 differences") {
			t.Errorf("reconcile says %s", got)
		}
	})
}

func TestABackupHoldsWhatItSays(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	shown := svc.runCommand(t, "backup --data "+data+" --out "+file)
	for _, want := range []string{"log", "usage log", "vault", "1 key", "operator's token"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it prints\n%s\nwithout %q", shown, want)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v; want mode 0600", info, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("beside it there is more: %v, %v", entries, err)
	}
	if code, _, stderr := svc.tryCommand(t, "backup --data "+data+" --out "+file); code != 1 || !strings.Contains(stderr, "overwrites nothing") {
		t.Errorf("onto the file again: exit %d, %s", code, stderr)
	}
	if verified := svc.runCommand(t, "backup --verify "+file); !strings.Contains(verified, "is whole") {
		t.Errorf("verify says %s", verified)
	}
}
