package offline

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/journal"
)

// folderWriter writes the files of a log into a folder, one segment after the other. The first segment has another name until
// finish, so that an interrupted copy is not a log.
type folderWriter struct {
	dir         string
	isNewDir    bool
	names       []string // the files, for syncing and removal
	first       string   // the final name of the first segment
	segment     *os.File // the one that is being written
	size        int64    // of the segment
	buffer      *bufio.Writer
	closingMark []byte // written behind the last append
}

// unfinishedName is the name of the first segment until the copy is complete. journal.Open removes such files.
const unfinishedName = "copy.tmp"

// bufferSize is how much is written at once.
const bufferSize = 1 << 20

// newFolderWriter makes the folder, or accepts an empty one.
func newFolderWriter(dir string) (*folderWriter, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &folderWriter{dir: dir, isNewDir: true}, os.MkdirAll(dir, 0o700)
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	return &folderWriter{dir: dir}, nil
}

// beginSegment ends the segment before and begins the next.
func (w *folderWriter) beginSegment(s journal.WalkedSegment) error {
	if err := w.endSegment(); err != nil {
		return err
	}
	name := s.Name
	if w.first == "" {
		w.first, name = s.Name, unfinishedName
	}
	f, err := w.create(name)
	if err != nil {
		return err
	}
	w.segment, w.size, w.buffer = f, s.Size, bufio.NewWriterSize(f, bufferSize)
	return w.write(s.Header)
}

// create makes a file that must not exist yet.
func (w *folderWriter) create(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		w.names = append(w.names, name)
	}
	return f, err
}

// write adds bytes to the segment.
func (w *folderWriter) write(b []byte) error {
	_, err := w.buffer.Write(b)
	return err
}

// endSegment gives the segment its full size, without writing the zeros, and puts it on disk.
func (w *folderWriter) endSegment() error {
	if w.segment == nil {
		return nil
	}
	f := w.segment
	w.segment = nil
	err := w.buffer.Flush()
	if err == nil {
		err = f.Truncate(w.size)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeIndex writes the index file of a full segment.
func (w *folderWriter) writeIndex(name string, index []byte) error {
	f, err := w.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(index)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// finish ends the last segment with a mark, which proves everything before it, and gives the first segment its name.
func (w *folderWriter) finish() error {
	if err := w.write(w.closingMark); err != nil {
		return err
	}
	if err := w.endSegment(); err != nil {
		return err
	}
	if err := syncDir(w.dir); err != nil { // the other files come first
		return err
	}
	if err := osfile.Rename(filepath.Join(w.dir, unfinishedName), filepath.Join(w.dir, w.first)); err != nil {
		return err
	}
	w.names = append(w.names, w.first)
	return syncDir(w.dir)
}

// discard removes everything that was written.
func (w *folderWriter) discard() (err error) {
	if w.segment != nil {
		err = w.segment.Close()
	}
	for _, name := range w.names {
		if e := os.Remove(filepath.Join(w.dir, name)); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if w.isNewDir {
		err = errors.Join(err, os.Remove(w.dir))
	}
	return err
}

// syncDir returns when all names of a folder are on disk.
func syncDir(dir string) error { return journal.Dir(dir).SyncDir() }
