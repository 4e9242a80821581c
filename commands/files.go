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

// snapshotFiles keep folds of streams that take long to read. A file is what its sum says it is or it is nothing, and it counts
// only where the event it ends with stands in the log; the next one replaces it.
type snapshotFiles[S any] struct {
	aggregate Aggregate[S]
	folder    string // "": none are kept
	log       *slog.Logger
}

// snapshotThreshold is how much of the log a file must save reading, and no less than the file is long.
const snapshotThreshold = 512 << 10

// saveSnapshot writes a fold's file when enough was folded since the last. One that cannot be written is not missed.
func (f *snapshotFiles[S]) saveSnapshot(s *streamState[S]) {
	if f.folder == "" || s.bytesSinceSnapshot < max(snapshotThreshold, s.snapshotSize) {
		return
	}
	body := f.header(s.stream)
	body = binary.LittleEndian.AppendUint64(body, uint64(s.revision))
	body = binary.LittleEndian.AppendUint64(body, uint64(s.checkpoint.Position))
	body = append(body, s.checkpoint.Event[:]...)
	body = append(body, f.aggregate.MarshalSnapshot(&s.state)...)
	sum := sha256.Sum256(body)
	s.snapshotSize, s.bytesSinceSnapshot = len(body), 0
	if err := replaceFile(f.path(s.stream), append(body, sum[:]...)); err != nil {
		f.log.Warn("cannot keep a fold in its file", "stream", s.stream, "error", err)
	}
}

// loadSnapshot gives a fold what its file holds, if that is sound. It is still to be held against the log.
func (f *snapshotFiles[S]) loadSnapshot(s *streamState[S]) {
	if f.folder == "" {
		return
	}
	data, err := os.ReadFile(f.path(s.stream))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = f.decodeSnapshot(s, data)
	}
	if err != nil {
		f.log.Warn("a fold's file is of no use", "stream", s.stream, "error", err)
	}
}

func (f *snapshotFiles[S]) decodeSnapshot(s *streamState[S], data []byte) error {
	const checkpointSize = 8 + 8 + 16
	body, sum := data[:max(0, len(data)-sha256.Size)], data[max(0, len(data)-sha256.Size):]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return errors.New("it is damaged")
	}
	rest, ok := bytes.CutPrefix(body, f.header(s.stream))
	if !ok || len(rest) < checkpointSize {
		return errors.New("it is of another form")
	}
	state, err := f.aggregate.UnmarshalSnapshot(rest[checkpointSize:])
	if err != nil {
		return err
	}
	s.state, s.snapshotSize = state, len(body)
	s.revision = eventstore.Revision(binary.LittleEndian.Uint64(rest))
	s.checkpoint.Position = eventstore.Position(binary.LittleEndian.Uint64(rest[8:]))
	copy(s.checkpoint.Event[:], rest[16:])
	return nil
}

func (f *snapshotFiles[S]) header(stream string) []byte {
	return fmt.Appendf(nil, "fold of %s in %s\n", stream, f.aggregate.SnapshotFormat)
}

func (f *snapshotFiles[S]) path(stream string) string {
	return filepath.Join(f.folder, url.PathEscape(stream)+".fold")
}

// replaceFile puts a whole file in another's place, so that a reader finds the one or the other.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
