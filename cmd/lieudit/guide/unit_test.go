package guide

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/leveltest"
)

// unitFiles are the units that come with the guide.
func unitFiles() []string {
	return []string{"lieudit.service", "lieudit-backup.service", "lieudit-backup.timer"}
}

// program is where the units look for it.
const program = "/usr/local/bin/lieudit"

func readUnit(t *testing.T, name string) string {
	t.Helper()
	unit, err := ReadFile("systemd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(unit)
}

// systemd-analyze refuses a unit whose program is not there, so it sees another one.
func TestTheUnitsAreAcceptedBySystemd(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("systemd-analyze")
	leveltest.Need(t, leveltest.Whole, leveltest.Missing("apt-get install systemd", err))
	if !strings.Contains(readUnit(t, "lieudit.service"), "ExecStart="+program+" serve") {
		t.Fatalf("the unit does not start %s", program)
	}
	dir := t.TempDir()
	for _, name := range unitFiles() {
		unit := strings.ReplaceAll(readUnit(t, name), program, "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range unitFiles() {
		out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", filepath.Join(dir, name)).CombinedOutput()
		if err != nil || strings.Contains(string(out), "lieudit") {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}

// Files that another user made in the data folder could not be read by the service.
func TestTheBackupRunsAsTheUserOfTheService(t *testing.T) {
	t.Parallel()
	service, backup := readUnit(t, "lieudit.service"), readUnit(t, "lieudit-backup.service")
	for _, line := range []string{
		"DynamicUser=yes", "User=lieudit", "StateDirectoryMode=0700", "UMask=0077", "EnvironmentFile=-/etc/lieudit/environment",
		"Environment=LIEUDIT_DATA=/var/lib/lieudit",
	} {
		if !strings.Contains(service, "\n"+line+"\n") || !strings.Contains(backup, "\n"+line+"\n") {
			t.Errorf("%s is not in both units", line)
		}
	}
}

// backupScript is the script of the unit as systemd hands it to the shell, on another folder and with another program.
func backupScript(t *testing.T, dir, program string) string {
	t.Helper()
	_, after, found := strings.Cut(readUnit(t, "lieudit-backup.service"), "ExecStart=/bin/sh -ec '")
	script, _, ends := strings.Cut(after, "'\n")
	if !found || !ends {
		t.Fatal("the unit has no script")
	}
	return strings.NewReplacer("\\\n", " ", "$$", "$", "%%", "%", "/var/lib/lieudit-backups", dir, "/usr/local/bin/lieudit", program).Replace(script)
}

func TestTheBackupKeepsOldFilesUntilANewOneIsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, lieudit string // what stands for the program
		isError       bool
		want          []string
	}{
		{"a_whole_copy", `if [ "$2" = --out ]; then touch "$3"; else test -e "$3"; fi`, false, []string{"new", "other.txt", "young.lieudit"}},
		{"no_copy", `exit 1`, true, []string{"old.lieudit", "other.txt", "young.lieudit"}},
		{"a_damaged_copy", `if [ "$2" = --out ]; then touch "$3"; else exit 1; fi`, true, []string{"new", "old.lieudit", "other.txt", "young.lieudit"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			dir, now := t.TempDir(), time.Now()
			for name, days := range map[string]int{"old.lieudit": 40, "young.lieudit": 20, "other.txt": 40} {
				day := now.AddDate(0, 0, -days)
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(filepath.Join(dir, name), day, day); err != nil {
					t.Fatal(err)
				}
			}
			stub := filepath.Join(t.TempDir(), "lieudit")
			if err := os.WriteFile(stub, []byte("#!/bin/sh\n"+c.lieudit+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", backupScript(t, dir, stub)).CombinedOutput()
			if (err != nil) != c.isError {
				t.Errorf("the script ends with %v: %s", err, out)
			}
			if diff := cmp.Diff(c.want, listBackups(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// listBackups lists a folder. A file whose name is a moment is "new".
func listBackups(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := time.Parse("2006-01-02T150405Z.lieudit", e.Name()); err == nil {
			names = append(names, "new")
			continue
		}
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
