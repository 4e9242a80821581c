package commands

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
)

// snapshotFiles keeps the states of long streams, one file per stream:
//
//	header: stream and format, one line of text
//	revision, position (8 bytes each, little endian) and id (16 bytes) of the last event of the state
//	the state, as Aggregate.MarshalSnapshot writes it
//	SHA-256 of all that
//
// A damaged file is ignored. An intact one is used only if catchUp finds that event at that revision on the log.
type snapshotFiles[S any] struct {
	aggregate Aggregate[S]
	folder    string // "": no snapshots are kept
	threshold int
	disk      osfile.Disk
	log       *slog.Logger
}

// DefaultSnapshotThreshold is how many bytes of events must have been folded since the last snapshot before a new one is
// written. If the last snapshot is larger, its size is the threshold, so that writing never costs more than folding.
const DefaultSnapshotThreshold = 512 << 10

// saveSnapshot replaces a state's file if enough was folded since the last time. If the file cannot be written, this is logged
// and not an error: the stream is read instead.
func (f *snapshotFiles[S]) saveSnapshot(s *streamState[S]) {
	if f.folder == "" || s.bytesSinceSnapshot < max(f.threshold, s.snapshotSize) {
		return
	}
	body := f.header(s.stream)
	body = binary.LittleEndian.AppendUint64(body, uint64(s.revision))
	body = binary.LittleEndian.AppendUint64(body, uint64(s.checkpoint.Position))
	body = append(body, s.checkpoint.Event[:]...)
	body = append(body, f.aggregate.MarshalSnapshot(&s.state)...)
	sum := sha256.Sum256(body)
	s.snapshotSize, s.bytesSinceSnapshot = len(body), 0
	err := f.disk.ReplaceFile(f.path(s.stream), func(w io.Writer) error {
		_, err := w.Write(append(body, sum[:]...))
		return err
	})
	if err != nil {
		f.log.Warn("cannot write a snapshot", "stream", s.stream, "error", err)
	}
}

// loadSnapshot fills an empty state from its file, if it is intact. The caller must still verify the checkpoint.
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
		f.log.Warn("a snapshot is ignored", "stream", s.stream, "error", err)
		return
	}
	f.log.Debug("a snapshot is read", "stream", s.stream, "revision", s.revision)
}

func (f *snapshotFiles[S]) decodeSnapshot(s *streamState[S], data []byte) error {
	const checkpointSize = 8 + 8 + 16
	body, sum := data[:max(0, len(data)-sha256.Size)], data[max(0, len(data)-sha256.Size):]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return errors.New("its checksum is wrong")
	}
	rest, ok := bytes.CutPrefix(body, f.header(s.stream))
	if !ok || len(rest) < checkpointSize {
		return errors.New("it has another header")
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

// header returns the first line of a file. Its format and the file names are frozen, so that a newer binary finds the
// snapshots of an older one.
func (f *snapshotFiles[S]) header(stream string) []byte {
	return fmt.Appendf(nil, "fold of %s in %s\n", stream, f.aggregate.SnapshotFormat)
}

func (f *snapshotFiles[S]) path(stream string) string {
	return filepath.Join(f.folder, url.PathEscape(stream)+".fold")
}
