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
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/body"
)

// lostFile is a file of the data folder that is damaged while no service runs, what the next start says of it, and what
// repairs it. The operators' guide has the same table.
type lostFile struct {
	name, damage string // damage is a key of damages
	refusal      string // why the service does not start; "": it starts
	said         string // what readiness says until the repair; "": it has nothing to say of the data folder
	logged       string // what a line of the log says
	repair       string // "put back", flags of serve, or a command; "": it repairs itself
	wantOlder    bool   // what was written last is lost, and all the rest is there
	wantNoUsage  bool   // what was counted is lost

	wantOlderUsage bool // what was counted last is lost
}

// putBack is the repair of a file that only a backup has.
const putBack = "put back"

const (
	coreLogLost  = "put log/core back from a backup"
	usageLogLost = "is missing in log/usage"
	vaultLost    = "Put the newest copy of this log's vault there"
	usageTooLow  = "are not on it, and their accounts are counted too low"
	usageLogElse = "one of the two is another service's"
)

// lostFiles are the rows of the table.
func lostFiles() []lostFile {
	const foldOfPaul = "folds/locations-paul.fold"
	const oldCore, newCore, oldUsage, newUsage = "log/core/0000000000000000", "log/core/0000000000004000", "log/usage/0000000000000000", "log/usage/0000000000004000"
	return []lostFile{
		{name: "log", damage: "deleted", refusal: coreLogLost, repair: putBack},
		{name: "log/core", damage: "deleted", refusal: coreLogLost, repair: putBack},
		{name: "log/core", damage: "of another service", refusal: usageLogElse, repair: putBack},
		{name: "log/core", damage: "older", said: "projections rebuild --all", repair: "projections rebuild --all", wantOlder: true},
		{name: oldCore + ".log", damage: "deleted", refusal: "segment is missing", repair: putBack},
		{name: oldCore + ".log", damage: "emptied", refusal: "log damaged at position 0", repair: putBack},
		{name: oldCore + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: oldCore + ".idx", damage: "deleted"},
		{name: oldCore + ".idx", damage: "emptied"},
		{name: oldCore + ".idx", damage: "cut"},
		{name: oldCore + ".idx", damage: "flipped"},
		{name: newCore + ".log", damage: "deleted", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: "emptied", refusal: "log damaged at position 16384", repair: putBack},
		{name: newCore + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: "flipped", refusal: "log damaged at position", repair: putBack},
		{name: newCore + ".log", damage: "older", said: "projections rebuild --all", repair: "projections rebuild --all", wantOlder: true},
		{name: "log/usage", damage: "deleted", refusal: usageLogLost, repair: putBack},
		{name: "log/usage", damage: "deleted", refusal: usageLogLost, repair: "--accept-lost-usage", wantNoUsage: true},
		{name: "log/usage", damage: "of another service", refusal: usageLogElse, repair: putBack},
		{name: "log/usage", damage: "older", said: usageTooLow, repair: putBack},
		{name: "log/usage", damage: "older", said: usageTooLow, repair: "projections rebuild usage", wantOlderUsage: true},
		{name: oldUsage + ".log", damage: "deleted", refusal: "segment is missing", repair: putBack},
		{name: oldUsage + ".log", damage: "emptied", refusal: "log damaged at position 0", repair: putBack},
		{name: oldUsage + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: oldUsage + ".idx", damage: "deleted"},
		{name: newUsage + ".log", damage: "deleted", refusal: "log damaged at position", repair: putBack},
		{name: newUsage + ".log", damage: "older", said: usageTooLow, repair: putBack},
		{name: newUsage + ".log", damage: "cut", refusal: "log damaged at position", repair: putBack},
		{name: "vault.db", damage: "deleted", refusal: "Put the newest copy of it back there", repair: putBack},
		{name: "vault.db", damage: "emptied", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "cut", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "flipped", refusal: vaultLost, repair: putBack},
		{name: "vault.db", damage: "older"}, // no account was opened since
		{name: "vault.db", damage: "of another service", refusal: vaultLost, repair: putBack},
		{name: "operator-token", damage: "deleted", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "emptied", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "cut", logged: "lieudit token recover", repair: "token recover"},
		{name: "operator-token", damage: "flipped", logged: "lieudit token recover", repair: "token recover"},
		{name: "keyring", damage: "deleted"},
		{name: "keyring", damage: "emptied", logged: "key ring's snapshot is not used"},
		{name: "keyring", damage: "cut", logged: "key ring's snapshot is not used"},
		{name: "keyring", damage: "flipped", logged: "key ring's snapshot is not used"},
		{name: "keyring", damage: "older"},
		{name: "keyring", damage: "of another service", logged: "key ring begins again from zero"},
		{name: "folds", damage: "deleted"},
		{name: foldOfPaul, damage: "deleted"},
		{name: foldOfPaul, damage: "emptied", logged: "a snapshot is ignored"},
		{name: foldOfPaul, damage: "cut", logged: "a snapshot is ignored"},
		{name: foldOfPaul, damage: "flipped", logged: "a snapshot is ignored"},
		{name: "lock", damage: "deleted"},
		{name: "log/core/lock", damage: "emptied"},
		{name: "log/usage/lock", damage: "flipped"},
		{name: "uploads", damage: "deleted"},
		{name: "readmodels", damage: "deleted"},
		{name: "readmodels", damage: "older"},
		{name: "readmodels", damage: "of another service", logged: "made again from this log"},
		{name: "readmodels/places.db", damage: "deleted"}, // a link for people
		{name: "readmodels/registry.db", damage: "deleted", logged: "registry.db is missing"},
		{name: "readmodels/registry.db", damage: "emptied", logged: "registry.db is empty"},
		{name: "readmodels/registry.db", damage: "cut", logged: "registry.db is damaged"},
		{name: "readmodels/registry.db", damage: "flipped", logged: "registry.db is damaged"},
		{name: "readmodels/registry.db", damage: "older"},
	}
}

