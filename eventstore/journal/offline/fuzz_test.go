package offline_test

import (
	"os"
	"path/filepath"
	"testing"

	"lieudit/eventstore/journal/offline"
)

// FuzzSalvage puts arbitrary bytes anywhere in a log's files, or truncates one. What salvage saves and what it reports as
// lost is as it was written, and a log that verify finds whole is salvaged whole.
func FuzzSalvage(f *testing.F) {
	f.Add(uint8(0), uint32(64), []byte{0, 0, 0, 0}, false)
	f.Add(uint8(2), uint32(8256), []byte{1}, false)
	f.Add(uint8(3), uint32(70), make([]byte, 300), false)
	f.Add(uint8(4), uint32(0), []byte("LIEUDITX"), false)
	f.Add(uint8(1), uint32(900), []byte{}, true)
	f.Add(uint8(7), uint32(20), []byte{}, true)
	src, isMade := f.TempDir(), false
	var logID string
	var whole []string
	f.Fuzz(func(t *testing.T, file uint8, at uint32, b []byte, isCut bool) {
		if !isMade {
			made := newLogFolder(t, 60)
			id, events := readLog(t, made)
			logID, whole, isMade = id.String(), events, true
			copyFiles(t, made, src)
		}
		dir, dst := copyFiles(t, src, t.TempDir()), filepath.Join(t.TempDir(), "salvaged")
		spoilFile(t, dir, int(file), int64(at), b, isCut)
		v, verifyErr := offline.VerifyLog(t.Context(), dir, nil)
		s, err := offline.SalvageLog(t.Context(), dir, dst)
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		if s.HasLog {
			kept = checkSalvagedLog(t, dst, s, logID, whole)
		}
		checkLost(t, dst, s, whole[kept:])
		if verifyErr == nil && (s.Damage != nil || kept != v.Events) {
			t.Errorf("verify finds %d events and no damage, salvage keeps %d, %v", v.Events, kept, s.Damage)
		}
	})
}

// spoilFile damages one file of a folder.
func spoilFile(t *testing.T, dir string, file int, at int64, b []byte, isCut bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, entries[file%len(entries)].Name())
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return
	}
	at %= info.Size()
	if isCut {
		truncate(t, path, at)
	} else {
		overwrite(t, path, at, b[:min(int64(len(b)), info.Size()-at)])
	}
}

// copyFiles copies the files of a folder into another, whose path it returns.
func copyFiles(t *testing.T, from, to string) string {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}
