// Package mappedfile reads and writes large immutable files that are mapped into memory: a header, a table and sections, each with
// a checksum. The address base (package vintage) and the road network (package network) are such files. A damaged or truncated file
// is reported as an error; it never crashes the process.
//
//	Build ──► Writer: a temporary file each section ── assemble ──► the file, synced and renamed
//	the file ── Open: header, table, small sections checked ──► File ── Section, View ──► bytes and columns of the mapping
//	                                                             └──── Verify: all sections checked
//
// A package that has files of its own declares their Format, decodes the sections and embeds File. Reads of the mapping
// belong in File.Guard.
package mappedfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// A file is a header, a table of sections and the sections, each at a multiple of 8 bytes. Numbers are little-endian.
//
//	header: magic [16], version u32, sections u32, file size u64, checksum of the table u32, checksum of the header u32
//	table:  id u32, checksum u32, offset u64, length u64
const (
	magicSize        = 16
	headerSize       = 40
	sectionEntrySize = 24
)

// Section identifies a part of a file. Sections are numbered from 1.
type Section uint32

// Format describes the files of one kind. All fields are required.
type Format struct {
	Magic        string // the first 16 bytes of each file
	FirstVersion uint32 // the oldest version that is read
	// SectionCounts holds the number of sections of each version from FirstVersion on; the last version is written. A
	// later version adds sections at the end, which are empty in an older file.
	SectionCounts []int
	CheckedAtOpen int   // Open checks the sections of at most this many bytes
	ErrOther      error // the file has another format
	ErrDamaged    error // the file has this format, but not the content that was written
}

// Versions returns the oldest and the newest version that is read; the newest is written.
func (f *Format) Versions() (first, last int) { return int(f.FirstVersion), int(f.version()) }

// version is the version that is written.
func (f *Format) version() uint32 { return f.FirstVersion + uint32(len(f.SectionCounts)) - 1 }

// sectionCount is the number of sections in a file of a version.
func (f *Format) sectionCount(version uint32) int { return f.SectionCounts[version-f.FirstVersion] }

// headerLength is the length of header and table in a file of a version.
func (f *Format) headerLength(version uint32) int {
	return headerSize + f.sectionCount(version)*sectionEntrySize
}

// HasMagic reports whether a file that begins with these bytes is of this kind, whatever its version.
func (f *Format) HasMagic(head []byte) bool { return bytes.HasPrefix(head, []byte(f.Magic)) }

func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(data []byte) uint32 { return crc32.Checksum(data, crcTable()) }

// sectionEntry is an entry of the table of sections.
type sectionEntry struct {
	id             Section
	sum            uint32
	offset, length uint64
}

// encodeHeader encodes the header and the table of a file of a size.
func (f *Format) encodeHeader(entries []sectionEntry, size uint64) []byte {
	table := make([]byte, 0, len(entries)*sectionEntrySize)
	for _, e := range entries {
		table = binary.LittleEndian.AppendUint32(table, uint32(e.id))
		table = binary.LittleEndian.AppendUint32(table, e.sum)
		table = binary.LittleEndian.AppendUint64(table, e.offset)
		table = binary.LittleEndian.AppendUint64(table, e.length)
	}
	out := append(make([]byte, 0, headerSize+len(table)), f.Magic...)
	out = binary.LittleEndian.AppendUint32(out, f.version())
	out = binary.LittleEndian.AppendUint32(out, uint32(len(entries)))
	out = binary.LittleEndian.AppendUint64(out, size)
	out = binary.LittleEndian.AppendUint32(out, checksum(table))
	out = binary.LittleEndian.AppendUint32(out, checksum(out))
	return append(out, table...)
}

// parseHeader checks the header and the table of a file and returns its version and its sections. The section with number
// n is entries[n].
func (f *Format) parseHeader(data []byte) (version uint32, entries []sectionEntry, err error) {
	if len(data) < headerSize || !f.HasMagic(data) {
		return 0, nil, f.ErrOther
	}
	version = binary.LittleEndian.Uint32(data[magicSize:])
	if version < f.FirstVersion || version > f.version() {
		return 0, nil, fmt.Errorf("%w: its format is %d, this program reads %d to %d", f.ErrOther, version, f.FirstVersion, f.version())
	}
	if err = f.checkHeader(data, version); err == nil {
		entries, err = f.parseSectionTable(data, version)
	}
	return version, entries, err
}

// checkHeader checks the checksums and the size in the header.
func (f *Format) checkHeader(data []byte, version uint32) error {
	if checksum(data[:headerSize-4]) != binary.LittleEndian.Uint32(data[headerSize-4:]) {
		return fmt.Errorf("%w: header", f.ErrDamaged)
	}
	count, size := binary.LittleEndian.Uint32(data[20:]), binary.LittleEndian.Uint64(data[24:])
	if size != uint64(len(data)) {
		return fmt.Errorf("%w: it has %d bytes and should have %d", f.ErrDamaged, len(data), size)
	}
	end := uint64(f.headerLength(version))
	if int(count) != f.sectionCount(version) || end > size || checksum(data[headerSize:end]) != binary.LittleEndian.Uint32(data[32:]) {
		return fmt.Errorf("%w: table of sections", f.ErrDamaged)
	}
	return nil
}

// parseSectionTable parses the table and checks that each section lies within the file, at a multiple of 8 bytes.
func (f *Format) parseSectionTable(data []byte, version uint32) ([]sectionEntry, error) {
	entries := make([]sectionEntry, f.sectionCount(version)+1)
	size := uint64(len(data))
	for table := data[headerSize:f.headerLength(version)]; len(table) > 0; table = table[sectionEntrySize:] {
		id := Section(binary.LittleEndian.Uint32(table))
		offset, length := binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[16:])
		if id == 0 || int64(id) >= int64(len(entries)) || offset > size || length > size-offset || offset%8 != 0 {
			return nil, fmt.Errorf("%w: bounds of section %d", f.ErrDamaged, id)
		}
		entries[id] = sectionEntry{id, binary.LittleEndian.Uint32(table[4:]), offset, length}
	}
	return entries, nil
}

// digestOf is the digest of a file by its header and table, which hold the checksums of all sections.
func digestOf(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:8])
}
