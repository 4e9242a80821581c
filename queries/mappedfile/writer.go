package mappedfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"lieudit/eventstore/disk/osfile"
)

// Build writes a file of a format. The file appears when it is complete and on the disk, or not at all. write appends the
// sections; it may keep temporary files of its own in dir, which lies next to the file and is removed. Build returns the
// size of the file in bytes.
func Build(path string, format Format, write func(dir string, w *Writer) error) (size int64, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".building-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWriter(dir, format)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := write(dir, w); err != nil {
		return 0, err
	}
	whole := filepath.Join(dir, "whole")
	if size, err = w.assemble(whole); err != nil {
		return 0, fmt.Errorf("write the file: %w", err)
	}
	return size, renameDurably(whole, path)
}

// renameDurably renames the finished file and syncs the folder.
func renameDurably(whole, path string) error {
	if err := osfile.Rename(whole, path); err != nil {
		return err
	}
	return osfile.SyncFolder(filepath.Dir(path))
}

// Writer writes the sections of a file, in any order and in parts. Each section has a temporary file, so that sections of any size
// can grow at the same time in little memory. Different goroutines may append to different sections at the same time. Errors of
// appending are kept: Err returns them, and Build fails with them.
type Writer struct {
	format Format
	files  []*sectionFile // by number; none at 0
}

// sectionFile is the temporary file of one section.
type sectionFile struct {
	file   *os.File
	w      *bufio.Writer
	length uint64
	sum    uint32
	err    error // the first error; later writes do nothing
}

// newWriter creates the temporary files in a folder, which the caller removes.
func newWriter(dir string, format Format) (*Writer, error) {
	w := &Writer{format: format, files: make([]*sectionFile, format.sectionCount(format.version())+1)}
	for id := range w.files[1:] {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("section-%02d", id+1)))
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.files[id+1] = &sectionFile{file: file, w: bufio.NewWriterSize(NewPacedWriter(file, 0), 64<<10)}
	}
	return w, nil
}

func (w *Writer) close() error {
	var errs []error
	for _, f := range w.files[1:] {
		if f != nil {
			errs = append(errs, f.file.Close())
		}
	}
	return errors.Join(errs...)
}

// Err returns the first error of each section's writes.
func (w *Writer) Err() error {
	var errs []error
	for _, f := range w.files[1:] {
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// Append appends bytes to a section.
func (w *Writer) Append(id Section, data []byte) {
	f := w.files[id]
	if f.err != nil {
		return
	}
	f.length += uint64(len(data))
	f.sum = crc32.Update(f.sum, crcTable(), data)
	_, f.err = f.w.Write(data)
}

// AppendU32 appends a few 32-bit numbers.
func (w *Writer) AppendU32(id Section, values ...uint32) {
	var buf [64]byte
	out := buf[:0]
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	w.Append(id, out)
}

// AppendU16 appends a 16-bit number.
func (w *Writer) AppendU16(id Section, v uint16) { w.Append(id, []byte{byte(v), byte(v >> 8)}) }

// AppendColumn appends a whole column of numbers, which View reads.
func AppendColumn[T Number](w *Writer, id Section, values []T) { w.Append(id, encodeColumn(values)) }

// Length is the number of bytes in a section so far.
func (w *Writer) Length(id Section) uint64 { return w.files[id].length }

// ReadBack returns what was written to a section so far, for a build that needs it again. It stays valid during the build.
func (w *Writer) ReadBack(id Section) (io.ReaderAt, error) {
	f := w.files[id]
	return f.file, errors.Join(f.err, f.w.Flush())
}

// assemble writes the finished file and syncs it. It returns the size of the file.
func (w *Writer) assemble(path string) (size int64, err error) {
	out, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	entries, size := w.layOut()
	if _, err := out.Write(w.format.encodeHeader(entries, uint64(size))); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if err := w.copySection(out, e); err != nil {
			return 0, fmt.Errorf("write section %d: %w", e.id, err)
		}
	}
	if err := out.Truncate(size); err != nil {
		return 0, err
	}
	return size, out.Sync()
}

// layOut assigns each section its offset.
func (w *Writer) layOut() (entries []sectionEntry, size int64) {
	end := uint64(w.format.headerLength(w.format.version()))
	for i, f := range w.files[1:] {
		entries = append(entries, sectionEntry{Section(i + 1), f.sum, end, f.length})
		end = (end + f.length + 7) &^ 7
	}
	return entries, int64(end)
}

// copySection copies a temporary file to its offset in the finished file.
func (w *Writer) copySection(out *os.File, e sectionEntry) error {
	f := w.files[e.id]
	if err := errors.Join(f.err, f.w.Flush()); err != nil {
		return err
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.CopyBuffer(NewPacedWriter(out, int64(e.offset)), onlyReader{f.file}, make([]byte, 256<<10))
	if err == nil && uint64(n) != e.length {
		err = io.ErrShortWrite
	}
	return err
}

// onlyReader hides the other methods of a file, so that io.CopyBuffer cannot bypass PacedWriter.Write.
type onlyReader struct{ io.Reader }

// writebackStride is the number of bytes after which a PacedWriter waits until they are on the disk.
const writebackStride = 1 << 20

// PacedWriter writes to a file at the speed of the disk. Otherwise a build fills the page cache with gigabytes, and every other
// write of the machine waits for them, including those of a service that is answering queries.
type PacedWriter struct {
	file    *os.File
	offset  int64 // of the next byte
	pending int64 // bytes that may not be on the disk yet
}

// NewPacedWriter returns a writer to a file from an offset on.
func NewPacedWriter(file *os.File, offset int64) *PacedWriter {
	return &PacedWriter{file: file, offset: offset}
}

// Write implements io.Writer.
func (p *PacedWriter) Write(data []byte) (n int, err error) {
	for n < len(data) && err == nil {
		var written int
		written, err = p.file.WriteAt(data[n:min(n+writebackStride, len(data))], p.offset)
		n, p.offset, p.pending = n+written, p.offset+int64(written), p.pending+int64(written)
		if err == nil && p.pending >= writebackStride {
			waitForWriteback(p.file, p.offset-p.pending, p.pending)
			p.pending = 0
		}
	}
	return n, err
}
