package main

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/sqldb/sqldbtest"
)

func TestABackupHoldsTheServedAddressesAndRoads(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	key := svc.openCustomer(t)
	csv, roads := filepath.Join(t.TempDir(), "a.csv.gz"), filepath.Join(t.TempDir(), "r.osm.pbf")
	svc.runCommand(t, "ban generate --addresses 2000 --seed 7 --out "+csv)
	svc.runCommand(t, "roads generate --segments 2000 --seed 7 --out "+roads)
	svc.runCommand(t, "ban import --data "+data+" "+csv)
	svc.runCommand(t, "roads import --data "+data+" "+roads)
	const question = "/address/autocomplete?q=rue+de&limit=5" // its answers hold ids that the vintage gave
	want := svc.mustSend(t, key, "GET "+question, "")
	whole, small := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "small")
	shown := svc.runCommand(t, "backup --data "+data+" --out "+whole)
	mustWriteFile(t, filepath.Join(data, "last-vintage"), "2026-11-21-1\n") // as an import of real addresses writes it
	svc.runCommand(t, "backup --without-vintages --without-networks --data "+data+" --out "+small)
	if !strings.Contains(shown, "addresses") || !strings.Contains(shown, "roads") {
		t.Errorf("it prints %s, without addresses and roads", shown)
	}

	all := filepath.Join(t.TempDir(), "all")
	svc.runCommand(t, "restore "+whole+" --nothing-since --data "+all)
	restored := startService(t, func(c *service.Config) { c.Data = all })
	if got := restored.mustSend(t, key, "GET "+question, ""); got != want {
		t.Errorf("the restored addresses answer %s, want %s", got, want)
	}
	if got := restored.runCommand(t, "roads status --data "+all); !strings.Contains(got, "by the running service") {
		t.Errorf("the restored roads: %s", got)
	}

	few := filepath.Join(t.TempDir(), "few")
	svc.runCommand(t, "restore "+small+" --nothing-since --data "+few)
	restored = startServiceUnready(t, func(c *service.Config) { c.Data, c.Demo = few, true })
	waitUntil(t, "keys are served", func() bool { return restored.statusOfMe(t, key) == http.StatusOK })
	if got := restored.readiness(t).text; !strings.Contains(got, "the vintage 2026-11-21-1 is gone") {
		t.Errorf("without addresses readiness says %s, want that they are missing", got)
	}
}

// runOnTerminal runs a command line as a person does who types the lines of input.
func runOnTerminal(t *testing.T, line, input string) (code int, out, stderr string) {
	t.Helper()
	var printed, errs bytes.Buffer
	p := cli.Program{Serve: service.Run, Terminal: terminal.Terminal{
		Name: "lieudit", In: strings.NewReader(input), Out: &printed, Err: &errs, IsTerminal: true, TimeZone: time.UTC,
		LookupEnv: func(string) (string, bool) { return "", false },
	}}
	code = p.Run(t.Context(), splitWords("lieudit "+line))
	return code, printed.String(), errs.String()
}

func TestARestoreOnATerminalAsksWhatWasErasedSince(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	svc := startService(t, func(c *service.Config) { c.Data = data })
	svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	svc.runCommand(t, "backup --data "+data+" --out "+file)
	for name, row := range map[string]struct {
		input string
		exit  int
		want  string
	}{
		"nothing":             {"\n\n\ny\n", 0, "restored"},
		"an account":          {"one\n\n\n\n", 0, "erased again"},
		"a key of no form":    {"\nkey\n\n\ny\n", 0, "not of the form ACCOUNT/KEY"},
		"no to nothing":       {"\n\n\nn\n", 1, "nothing was restored"},
		"the end of input":    {"", 1, "nothing was restored"},
		"an unknown account":  {"none\n\n\n\n", 1, "holds no account none"},
		"a name, then no end": {"one\n", 1, "nothing was restored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runOnTerminal(t, "restore "+file+" --data "+filepath.Join(t.TempDir(), "restored"), row.input)
			if code != row.exit || !strings.Contains(out+stderr, row.want) {
				t.Errorf("exit %d, %s%s; want %d and %q", code, out, stderr, row.exit, row.want)
			}
		})
	}
}

func TestAVaultInPostgresIsNotReplaced(t *testing.T) {
	t.Parallel()
	n, postgres, data := startNode(t), sqldbtest.NewPostgresDatabase(t), t.TempDir()
	configureServers := withServers(n, postgres)
	svc := startService(t, func(c *service.Config) { c.Data = data; configureServers(c) })
	key := svc.openShopAccount(t, "one")
	file := filepath.Join(t.TempDir(), "lieudit.backup")
	svc.runCommand(t, fmt.Sprintf("backup --out %s --data %s --node %s --postgres %s", file, data, n.dir, postgres))
	restore := fmt.Sprintf("restore %s --nothing-since --data %s --node %s --postgres %s", file, t.TempDir(), t.TempDir(), postgres)
	if code, _, stderr := svc.tryCommand(t, restore); code != 1 || !strings.Contains(stderr, "an instance of the service is running") {
		t.Errorf("beside the service: exit %d, %s", code, stderr)
	}
	svc.stop()
	if code, _, stderr := svc.tryCommand(t, restore); code != 1 || !strings.Contains(stderr, "vault with keys already") {
		t.Errorf("onto its keys: exit %d, %s", code, stderr)
	}
	svc = startService(t, func(c *service.Config) { c.Data = data; configureServers(c) })
	svc.checkIntact(t, "one", key)
}

// TestABackupOfPartsOfTwoServicesIsRefused names the vault of another service: its keys open nothing of the log.
func TestABackupOfPartsOfTwoServicesIsRefused(t *testing.T) {
	t.Parallel()
	onEveryLog(t, func(t *testing.T, svc *backedUp) {
		svc.openShopAccount(t, "one")
		n, postgres := startNode(t), sqldbtest.NewPostgresDatabase(t)
		configureServers := withServers(n, postgres)
		startService(t, configureServers).openShopAccount(t, "one")
		flags := " --data " + svc.data + " --postgres " + postgres
		if svc.node != nil {
			flags += " --node " + svc.node.dir
		}
		file := filepath.Join(t.TempDir(), "lieudit.backup")
		if code, _, stderr := svc.tryCommand(t, "backup --out "+file+flags); code != 1 || !strings.Contains(stderr, "the vault belongs to the log") {
			t.Errorf("exit %d, %s; want that the vault is another log's", code, stderr)
		}
	})
}
