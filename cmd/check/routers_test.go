package main

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// writeWheel writes a wheel with files of the given modes.
func writeWheel(t *testing.T, files map[string]fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for name, mode := range files {
		header := &zip.FileHeader{Name: name}
		header.SetMode(mode)
		content, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := content.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyProgramsAreUnpackedAndStayExecutable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	wheel := writeWheel(t, map[string]fs.FileMode{
		"osrm/bin/osrm-routed": 0o755, "osrm/share/profiles/car.lua": 0o644, "osrm/__init__.py": 0o644,
	})
	if err := unpackWheel(wheel, folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"osrm/bin/osrm-routed": 0o755, "osrm/share/profiles/car.lua": 0o644} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm()&0o111 != want&0o111 || info.Size() != int64(len(name)) {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "osrm", "__init__.py")); err == nil {
		t.Error("a file of Python was unpacked")
	}
}

func TestAWheelDoesNotWriteOutsideOfItsFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "inner")
	if err := unpackWheel(writeWheel(t, map[string]fs.FileMode{"osrm/bin/../../../outside": 0o644}), folder); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Join(folder, "..", "outside")); err == nil {
		t.Error("the file was written")
	}
}

func TestAnUnknownWheelIsRefused(t *testing.T) {
	t.Parallel()
	if err := checkSum(writeWheel(t, nil)); err == nil {
		t.Error("no error")
	}
}
