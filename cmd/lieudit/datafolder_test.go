package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/body"
)

// TestEachFileOfTheDataFolder damages one file of a data folder at a time. The service refuses to start and says why, or
// starts and says in readiness what is wrong. After the repair nothing else is lost.
func TestEachFileOfTheDataFolder(t *testing.T) {
	t.Parallel()
	used := newUsedFolder(t)
	other := startService(t, func(*service.Config) {})
	other.openShopAccount(t, "other")
	other.stop()
	readModels, err := readModelRows(used.path)
	if err != nil || len(readModels) == 0 {
		t.Fatalf("there are no read models: %v", err)
	}
	for _, row := range slices.Concat(lostFiles(), readModels, releaseRows(), walRows()) {
		name := strings.ReplaceAll(row.name+" "+row.damage+" "+row.repair, " ", "_")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			from, older := used.path, used.older
			if row.wasKilled {
				from, older = used.killed, used.olderKilled
			}
			mustCopySparse(t, from, data)
			damageFiles(t, row, data, older, other.data)
			used.checkLoss(t, row, data)
		})
	}
}

// damageFiles damages what a row names in a data folder. Of a name with a star that is each file of that name.
func damageFiles(t *testing.T, row lostFile, data, older, other string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(data, row.name))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no %s: %v", row.name, err)
	}
	for _, path := range paths {
		name := strings.TrimPrefix(path, data)
		if err := damages()[row.damage](path, filepath.Join(older, name), filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLoss starts a service on a damaged folder, repairs it and checks what it answers then.
func (u usedFolder) checkLoss(t *testing.T, row lostFile, data string) {
	t.Helper()
	logged := &lockedBuffer{}
	change := func(c *service.Config) {
		c.Data, c.Log = data, slog.New(slog.NewTextHandler(io.MultiWriter(logged, t.Output()), nil))
	}
	svc, err := tryStartService(t, change)
	if err == nil && row.refusal != "" || err != nil && (row.refusal == "" || !strings.Contains(err.Error(), row.refusal)) {
		t.Fatalf("the start says %v, want %q", err, row.refusal)
	}
	if err == nil {
		svc.operator = u.operator
		if row.said != "" {
			waitUntil(t, "readiness says what to do", func() bool { return strings.Contains(svc.readiness(t).text, row.said) })
		}
	}
	switch {
	case row.repair == putBack:
		if svc != nil {
			svc.stop()
		}
		u.putBack(t, row.name, data)
	case row.repair == moveAway:
		accept := func(c *service.Config) { change(c); c.AcceptLostUsage = true }
		if _, err := tryStartService(t, accept); err == nil || !strings.Contains(err.Error(), row.refusal) {
			t.Errorf("with --accept-lost-usage alone the start says %v, want %q", err, row.refusal)
		}
		if err := os.Rename(filepath.Join(data, row.name), filepath.Join(t.TempDir(), "moved")); err != nil {
			t.Fatal(err)
		}
		svc = startServiceUnready(t, accept)
	case row.repair == salvage:
		salvageLogs(t, data)
		svc = startServiceUnready(t, change)
		svc.runCommand(t, "projections rebuild --all")
	case row.repair == "token recover": // works on a folder without a service
		waitUntil(t, "the loss is said", func() bool { return strings.Contains(logged.String(), row.logged) })
		svc.stop()
		svc.runCommand(t, "token recover --data "+data)
		svc = nil
	case strings.HasPrefix(row.repair, "--"):
		first := change
		change = func(c *service.Config) {
			first(c)
			c.AcceptLostUsage = row.repair == "--accept-lost-usage"
		}
	case row.repair != "":
		svc.runCommand(t, row.repair)
	}
	if svc == nil || row.repair == putBack {
		svc = startServiceUnready(t, change)
	}
	u.checkRepaired(t, row, svc)
	if !strings.Contains(logged.String(), row.logged) {
		t.Errorf("no line of the log says %q", row.logged)
	}
}

// putBack replaces what a row names in a data folder by what the used folder has of it.
func (u usedFolder) putBack(t *testing.T, name, data string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(u.path, name))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no %s: %v", name, err)
	}
	for _, path := range paths {
		if err := replacePath(filepath.Join(data, strings.TrimPrefix(path, u.path)), path); err != nil {
			t.Fatal(err)
		}
	}
}

// salvageLogs salvages the logs of a data folder and puts what is whole in their place.
func salvageLogs(t *testing.T, data string) {
	t.Helper()
	log, salvaged := filepath.Join(data, "log"), filepath.Join(data, "log-salvaged")
	new(testService).runCommand(t, "log salvage --data "+data+" --out "+salvaged)
	if err := errors.Join(os.Rename(log, log+"-damaged"), os.Rename(salvaged, log)); err != nil {
		t.Fatal(err)
	}
}

