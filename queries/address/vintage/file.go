// Package vintage stores one vintage of the address base as one immutable file that is mapped into memory. Its one
// constraint: the same rows make the same bytes, in whatever order they come, and wait on disk rather than in memory.
//
//	ban.Row… ── rowSpill ──► communeRows… ── builder ──► sectionWriter ── assemble ──► the file         (Build)
//	   on disk, by commune    by street, largest first   a temporary file each section
//	                              ▲
//	   previous vintage ── predecessorIndex: which id and id_ban each address had before
//	the file ── Open, mapped ──► Vintage ── FindTerm, StreetsWith, ByID, RowsAround… ──► ordinals
//	                                └──── Street, Commune, Number, RowPoint… ──► records and columns of an ordinal
//
// Communes, streets and rows are numbered: ordinals are positions in the file. Communes come with the largest number of
// addresses first, streets by commune, rows by street and house number, so every list of ordinals is sorted by
// importance.
//
// Open checks the small sections and Verify checks all. Damage is an error that names the section. A damaged section
// that Open does not check gives wrong answers at worst, never a crash. A file that is cut short while it is mapped
// ends the function that runs in Guard, not the process.
package vintage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// The file is a header, a table of sections and the sections, each at a multiple of 8 bytes. Numbers are little-endian.
//
//	header: magic [16], format version u32, sections u32, file size u64, checksum of the table u32, checksum of the header u32
//	table:  id u32, checksum u32, offset u64, length u64
const (
	magic            = "lieudit-vintage\n"
	formatVersion    = 2 // written; files from firstFormat on are read
	firstFormat      = 1 // has no sections for the origin of an id_ban and for former ones
	headerSize       = 40
	sectionEntrySize = 24
	maxCheckedAtOpen = 8 << 20 // sections up to this size are checked by Open
)

// section identifies a part of the file. A name that ends in First holds offsets: the part of item i in the section of
// the same name lies between First[i] and First[i+1].
type section uint32

const (
	secMeta section = iota + 1
	secTermFirst
	secTermText
	secTermStreetsFirst
	secTermStreets
	secTermPlacesFirst
	secTermPlaces
	secDeletesFirst
	secDeletes
	secSoundsFirst
	secSounds
	secNameFirst
	secNameText
	secNameTermsFirst
	secNameTerms
	secCommunes
	secCommunePostcodes
	secCommunesByCode
	secPlaces
	secPlaceKeysFirst
	secPlaceKeys
	secPlacesByName
	secPostcodes
	secPostcodesFirst
	secPostcodeCommunes
	secStreets
	secStreetKeys
	secStreetsByKey
	secFacets
	secNumbers
	secReps
	secRepNames
	secRowFacets
	secRowKinds
	secPositions
	secLons
	secLats
	secXs
	secYs
	secParcels
	secRowsByPosition
	secStreetsByPosition
	secStoredUUIDEntities
	secStoredUUIDs
	secByUUID
	secAliasFirst
	secAliasText
	secAliasEntities
	secIrregularRows
	secGenerated
	secFormerEntities
	secFormerStored
	secFormerUUIDs
	sectionEnd
)

const sectionCount = int(sectionEnd) - 1

// sectionCountOf is the number of sections in a file of a format. A later format adds sections at the end; in an older
// file those are empty.
func sectionCountOf(format uint32) int {
	if format == firstFormat {
		return int(secIrregularRows)
	}
	return sectionCount
}

// headerLength is the length of header and table in a file of a format.
func headerLength(format uint32) int { return headerSize + sectionCountOf(format)*sectionEntrySize }

// none is the ordinal of what is absent.
const none = ^uint32(0)

var (
	// ErrNotVintage says that the file is no vintage, or has another format.
	ErrNotVintage = errors.New("not a vintage of this format")
	// ErrDamaged says that the file is a vintage and not as it was written.
	ErrDamaged = errors.New("the vintage is damaged")
)

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(data []byte) uint32 { return crc32.Checksum(data, crcTable()) }

// sectionEntry is an entry of the table of sections.
type sectionEntry struct {
	id             section
	sum            uint32
	offset, length uint64
}

// encodeHeader encodes the header and the table of a file of that size.
func encodeHeader(entries []sectionEntry, size uint64) []byte {
	table := make([]byte, 0, len(entries)*sectionEntrySize)
	for _, e := range entries {
		table = binary.LittleEndian.AppendUint32(table, uint32(e.id))
		table = binary.LittleEndian.AppendUint32(table, e.sum)
		table = binary.LittleEndian.AppendUint64(table, e.offset)
		table = binary.LittleEndian.AppendUint64(table, e.length)
	}
	out := append(make([]byte, 0, headerSize+len(table)), magic...)
	out = binary.LittleEndian.AppendUint32(out, formatVersion)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(entries)))
	out = binary.LittleEndian.AppendUint64(out, size)
	out = binary.LittleEndian.AppendUint32(out, checksum(table))
	out = binary.LittleEndian.AppendUint32(out, checksum(out))
	return append(out, table...)
}

// parseHeader checks the header and the table of a file and returns its format and its sections.
func parseHeader(data []byte) (format uint32, entries [sectionEnd]sectionEntry, err error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return 0, entries, ErrNotVintage
	}
	format = binary.LittleEndian.Uint32(data[16:])
	if format < firstFormat || format > formatVersion {
		return 0, entries, fmt.Errorf("%w: its format is %d, this program reads %d to %d", ErrNotVintage, format, firstFormat, formatVersion)
	}
	end, err := checkHeader(data, format)
	if err == nil {
		entries, err = parseSectionTable(data, data[headerSize:end])
	}
	return format, entries, err
}

