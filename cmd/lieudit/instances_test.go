package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/table/tabletest"
)

func TestInstancesShareKeysAndRevocations(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), tabletest.NewPostgresDatabase(t)
	here := startService(t, withServers(n, postgres))
	there := startSecondInstance(t, here, withServers(n, postgres))
	here.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(there.runCommand(t, `key issue paul --label web`))
	if got := there.statusOfMe(t, key); got != 200 {
		t.Errorf("where the key was issued: got %d, want 200 at once", got)
	}
	waitUntil(t, "a key issued there works here", func() bool { return here.statusOfMe(t, key) == 200 })

	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(here.runCommand(t, `key list paul --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	here.runCommand(t, `key revoke paul `+listed.ID+` --reason leak`)
	if got := here.statusOfMe(t, key); got != 401 {
		t.Errorf("where the key was revoked: got %d, want 401 at once", got)
	}
	waitUntil(t, "a key revoked here is refused there", func() bool { return there.statusOfMe(t, key) == 401 })
}

// startSecondInstance starts a second instance on the servers of a first, whose operator token it uses.
func startSecondInstance(t *testing.T, first *testService, change func(*service.Config)) *testService {
	t.Helper()
	return startService(t, func(c *service.Config) {
		change(c)
		if err := os.WriteFile(filepath.Join(c.Data, "operator-token"), []byte(first.operator+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), tabletest.NewPostgresDatabase(t)
	svc := startService(t, withServers(n, postgres))
	svc.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue paul --label web`))
	for round := range 3 {
		n.stop()
		waitUntil(t, "keyed requests get 503", func() bool { return svc.statusOfMe(t, key) == 503 })
		if got := svc.statusOf(t, "", "GET /version", ""); got != 200 {
			t.Errorf("round %d: /version: got %d, want 200", round, got)
		}
		waitUntil(t, "readiness says so", func() bool { return svc.readiness(t).status == 503 })
		n.start(t)
		waitUntil(t, "keyed requests are served again", func() bool { return svc.statusOfMe(t, key) == 200 })
		waitUntil(t, "it is ready again", func() bool { return svc.isReady(t) })
	}
	second := strings.TrimSpace(svc.runCommand(t, `key issue paul --label again`))
	if got := svc.statusOfMe(t, second); got != 200 {
		t.Errorf("a key issued after the outages: got %d, want 200", got)
	}
}
