package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
)

// since is what was erased and revoked after a backup.
type since struct {
	file                       string // the backup
	keptKey, leakedKey, goneID string
	leakedKeyID                string
	token, tokenID             string
	usedLink, session          string // a link that was used after the backup, and the session of before that has ended
}

// eraseAndRevokeSince writes a backup, and then erases an account and revokes a key and a token.
func (svc *backedUp) eraseAndRevokeSince(t *testing.T) since {
	t.Helper()
	s := since{keptKey: svc.openShopAccount(t, "kept"), goneID: "gone"}
	svc.openShopAccount(t, s.goneID)
	s.leakedKey = strings.TrimSpace(svc.runCommand(t, "key issue kept --label leaked"))
	s.leakedKeyID = svc.idOf(t, "key list --json kept", "leaked")
	s.token = strings.TrimSpace(svc.runCommand(t, "token issue --role operator --label left"))
	s.tokenID = svc.idOf(t, "token list --json", "left")
	s.usedLink = strings.TrimSpace(svc.runCommand(t, "invite --role auditor --label auditor"))
	s.session = svc.openSession(t, strings.TrimSpace(svc.runCommand(t, "login")))
	s.file = svc.backUp(t)
	svc.openSession(t, s.usedLink)
	svc.runCommand(t, "session end --all")
	svc.runCommand(t, `account open "Later" --plan STARTER --id later`)
	svc.runCommand(t, "account close --yes "+s.goneID)
	svc.runCommand(t, "account erase --yes "+s.goneID)
	svc.runCommand(t, "account close --yes later")
	svc.runCommand(t, "key revoke kept "+s.leakedKeyID+" --reason leak")
	svc.runCommand(t, "token revoke "+s.tokenID)
	return s
}

// idOf is the id in the line of a list that holds a text.
func (svc *testService) idOf(t *testing.T, line, text string) string {
	t.Helper()
	for row := range strings.Lines(svc.runCommand(t, line)) {
		_, id, ok := strings.Cut(row, `"id":"`)
		if ok && strings.Contains(row, text) {
			id, _, _ = strings.Cut(id, `"`)
			return id
		}
	}
	t.Fatalf("%s lists no %s", line, text)
	return ""
}

// checkSince checks that on a restored service all that was erased and revoked is so, and the rest is intact.
func (s since) checkSince(t *testing.T, restored *testService) {
	t.Helper()
	restored.checkIntact(t, "kept", s.keptKey)
	if got := restored.statusOfMe(t, s.leakedKey); got != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d, want 401", got)
	}
	if got := restored.statusOfAccounts(t, s.token); got != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d, want 401", got)
	}
	if got := restored.statusWithCookie(t, s.session); got != http.StatusUnauthorized {
		t.Errorf("the session that has ended: %d, want 401", got)
	}
	if got, _ := restored.tryLink(t, s.usedLink); got != http.StatusUnauthorized {
		t.Errorf("the link that was used: %d, want 401", got)
	}
	if got := restored.runCommand(t, "account show "+s.goneID); strings.Contains(got, "Maison") || !strings.Contains(got, "closed") {
		t.Errorf("the erased account is %s", got)
	}
	if folderContains(t, restored.data, "Maison gone") {
		t.Error("a file holds the erased name")
	}
	if got := restored.runCommand(t, "audit log "+s.goneID); !strings.Contains(got, "restored backup") {
		t.Errorf("its history is %s, without the reason", got)
	}
}

// folderOfLog is what an operator names of the service that is left.
func (svc *backedUp) folderOfLog() string {
	if svc.node != nil {
		return svc.node.dir
	}
	return svc.data
}

func TestWhatWasErasedOrRevokedSinceABackupStaysSo(t *testing.T) {
	t.Parallel()
	onEveryLog(t, func(t *testing.T, svc *backedUp) {
		s := svc.eraseAndRevokeSince(t)
		s.checkSince(t, svc.restore(t, s.file, "--since "+svc.folderOfLog()))
		s.checkSince(t, svc.restore(t, s.file, fmt.Sprintf("--erase %s --revoke kept/%s --revoke-token %s", s.goneID, s.leakedKeyID, s.tokenID)))
	})
}

// TestADamagedNewerLogIsReadAsFarAsItCan: the event of an opening after the backup is damaged. What follows it is found behind.
func TestADamagedNewerLogIsReadAsFarAsItCan(t *testing.T) {
	t.Parallel()
	onEveryLog(t, func(t *testing.T, svc *backedUp) {
		s := svc.eraseAndRevokeSince(t)
		svc.stop()
		if svc.node != nil {
			svc.node.stop()
		}
		left := filepath.Join(t.TempDir(), "left")
		copyFolder(t, svc.folderOfLog(), left)
		flipByteAt(t, left, `account-later`)
		flags, start := svc.newPlace(t)
		code, _, stderr := svc.tryCommand(t, "restore "+s.file+flags+" --since "+left)
		if code != 1 || !strings.Contains(stderr, "could not be read whole") || !strings.Contains(stderr, "whole up to 20") {
			t.Fatalf("exit %d, %s; want 1, that the log is damaged and how far it was read", code, stderr)
		}
		s.checkSince(t, start(t))
	})
}