// checkHeader checks the checksums and the size in the header and returns where the table ends.
func checkHeader(data []byte, format uint32) (end uint64, err error) {
	if checksum(data[:headerSize-4]) != binary.LittleEndian.Uint32(data[headerSize-4:]) {
		return 0, fmt.Errorf("%w: header", ErrDamaged)
	}
	count, size := binary.LittleEndian.Uint32(data[20:]), binary.LittleEndian.Uint64(data[24:])
	if size != uint64(len(data)) {
		return 0, fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, len(data), size)
	}
	end = uint64(headerLength(format))
	if int(count) != sectionCountOf(format) || end > size || checksum(data[headerSize:end]) != binary.LittleEndian.Uint32(data[32:]) {
		return 0, fmt.Errorf("%w: table of sections", ErrDamaged)
	}
	return end, nil
}

// parseSectionTable parses the table and checks that each section lies within the file.
func parseSectionTable(data, table []byte) (entries [sectionEnd]sectionEntry, err error) {
	for ; len(table) >= sectionEntrySize; table = table[sectionEntrySize:] {
		id := section(binary.LittleEndian.Uint32(table))
		offset, length := binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[16:])
		size := uint64(len(data))
		if id == 0 || id >= sectionEnd || offset > size || length > size-offset {
			return entries, fmt.Errorf("%w: bounds of section %d", ErrDamaged, id)
		}
		entries[id] = sectionEntry{id, binary.LittleEndian.Uint32(table[4:]), offset, length}
	}
	return entries, nil
}

// sectionWriter writes the sections of a file at the same time, each to a temporary file. assemble joins them.
type sectionWriter struct {
	dir   string
	files [sectionEnd]*sectionFile
}

// sectionFile is the temporary file of one section.
type sectionFile struct {
	file   *os.File
	w      *bufio.Writer
	length uint64
	sum    uint32
	err    error // the first error; later writes do nothing
}

// newSectionWriter creates the temporary files in a folder, which the caller removes.
func newSectionWriter(dir string) (*sectionWriter, error) {
	s := &sectionWriter{dir: dir}
	for id := secMeta; id < sectionEnd; id++ {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("section-%02d", id)))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.files[id] = &sectionFile{file: file, w: bufio.NewWriterSize(&pacedWriter{file: file}, 64<<10)}
	}
	return s, nil
}

func (s *sectionWriter) close() error {
	var errs []error
	for _, p := range s.files {
		if p != nil {
			errs = append(errs, p.file.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *sectionWriter) appendBytes(id section, data []byte) {
	p := s.files[id]
	if p.err != nil {
		return
	}
	p.length += uint64(len(data))
	p.sum = crc32.Update(p.sum, crcTable(), data)
	_, p.err = p.w.Write(data)
}

func (s *sectionWriter) appendU32(id section, values ...uint32) {
	var buf [64]byte
	out := buf[:0]
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	s.appendBytes(id, out)
}

func (s *sectionWriter) appendU16(id section, v uint16) {
	s.appendBytes(id, []byte{byte(v), byte(v >> 8)})
}

// appendColumn appends a whole column of numbers.
func (s *sectionWriter) appendColumn(id section, values []uint32) {
	for len(values) > 0 {
		n := min(len(values), 16)
		s.appendU32(id, values[:n]...)
		values = values[n:]
	}
}

// length is the number of bytes in a section so far.
func (s *sectionWriter) length(id section) uint32 { return uint32(s.files[id].length) }

// assemble writes the finished file and syncs it.
func (s *sectionWriter) assemble(path string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	entries, size := s.layOut()
	if _, err := out.Write(encodeHeader(entries, size)); err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.copySection(out, e); err != nil {
			return fmt.Errorf("write section %d: %w", e.id, err)
		}
	}
	if err := out.Truncate(int64(size)); err != nil {
		return err
	}
	return out.Sync()
}

// layOut assigns each section its offset.
func (s *sectionWriter) layOut() (entries []sectionEntry, size uint64) {
	size = headerSize + uint64(sectionCount)*sectionEntrySize
	for id := secMeta; id < sectionEnd; id++ {
		p := s.files[id]
		entries = append(entries, sectionEntry{id, p.sum, size, p.length})
		size = (size + p.length + 7) &^ 7
	}
	return entries, size
}

// copySection copies a temporary file to its offset in the finished file.
func (s *sectionWriter) copySection(out *os.File, e sectionEntry) error {
	p := s.files[e.id]
	if err := errors.Join(p.err, p.w.Flush()); err != nil {
		return err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.CopyBuffer(&pacedWriter{file: out, offset: int64(e.offset)}, onlyReader{p.file}, make([]byte, 256<<10))
	if err == nil && uint64(n) != e.length {
		err = io.ErrShortWrite
	}
	return err
}

// onlyReader hides the other methods of a file, so that io.CopyBuffer cannot bypass pacedWriter.Write.
type onlyReader struct{ io.Reader }

// writebackStride is the number of bytes after which a build waits until they are on the disk. Without the wait a build
// fills the page cache by the gigabyte, and every other write of the machine waits behind it, also those of a service
// that answers meanwhile.
const writebackStride = 1 << 20

// pacedWriter writes to a file from an offset on, at the speed of the disk.
type pacedWriter struct {
	file    *os.File
	offset  int64 // of the next byte
	pending int64 // bytes that may not be on the disk yet
}

// Write implements io.Writer.
func (p *pacedWriter) Write(data []byte) (n int, err error) {
	n, err = p.file.WriteAt(data, p.offset)
	p.offset, p.pending = p.offset+int64(n), p.pending+int64(n)
	if err == nil && p.pending >= writebackStride {
		waitForWriteback(p.file, p.offset-p.pending, p.pending)
		p.pending = 0
	}
	return n, err
}

// HasMagic reports whether a file that begins with these bytes is a vintage, of this format or another.
func HasMagic(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
