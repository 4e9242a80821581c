package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ignoreProgress is a Progress that tells nobody.
func ignoreProgress(int64, int64) {}

// testParts are files of a backup, one of which does not compress.
func testParts() []part {
	noise := sha256.Sum256([]byte("noise"))
	texts := map[string][]byte{"vault.db": bytes.Repeat(noise[:], 9), "operator-token": []byte("ld_ct_x\n")}
	parts := []part{}
	for _, name := range []string{"log/core/00000000000000000000.log", "vault.db", "operator-token"} {
		text := texts[name]
		if text == nil {
			text = bytes.Repeat([]byte("segment "), 100)
		}
		parts = append(parts, part{File: File{name, int64(len(text))}, text: text})
	}
	return parts
}

// newManifest is the manifest of a backup with the parts.
func newManifest(parts []part) Manifest {
	m := Manifest{Format: Format, Program: "v1.2.3", TakenAt: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	for _, p := range parts {
		m.Files = append(m.Files, p.File)
	}
	return m
}

// encodeBackup is the content of a backup.
func encodeBackup(t testing.TB, m Manifest, parts []part) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := writeArchive(t.Context(), &out, m, parts, ignoreProgress); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func writeBackup(t testing.TB, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads a backup as a restore does, and returns its files by their names.
func readAll(t testing.TB, path string) (map[string]string, error) {
	t.Helper()
	r, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	defer r.close()
	found := map[string]*bytes.Buffer{}
	err = r.readFiles(t.Context(), func(f File) (io.WriteCloser, error) {
		found[f.Name] = &bytes.Buffer{}
		return nopCloser{found[f.Name]}, nil
	}, ignoreProgress)
	texts := map[string]string{}
	for name, text := range found {
		texts[name] = text.String()
	}
	return texts, err
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	parts := testParts()
	got, err := readAll(t, writeBackup(t, encodeBackup(t, newManifest(parts), parts)))
	if err != nil || len(got) != len(parts) {
		t.Fatalf("%d files, %v; want %d", len(got), err, len(parts))
	}
	for _, p := range parts {
		if got[p.Name] != string(p.text) {
			t.Errorf("%s is %q, want %q", p.Name, got[p.Name], p.text)
		}
	}
}

// TestEachFlippedByteIsNoticed flips one bit of every byte in turn. A flip that changes no file is none.
func TestEachFlippedByteIsNoticed(t *testing.T) {
	t.Parallel()
	parts := testParts()
	whole := encodeBackup(t, newManifest(parts), parts)
	noticed := 0
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		got, err := readAll(t, writeBackup(t, damaged))
		var named *DamagedError
		switch {
		case errors.As(err, &named) || errors.Is(err, ErrNoBackup):
			noticed++
		case err != nil:
			t.Errorf("byte %d: %v, want an error that names the part", i, err)
		default:
			for _, p := range parts {
				if got[p.Name] != string(p.text) {
					t.Errorf("byte %d: %s has changed and nothing was said", i, p.Name)
				}
			}
		}
	}
	if noticed < len(whole)-8 { // a few bits of the frame's header mean nothing
		t.Errorf("%d of %d flips are noticed", noticed, len(whole))
	}
}

func TestABackupThatEndsEarlyIsRefused(t *testing.T) {
	t.Parallel()
	parts := testParts()
	whole := encodeBackup(t, newManifest(parts), parts)
	for length := range len(whole) {
		path := writeBackup(t, whole[:length])
		_, err := Verify(t.Context(), path, ignoreProgress)
		var named *DamagedError
		if !errors.As(err, &named) && !errors.Is(err, ErrNoBackup) {
			t.Fatalf("%d bytes of %d: %v, want that it is damaged", length, len(whole), err)
		}
	}
}

// TestADamagedPartIsNamed changes what an entry holds and leaves the rest as it is, as a bad disk under the packed files would.
func TestADamagedPartIsNamed(t *testing.T) {
	t.Parallel()
	parts := testParts()
	entries := listEntries(t, encodeBackup(t, newManifest(parts), parts))
	if want := len(parts) + 2; len(entries) != want {
		t.Fatalf("%d entries, want %d", len(entries), want)
	}
	for i, e := range entries[1 : len(entries)-1] {
		changed := append([]entry{}, entries...)
		changed[i+1].text = append(bytes.Clone(e.text[:len(e.text)-1]), '#')
		_, err := Verify(t.Context(), writeBackup(t, packEntries(t, changed)), ignoreProgress)
		var named *DamagedError
		if !errors.As(err, &named) || named.Entry != e.name || !strings.Contains(err.Error(), e.name) {
			t.Errorf("%s: %v, want an error that names it", e.name, err)
		}
	}
	for name, changed := range map[string][]entry{
		"an entry too many": append(append([]entry{}, entries...), entry{"more", []byte("x")}),
		"no sums":           entries[:len(entries)-1],
		"another order":     {entries[0], entries[2], entries[1], entries[3], entries[4]},
		"an empty list":     append(append([]entry{}, entries[:len(entries)-1]...), entry{sumsEntry, nil}),
	} {
		if _, err := Verify(t.Context(), writeBackup(t, packEntries(t, changed)), ignoreProgress); err == nil {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

func TestAnotherFormatIsRefusedInWords(t *testing.T) {
	t.Parallel()
	m := newManifest(nil)
	m.Format = Format + 1
	_, err := ReadManifest(writeBackup(t, encodeBackup(t, m, nil)))
	var other *FormatError
	if !errors.As(err, &other) {
		t.Fatalf("%v, want a *FormatError", err)
	}
	for format, want := range map[int]string{Format + 1: "newer form", Format - 1: "older form"} {
		other.Format = format
		if got := other.Error(); !strings.Contains(got, want) || !strings.Contains(got, "lieudit v1.2.3") {
			t.Errorf("format %d: %s, want %q and which program reads it", format, got, want)
		}
	}
}

func TestAFileThatIsNoBackupIsRefused(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "PK\x03\x04", "id;nom\n1;Paul\n", string(packEntries(t, []entry{{"vault.db", []byte("x")}}))} {
		if _, err := ReadManifest(writeBackup(t, []byte(content))); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%.10q: %v, want ErrNoBackup", content, err)
		}
	}
}

func TestNothingIsRestoredOutsideOfItsFolder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"vault.db": true, "log/core/0.log": true, "log/usage/0.index": true, "node/0.log": true, "vintages/current": true, "networks/a.network": true,
		"last-vintage": true, "operator-token": true,
		"": false, ".": false, "..": false, "../vault.db": false, "/etc/passwd": false, "log/../../x": false, "log//x": false, "lock": false, "restoring": false,
		"log/lock": false, `log\..\..\x`: false, "C:x": false, "log/c:x": false, "readmodels/x": false, "vault.db/x": false,
	} {
		text, err := json.Marshal(Manifest{Format: Format, Files: []File{{Name: name}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseManifest("file", text); (err == nil) != want {
			t.Errorf("%q: %v, accepted should be %t", name, err, want)
		}
	}
}

// entry is one entry of a tar file.
type entry struct {
	name string
	text []byte
}

func listEntries(t *testing.T, content []byte) (all []entry) {
	t.Helper()
	d, err := zstd.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for r := tar.NewReader(d); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		text, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{h.Name, text})
	}
}

func packEntries(t *testing.T, all []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(e)
	for _, one := range all {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: one.name, Size: int64(len(one.text)), Mode: 0o600, Typeflag: tar.TypeReg}))
		_, writeErr := w.Write(one.text)
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, w.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzAnyFileIsReadOrRefused reads any bytes as a backup. Nothing may crash, and what is accepted has all that its manifest lists.
func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	parts := testParts()
	f.Add(encodeBackup(f, newManifest(parts), parts))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := writeBackup(t, content)
		files, err := readAll(t, path)
		if err != nil {
			return
		}
		m, err := ReadManifest(path)
		if err != nil || len(m.Files) < len(files) {
			t.Errorf("%d files of %d, %v", len(files), len(m.Files), err)
		}
		for _, file := range m.Files {
			if int64(len(files[file.Name])) != file.Size {
				t.Error(fmt.Sprint(file, " has another size"))
			}
		}
	})
}