// checkRepaired checks that a service shows all that the folder held, but for what the row says is lost.
func (u usedFolder) checkRepaired(t *testing.T, row lostFile, svc *testService) {
	t.Helper()
	waitUntil(t, "it is ready and has nothing to say", func() bool {
		r := svc.readiness(t)
		return r.status == http.StatusOK && r.parts["read models"] == "ok" && r.parts["usage log"] == "ok" && r.parts["data keys"] == "ok" &&
			r.parts["addresses"] == "ok" && r.parts["routes"] == "ok"
	})
	sites, keys, requests := 2001, 2, 4
	if row.wantOlder {
		sites, keys = 2000, 1
	}
	if row.wantOneKey {
		keys = 1
	}
	if row.wantOlderUsage {
		requests = 2
	}
	if row.wantNoUsage {
		requests = 0
	}
	u.checkRequests(t, svc, sites, keys, requests)
	for _, path := range []string{oneAddressPath, routePath} {
		if got := svc.statusOf(t, u.key, "GET "+path, ""); got != http.StatusOK {
			t.Errorf("%s: %d, want 200", path, got)
		}
	}
}

// checkRequests checks the sites, keys and requests of the account paul in all that shows them.
func (u usedFolder) checkRequests(t *testing.T, svc *testService, sites, keys, requests int) {
	t.Helper()
	var me body.Me
	if svc.getJSON(t, u.key, "/me", &me); me.Sites.Active == nil || *me.Sites.Active != sites || me.Quota.Used == nil || *me.Quota.Used != int64(requests+1) {
		t.Errorf("/me: %+v, want %d sites and %d requests", me, sites, requests+1)
	}
	waitUntil(t, "the export has all sites", func() bool { // a read model that lags a little counts as ready
		return strings.Count(svc.mustSend(t, u.key, "GET /locations/referentiels/m/sites:export?format=ndjson", ""), `"external_id"`) == sites
	})
	svc.waitForUsageAbove(t, requests+1)
	if got := strings.Count(svc.runCommand(t, "key list paul --json"), `"hint"`); got != keys {
		t.Errorf("%d keys, want %d", got, keys)
	}
	if got := svc.runCommand(t, "account show paul"); !strings.Contains(got, "Maison paul") {
		t.Errorf("the account is %s", got)
	}
	if got := strings.Count(svc.runCommand(t, "audit log paul --json"), "key-issued"); got != keys {
		t.Errorf("the history has %d keys, want %d", got, keys)
	}
}

// usedFolder is the data folder of a service that was used and stopped, of which tests damage copies.
type usedFolder struct {
	path, older string // as it is, and as it was before the last requests
	killed      string // as it was while the service ran
	olderKilled string // the same before the last requests
	key         string // of the account paul, in both
	operator    string
}

// newUsedFolder fills a data folder. Each of its logs has two segments, of which the first is full.
func newUsedFolder(t *testing.T) usedFolder {
	t.Helper()
	copies := t.TempDir()
	used := usedFolder{path: filepath.Join(copies, "used"), older: filepath.Join(copies, "older"),
		killed: filepath.Join(copies, "killed"), olderKilled: filepath.Join(copies, "older-killed")}
	fillSegment(t, filepath.Join(used.path, "log", "core"), 6)
	fillSegment(t, filepath.Join(used.path, "log", "usage"), 7)
	here := func(c *service.Config) { c.Data = used.path }
	svc := startService(t, here)
	used.operator = svc.operator
	svc.runCommand(t, `account open "Maison paul" --id paul --plan BUSINESS`)
	used.key = strings.TrimSpace(svc.runCommand(t, `key issue paul --label first`))
	svc.mustSend(t, used.key, "POST /locations/referentiels", `{"code":"m"}`)
	svc.mustSend(t, used.key, "POST /locations/referentiels/m/sites:sync", sitesWithOddText(2000))
	svc.importReleases(t)
	svc.waitForUsage(t, 2)
	svc.waitForReadModels(t)
	mustCopySparse(t, used.path, used.olderKilled)
	svc.stop()
	mustCopySparse(t, used.path, used.older)
	svc = startService(t, here)
	svc.mustSend(t, used.key, "PUT /locations/referentiels/m/sites/one", `{"nom":"Nestor"}`)
	svc.runCommand(t, `key issue paul --label second`)
	svc.mustSend(t, used.key, "GET /me", "")
	svc.waitForUsage(t, 4)
	svc.waitForReadModels(t)
	mustCopySparse(t, used.path, used.killed)
	svc.stop()
	return used
}

// importReleases imports a vintage of one address and a road network.
func (svc *testService) importReleases(t *testing.T) {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	mustWriteFile(t, rows, oneAddressCSV)
	svc.runCommand(t, "ban import --data "+svc.data+" "+rows)
	svc.runCommand(t, "roads import --data "+svc.data+" "+svc.generateMaps(t, 1)[0])
}

