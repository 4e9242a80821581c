package osfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"lieudit/eventstore/disk/osfile"
)

// A disk without room leaves the old content, and no part of the new one.
func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	errFull := errors.New("no room")
	file := filepath.Join(t.TempDir(), "folder", "file")
	write := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
	}
	full := osfile.Disk{Room: func(bytes int) (int, error) { return bytes / 2, errFull }}
	for _, c := range []struct {
		disk osfile.Disk
		text string
		err  error
		want string // content afterwards, "" for no file
	}{
		{full, "one", errFull, ""},
		{osfile.Disk{}, "one", nil, "one"},
		{full, "two", errFull, "one"},
		{osfile.Disk{Room: func(bytes int) (int, error) { return bytes, nil }}, "two", nil, "two"},
		{osfile.Disk{}, "three", nil, "three"},
	} {
		if err := c.disk.ReplaceFile(file, write(c.text)); !errors.Is(err, c.err) {
			t.Errorf("%q: error %v, want %v", c.text, err, c.err)
		}
		if got, _ := os.ReadFile(file); string(got) != c.want {
			t.Errorf("%q: holds %q, want %q", c.text, got, c.want)
		}
		if all, err := os.ReadDir(filepath.Dir(file)); err != nil || len(all) > 1 || len(all) == 1 && all[0].Name() != "file" {
			t.Errorf("%q: left %v, %v", c.text, all, err)
		}
	}
}