// TestASalvagedNewerLogIsNotTakenForWhole: what could not be read when it was salvaged may have been a revocation.
func TestASalvagedNewerLogIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	onEveryLog(t, func(t *testing.T, svc *backedUp) {
		s := svc.eraseAndRevokeSince(t)
		svc.stop()
		logs, name, salvaged := "--data "+svc.data, "core", filepath.Join(t.TempDir(), "salvaged")
		if svc.node != nil {
			svc.node.stop()
			logs, name = "--log "+svc.node.dir, ""
		}
		flipByteAt(t, svc.folderOfLog(), `account-later`)
		svc.runCommand(t, "log salvage "+logs+" --out "+salvaged)
		flags, start := svc.newPlace(t)
		code, _, stderr := svc.tryCommand(t, "restore "+s.file+flags+" --since "+filepath.Join(salvaged, name))
		if code != 1 || !strings.Contains(stderr, "it was salvaged once") {
			t.Fatalf("exit %d, %s; want 1 and that the log was salvaged", code, stderr)
		}
		s.checkSince(t, start(t))
	})
}

// flipByteAt flips a bit where a text first stands in the segments of logs below a folder.
func flipByteAt(t *testing.T, folder, text string) {
	t.Helper()
	for _, pattern := range []string{"*.log", "log/core/*.log"} {
		segments, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range segments {
			content := mustReadFile(t, path)
			if i := strings.Index(string(content), text); i >= 0 {
				content[i] ^= 1
				mustWriteFile(t, path, string(content))
				return
			}
		}
	}
	t.Fatalf("no segment holds %s", text)
}

func TestARestoreRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	data, other := t.TempDir(), t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	older := filepath.Join(t.TempDir(), "older")
	copyFolder(t, data, older)
	svc.openShopAccount(t, "two")
	svc.runCommand(t, "backup --data "+data+" --out "+file)
	second := startService(t, func(c *service.Config) { c.Data = other })
	second.stop()
	for name, row := range map[string]struct {
		flags string
		exit  int
		want  string
	}{
		"a folder in use":                {"--nothing-since --data " + data, 1, "is not empty"},
		"nothing said of the time since": {"--data DIR", 2, "--nothing-since"},
		"a contradiction":                {"--data DIR --nothing-since --erase one", 2, "contradicts"},
		"a key of another form":          {"--data DIR --revoke one", 2, "ACCOUNT/KEY"},
		"an unknown account":             {"--data DIR --erase none", 1, "holds no account none"},
		"an unknown key":                 {"--data DIR --revoke one/none", 1, "holds no key one/none"},
		"an unknown token":               {"--data DIR --revoke-token none", 1, "holds no token none"},
		"another log":                    {"--data DIR --since " + other, 1, "holds the log"},
		"an older copy of the log":       {"--data DIR --since " + older, 1, "it is an older copy"},
		"no log":                         {"--data DIR --since " + filepath.Dir(file), 1, "no log"},
		"a node":                         {"--data DIR --nothing-since --node DIR/node", 1, "leave --node out"},
		"EventStoreDB":                   {"--data DIR --nothing-since --eventstore esdb://127.0.0.1:1", 1, "the log is in this backup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "restored")
			code, _, stderr := svc.tryCommand(t, "restore "+file+" "+strings.ReplaceAll(row.flags, "DIR", dir))
			if code != row.exit || !strings.Contains(stderr, row.want) {
				t.Errorf("exit %d, %s; want %d and %q", code, stderr, row.exit, row.want)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("it left the folder: %v", err)
			}
		})
	}
}

// TestABackupBesideEventStoreDBHoldsTheVault: the log is copied first, by other means, and restored first.
func TestABackupBesideEventStoreDBHoldsTheVault(t *testing.T) {
	t.Parallel()
	n, postgres, data := startNode(t), sqldbtest.NewPostgresDatabase(t), t.TempDir()
	configureServers := withServers(n, postgres)
	svc := startService(t, func(c *service.Config) { c.Data = data; configureServers(c) })
	key := svc.openShopAccount(t, "one")
	svc.stop()
	n.stop()
	copied := &testNode{dir: filepath.Join(t.TempDir(), "copy"), socket: filepath.Join(t.TempDir(), "node.sock")}
	copyFolder(t, n.dir, copied.dir)
	n.start(t)
	svc = startService(t, func(c *service.Config) { c.Data = data; configureServers(c) })
	svc.openShopAccount(t, "later")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	shown := svc.runCommand(t, fmt.Sprintf("backup --out %s --data %s --postgres %s --eventstore %s", file, data, postgres, n.address()))
	if !strings.Contains(shown, "NOT in this file") {
		t.Errorf("it prints %s, without that the log is not in it", shown)
	}

	copied.start(t)
	t.Cleanup(func() { copied.stop() })
	other, restored := sqldbtest.NewPostgresDatabase(t), filepath.Join(t.TempDir(), "restored")
	flags := fmt.Sprintf(" --nothing-since --data %s --postgres %s --eventstore %s", restored, other, copied.address())
	svc.runCommand(t, "restore "+file+flags)
	configureCopy := withServers(copied, other)
	svc = startService(t, func(c *service.Config) { c.Data = restored; configureCopy(c) })
	svc.checkIntact(t, "one", key)
	svc.openShopAccount(t, "later") // the log of then does not know it, and its key in the vault seals anew
}
