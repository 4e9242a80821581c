package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

// statusOfAccounts is the status of a list of the accounts with a token.
func (svc *testService) statusOfAccounts(t *testing.T, token string) int {
	t.Helper()
	status, _ := svc.sendToArea(t, token, "GET /accounts", "")
	return status
}

func TestALostOperatorTokenIsRecovered(t *testing.T) {
	t.Parallel()
	for name, revokeOthers := range map[string]bool{"others stay": false, "others are revoked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			here := func(c *service.Config) { c.Data = data }
			svc := startService(t, here)
			first := svc.operator
			auditor := strings.TrimSpace(svc.runCommand(t, "token issue --role auditor"))
			session := svc.openSession(t, first)
			line := "token recover --data " + data
			if revokeOthers {
				line += " --revoke-others"
			}
			if code, _, stderr := svc.tryCommand(t, line); code != 1 || !strings.Contains(stderr, "is held by process") {
				t.Errorf("beside the service: exit %d, %s", code, stderr)
			}
			svc.stop()
			if err := os.Remove(filepath.Join(data, "operator-token")); err != nil {
				t.Fatal(err)
			}
			out := svc.runCommand(t, line)
			if !strings.Contains(out, filepath.Join(data, "operator-token")) || strings.Contains(out, "1 other") != revokeOthers {
				t.Errorf("it prints %q", out)
			}
			if info, err := os.Stat(filepath.Join(data, "operator-token")); err != nil || info.Mode() != 0o600 {
				t.Errorf("the file: %v, %v; want mode 0600", info, err)
			}

			svc = startService(t, here)
			want := map[bool]int{false: http.StatusOK, true: http.StatusUnauthorized}[revokeOthers]
			if got := svc.statusOfAccounts(t, first); got != want {
				t.Errorf("the lost token: %d, want %d", got, want)
			}
			if got := svc.statusWithCookie(t, session); got != want {
				t.Errorf("its session: %d, want %d", got, want)
			}
			if svc.operator == first || svc.statusOfAccounts(t, svc.operator) != http.StatusOK {
				t.Error("the recovered token is not another one that works")
			}
			if got := svc.statusOfAccounts(t, auditor); got == http.StatusUnauthorized {
				t.Error("the token of another role was revoked")
			}
		})
	}
}

func TestATokenIsRecoveredOnANodeBesideTheService(t *testing.T) {
	t.Parallel()
	n, data := startNode(t), t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data, c.EventStore = data, n.address() })
	first := svc.operator
	elsewhere := filepath.Join(t.TempDir(), "folder") // of an instance that never had a token
	svc.runCommand(t, "token recover --data "+elsewhere+" --eventstore "+n.address())
	recovered := strings.TrimSpace(string(mustReadFile(t, filepath.Join(elsewhere, "operator-token"))))
	waitUntil(t, "the running service takes the new token", func() bool { return svc.statusOfAccounts(t, recovered) == http.StatusOK })
	if got := svc.statusOfAccounts(t, first); got != http.StatusOK {
		t.Errorf("the first token: %d, want 200", got)
	}
}
