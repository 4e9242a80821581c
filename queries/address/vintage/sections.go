package vintage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// sectionWriter gathers the sections of a file under construction, each in a temporary file of its own, so that many
// can grow at once.
type sectionWriter struct {
	dir   string
	parts [sectionEnd]*part
}

// part is a section that grows.
type part struct {
	file   *os.File
	w      *bufio.Writer
	length uint64
	sum    uint32
	err    error // the first that happened; later writes do nothing
}

func newSectionWriter(dir string) (*sectionWriter, error) {
	s := &sectionWriter{dir: dir}
	for id := secMeta; id < sectionEnd; id++ {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("section-%02d", id)))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.parts[id] = &part{file: file, w: bufio.NewWriterSize(&paced{file: file}, 64<<10)}
	}
	return s, nil
}

func (s *sectionWriter) close() error {
	var errs []error
	for _, p := range s.parts {
		if p != nil {
			errs = append(errs, p.file.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *sectionWriter) bytes(id section, data []byte) {
	p := s.parts[id]
	if p.err != nil {
		return
	}
	p.length += uint64(len(data))
	p.sum = crc32.Update(p.sum, castagnoli(), data)
	_, p.err = p.w.Write(data)
}

func (s *sectionWriter) u32(id section, values ...uint32) {
	var buf [64]byte
	out := buf[:0]
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	s.bytes(id, out)
}

func (s *sectionWriter) u16(id section, v uint16) {
	s.bytes(id, []byte{byte(v), byte(v >> 8)})
}

// column writes a whole column.
func (s *sectionWriter) column(id section, values []uint32) {
	for len(values) > 0 {
		n := min(len(values), 16)
		s.u32(id, values[:n]...)
		values = values[n:]
	}
}

func (s *sectionWriter) length(id section) uint32 { return uint32(s.parts[id].length) }

// assemble writes the finished file and makes it durable.
func (s *sectionWriter) assemble(path string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	entries, size := s.lay()
	if _, err := out.Write(head(entries, size)); err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.copy(out, e); err != nil {
			return fmt.Errorf("write section %d: %w", e.id, err)
		}
	}
	if err := out.Truncate(int64(size)); err != nil {
		return err
	}
	return out.Sync()
}

// lay gives each section its place.
func (s *sectionWriter) lay() (entries []entry, size uint64) {
	size = headerSize + uint64(sections)*entrySize
	for id := secMeta; id < sectionEnd; id++ {
		p := s.parts[id]
		entries = append(entries, entry{id, p.sum, size, p.length})
		size = (size + p.length + 7) &^ 7
	}
	return entries, size
}

func (s *sectionWriter) copy(out *os.File, e entry) error {
	p := s.parts[e.id]
	if err := errors.Join(p.err, p.w.Flush()); err != nil {
		return err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.CopyBuffer(&paced{file: out, at: int64(e.offset)}, onlyReader{p.file}, make([]byte, 256<<10))
	if err == nil && uint64(n) != e.length {
		err = io.ErrShortWrite
	}
	return err
}

// onlyReader keeps a copy from going past the writer's own way to write.
type onlyReader struct{ io.Reader }