// waitForReadModels waits until every read model shows the whole log, so that nothing is written for a while.
func (svc *testService) waitForReadModels(t *testing.T) {
	t.Helper()
	waitUntil(t, "the read models have caught up", func() bool {
		shown := svc.runCommand(t, "projections status --json")
		return strings.Contains(shown, `"serving"`) && !regexp.MustCompile(`"(retard|lag)":[1-9]`).MatchString(shown)
	})
}

// waitForUsage waits until the account paul was counted n requests.
func (svc *testService) waitForUsage(t *testing.T, want int) {
	t.Helper()
	waitUntil(t, "the usage is shown", func() bool {
		return strings.Contains(svc.runCommand(t, "usage show paul --json"), fmt.Sprintf(`"total":%d`, want))
	})
}

// waitForUsageAbove waits until the account paul was counted more than n requests.
func (svc *testService) waitForUsageAbove(t *testing.T, requests int) {
	t.Helper()
	waitUntil(t, "the usage is shown", func() bool {
		var shown struct{ Total int }
		err := json.Unmarshal([]byte(svc.runCommand(t, "usage show paul --json")), &shown)
		return err == nil && shown.Total > requests
	})
}

// fillSegment makes a log whose first segment is almost full, of events that no part reads.
func fillSegment(t *testing.T, dir string, events int) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range events {
		event := eventstore.ProposedEvent{ID: uuid.New(), Type: "filler.filled.v1", Data: []byte(`{"x":"` + strings.Repeat("x", 2000) + `"}`), Metadata: []byte(`{"actor":"system","end":true}`)}
		if _, err := j.Append(t.Context(), "filler-1", eventstore.Any, []eventstore.ProposedEvent{event}); err != nil {
			t.Fatal(err)
		}
	}
}

// mustCopySparse is copySparse that must succeed.
func mustCopySparse(t *testing.T, from, to string) {
	t.Helper()
	if err := copySparse(from, to); err != nil {
		t.Fatal(err)
	}
}

// copySparse copies a file or folder and leaves holes where files hold zeros: segments of a log are mostly those.
func copySparse(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		target := filepath.Join(to, name)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case e.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(link, target))
		}
		return copySparseFile(path, target)
	})
}

func copySparseFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	block, zeros, size := make([]byte, 64<<10), make([]byte, 64<<10), int64(0)
	for {
		n, err := io.ReadFull(in, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}

// folderDeleted is the damage of the whole folder of read models.
const folderDeleted = "folder deleted"

// TestAReadModelIsMadeAgainUnderARunningService damages the files of read models while requests are served. Keys and metering
// continue, no query answers wrong rows, and after a while all is as before.
func TestAReadModelIsMadeAgainUnderARunningService(t *testing.T) {
	t.Parallel()
	used := newUsedFolder(t)
	for _, damage := range []string{"deleted", "emptied", "of another service", folderDeleted} {
		t.Run(strings.ReplaceAll(damage, " ", "_"), func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			mustCopySparse(t, used.path, data)
			logged := &lockedBuffer{}
			svc := startService(t, func(c *service.Config) {
				c.Data, c.Log = data, slog.New(slog.NewTextHandler(io.MultiWriter(logged, t.Output()), nil))
			})
			files, err := filepath.Glob(filepath.Join(data, "readmodels", "*-g1.db"))
			if err != nil || len(files) != 4 {
				t.Fatalf("the read models are %v, %v", files, err)
			}
			if damage == folderDeleted {
				err = os.RemoveAll(filepath.Join(data, "readmodels"))
			}
			for _, path := range files {
				older := filepath.Join(used.older, "readmodels", filepath.Base(path))
				if damage != folderDeleted {
					err = errors.Join(err, damages()[damage](path, older, older))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if status := svc.statusOfMe(t, used.key); status != http.StatusOK {
				t.Errorf("/me: %d, want 200", status)
			}
			waitUntil(t, "all of them are made again", func() bool {
				made, err := filepath.Glob(filepath.Join(data, "readmodels", "*-g2.db"))
				left, otherErr := filepath.Glob(filepath.Join(data, "readmodels", "*-g1.db*"))
				return err == nil && otherErr == nil && len(made) == 4 && len(left) == 0 && svc.readiness(t).parts["read models"] == "ok"
			})
			want := len(files)
			if damage == folderDeleted {
				want++ // the registry
			}
			if n := strings.Count(logged.String(), "a file of a read model is lost or damaged"); n != want {
				t.Errorf("%d lines of the log, want %d, one a file", n, want)
			}
			svc.mustSend(t, used.key, "PUT /locations/referentiels/m/sites/one", `{"nom":"Nestor"}`)
			used.checkRequests(t, svc, 2001, 2, 6)
		})
	}
}
