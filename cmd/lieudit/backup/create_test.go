package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/backup"
)

func TestABackupOfNoServiceLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := backup.Create(t.Context(), backup.Source{Data: filepath.Join(dir, "none"), Now: time.Now}, filepath.Join(dir, "b.lieudit"))
	if err == nil || !strings.Contains(err.Error(), "there is no log in "+filepath.Join(dir, "none", "log", "core")) {
		t.Errorf("got %v; want an error that says where there is no log", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestABackupIntoAFolderThatIsNotThereMakesNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := backup.Create(t.Context(), backup.Source{Data: dir, Now: time.Now}, filepath.Join(dir, "disk", "b.lieudit"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want the system's error", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestABackupTakesNothingElseForItsOwn: the folder next to the backup, in which it is made, may be another's by chance.
func TestABackupTakesNothingElseForItsOwn(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(work, mine string) error{
		"a folder with a file": func(work, mine string) error {
			return errors.Join(os.Mkdir(work, 0o700), os.WriteFile(filepath.Join(work, "mine"), nil, 0o600))
		},
		"a link to a folder": func(work, mine string) error { return os.Symlink(mine, work) },
		"a file":             func(work, mine string) error { return os.WriteFile(work, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, mine := t.TempDir(), t.TempDir()
			work := filepath.Join(dir, "b.lieudit.partial")
			if err := errors.Join(make(work, mine), os.WriteFile(filepath.Join(mine, "mine"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := backup.Create(t.Context(), backup.Source{Data: dir, Now: time.Now}, filepath.Join(dir, "b.lieudit"))
			if err == nil || !strings.Contains(err.Error(), "is in the way") {
				t.Errorf("got %v; want that it is in the way", err)
			}
			for _, path := range []string{work, filepath.Join(mine, "mine")} {
				if _, err := os.Lstat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestABackupIsNotWrittenAmongTheFilesOfAService(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "uploads"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Create(t.Context(), backup.Source{Data: data, Now: time.Now}, filepath.Join(data, "uploads", "b.lieudit"))
	if err == nil || !strings.Contains(err.Error(), "write the backup elsewhere") {
		t.Errorf("got %v; want that it is to be written elsewhere", err)
	}
}
