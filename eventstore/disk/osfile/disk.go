package osfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is where an instance keeps files that it can do without. The zero Disk is that of the machine.
type Disk struct {
	// Room returns how many of the next bytes fit, with an error if that is not all of them; nil: the machine reports that
	// itself. A simulation uses it.
	Room func(bytes int) (int, error)
}

// ReplaceFile lets write make the new content of a file and then replaces the old content with it, so that a reader finds one
// of them whole. It does not sync. If it fails, the old file stays, and nothing else is left.
func (d Disk) ReplaceFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	draft := path + ".new"
	err := d.create(draft, write)
	if err == nil {
		err = Rename(draft, path)
	}
	if err == nil {
		return nil
	}
	if removeErr := os.Remove(draft); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// create writes a file that nobody else uses.
func (d Disk) create(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(diskWriter{f, d}), f.Close())
}

// diskWriter writes to a file while its disk has room.
type diskWriter struct {
	file io.Writer
	disk Disk
}

// Write implements io.Writer.
func (w diskWriter) Write(data []byte) (int, error) {
	if w.disk.Room == nil {
		return w.file.Write(data)
	}
	room, roomErr := w.disk.Room(len(data))
	n, err := w.file.Write(data[:room])
	return n, errors.Join(err, roomErr)
}
