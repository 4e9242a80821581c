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