// readModelRows are the rows of the files of read models.
func readModelRows(used string) (rows []lostFile, err error) {
	files, err := filepath.Glob(filepath.Join(used, "readmodels", "*-g1.db"))
	for _, path := range files {
		name := "readmodels/" + filepath.Base(path)
		rows = append(rows,
			lostFile{name: name, damage: "deleted", logged: filepath.Base(path) + " is missing"},
			lostFile{name: name, damage: "emptied", logged: filepath.Base(path) + " is empty"},
			lostFile{name: name, damage: "cut", logged: filepath.Base(path) + " is damaged"},
			lostFile{name: name, damage: "flipped", logged: filepath.Base(path) + " is damaged"},
			lostFile{name: name, damage: "older"},
			lostFile{name: name, damage: "of another service", logged: "made again from this log"})
	}
	return rows, err
}

// damages are what can happen to a file or folder. older and other are the same one of a copy from before and of another
// service.
func damages() map[string]func(path, older, other string) error {
	return map[string]func(path, older, other string) error{
		"deleted": func(path, _, _ string) error { return os.RemoveAll(path) },
		"emptied": func(path, _, _ string) error { return os.Truncate(path, 0) },
		"cut": func(path, _, _ string) error {
			found, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, found.Size()/2)
		},
		"flipped":            func(path, _, _ string) error { return flipBit(path) },
		"older":              func(path, older, _ string) error { return replacePath(path, older) },
		"of another service": func(path, _, other string) error { return replacePath(path, other) },
	}
}

// flipBit changes one bit in the middle of a file, of a segment in its first events, and of a database in its first page.
func flipBit(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	found, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	at, b := found.Size()/2, make([]byte, 1)
	switch filepath.Ext(path) {
	case ".log":
		at = 5000
	case ".db":
		at = 100 // the kind of the page
	}
	if _, err := file.ReadAt(b, at); err != nil {
		return errors.Join(err, file.Close())
	}
	b[0] ^= 4
	_, err = file.WriteAt(b, at)
	return errors.Join(err, file.Close())
}

