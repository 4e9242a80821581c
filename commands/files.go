package commands

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"lieudit/eventstore"
)

// files keep folds of streams that take long to read. A file is what its sum says it is or it is nothing, and it counts
// only where the event it ends with stands in the log; the next one replaces it.
type files[S any] struct {
	aggregate Aggregate[S]
	folder    string // "": none are kept
	log       *slog.Logger
}

// worth is how much of the log a file must save reading, and no less than the file is long.
const worth = 512 << 10

// freeze writes a fold's file when enough was folded since the last. One that cannot be written is not missed.
func (d *files[S]) freeze(f *fold[S]) {
	if d.folder == "" || f.unfiled < max(worth, f.filed) {
		return
	}
	body := d.head(f.stream)
	body = binary.LittleEndian.AppendUint64(body, uint64(f.revision))
	body = binary.LittleEndian.AppendUint64(body, uint64(f.mark.Position))
	body = append(body, f.mark.Event[:]...)
	body = append(body, d.aggregate.Freeze(&f.state)...)
	sum := sha256.Sum256(body)
	f.filed, f.unfiled = len(body), 0
	if err := replace(d.path(f.stream), append(body, sum[:]...)); err != nil {
		d.log.Warn("cannot keep a fold in its file", "stream", f.stream, "error", err)
	}
}

// thaw gives a fold what its file holds, if that is sound. It is still to be held against the log.
func (d *files[S]) thaw(f *fold[S]) {
	if d.folder == "" {
		return
	}
	text, err := os.ReadFile(d.path(f.stream))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = d.read(f, text)
	}
	if err != nil {
		d.log.Warn("a fold's file is of no use", "stream", f.stream, "error", err)
	}
}

func (d *files[S]) read(f *fold[S], text []byte) error {
	const mark = 8 + 8 + 16
	body, sum := text[:max(0, len(text)-sha256.Size)], text[max(0, len(text)-sha256.Size):]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return errors.New("it is damaged")
	}
	rest, ok := bytes.CutPrefix(body, d.head(f.stream))
	if !ok || len(rest) < mark {
		return errors.New("it is of another form")
	}
	state, err := d.aggregate.Thaw(rest[mark:])
	if err != nil {
		return err
	}
	f.state, f.filed = state, len(body)
	f.revision = eventstore.Revision(binary.LittleEndian.Uint64(rest))
	f.mark.Position = eventstore.Position(binary.LittleEndian.Uint64(rest[8:]))
	copy(f.mark.Event[:], rest[16:])
	return nil
}

func (d *files[S]) head(stream string) []byte {
	return fmt.Appendf(nil, "fold of %s in %s\n", stream, d.aggregate.Form)
}

func (d *files[S]) path(stream string) string {
	return filepath.Join(d.folder, url.PathEscape(stream)+".fold")
}

// replace puts a whole file in another's place, so that a reader finds the one or the other.
func replace(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