// replacePath puts a copy of a file or folder in the place of another.
func replacePath(path, by string) error {
	return errors.Join(os.RemoveAll(path), copySparse(by, path))
}

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
	for _, row := range append(lostFiles(), readModels...) {
		name := strings.ReplaceAll(row.name+" "+row.damage+" "+row.repair, " ", "_")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			mustCopySparse(t, used.path, data)
			if err := damages()[row.damage](filepath.Join(data, row.name), filepath.Join(used.older, row.name), filepath.Join(other.data, row.name)); err != nil {
				t.Fatal(err)
			}
			used.checkLoss(t, row, data)
		})
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
		if err := replacePath(filepath.Join(data, row.name), filepath.Join(u.path, row.name)); err != nil {
			t.Fatal(err)
		}
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

// checkRepaired checks that a service shows all that the folder held, but for what the row says is lost.
func (u usedFolder) checkRepaired(t *testing.T, row lostFile, svc *testService) {
	t.Helper()
	waitUntil(t, "it is ready and has nothing to say", func() bool {
		r := svc.readiness(t)
		return r.status == http.StatusOK && r.parts["read models"] == "ok" && r.parts["usage log"] == "ok" && r.parts["data keys"] == "ok"
	})
	sites, keys, requests := 2001, 2, 4
	if row.wantOlder {
		sites, keys = 2000, 1
	}
	if row.wantOlderUsage {
		requests = 2
	}
	if row.wantNoUsage {
		requests = 0
	}
	u.checkRequests(t, svc, sites, keys, requests)
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
	key         string // of the account paul, in both
	operator    string
}

// newUsedFolder fills a data folder. Each of its logs has two segments, of which the first is full.
func newUsedFolder(t *testing.T) usedFolder {
	t.Helper()
	used := usedFolder{path: filepath.Join(t.TempDir(), "used"), older: filepath.Join(t.TempDir(), "older")}
	fillSegment(t, filepath.Join(used.path, "log", "core"), 6)
	fillSegment(t, filepath.Join(used.path, "log", "usage"), 7)
	here := func(c *service.Config) { c.Data = used.path }
	svc := startService(t, here)
	used.operator = svc.operator
	svc.runCommand(t, `account open "Maison paul" --id paul --plan BUSINESS`)
	used.key = strings.TrimSpace(svc.runCommand(t, `key issue paul --label first`))
	svc.mustSend(t, used.key, "POST /locations/referentiels", `{"code":"m"}`)
	svc.mustSend(t, used.key, "POST /locations/referentiels/m/sites:sync", sitesWithOddText(2000))
	svc.waitForUsage(t, 2)
	svc.stop()
	mustCopySparse(t, used.path, used.older)
	svc = startService(t, here)
	svc.mustSend(t, used.key, "PUT /locations/referentiels/m/sites/one", `{"nom":"Nestor"}`)
	svc.runCommand(t, `key issue paul --label second`)
	svc.mustSend(t, used.key, "GET /me", "")
	svc.waitForUsage(t, 4)
	svc.stop()
	return used
}

// waitForUsage waits until the account paul was counted so many requests.
func (svc *testService) waitForUsage(t *testing.T, want int) {
	t.Helper()
	waitUntil(t, "the usage is shown", func() bool {
		return strings.Contains(svc.runCommand(t, "usage show paul --json"), fmt.Sprintf(`"total":%d`, want))
	})
}

// waitForUsageAbove waits until the account paul was counted more than so many requests.
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
// go on, no query answers wrong rows, and after a while all is as before.
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
				return err == nil && otherErr == nil && len(made) == 4 && len(left) == 0
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
