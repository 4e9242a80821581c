// Package vintage holds one vintage of the address base as one immutable file, mapped into memory: built with bounded
// memory, the same bytes for the same rows, checked when opened: small sections by Open, all of it by Verify. Damage is
// an error that names the section; a damaged file that passes the quick look gives wrong answers at worst, never a crash,
// and one that is cut short while it is mapped ends what runs in Guard, not the process.
package vintage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The file is a header, a table of sections and the sections, each at a multiple of 8. All numbers are little-endian.
//
//	header: magic [16], format version u32, sections u32, file size u64, checksum of the table u32, checksum of the header u32
//	table:  id u32, checksum u32, offset u64, length u64
const (
	magic         = "lieudit-vintage\n"
	formatVersion = 2 // of the files that are written; those of firstFormat are read
	firstFormat   = 1 // knows neither who made an id_ban nor those of earlier vintages
	headerSize    = 40
	entrySize     = 24
	smallSection  = 8 << 20 // sections up to here are checked at opening
)

// section names a part of the file.
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
	secRowsByPlace
	secStreetsByPlace
	secUUIDOwners
	secUUIDs
	secByUUID
	secAliasFirst
	secAliasText
	secAliasRows
	secOddRows
	secInvented
	secFormerEntities
	secFormerGiven
	secFormerUUIDs
	sectionEnd
)

const sections = int(sectionEnd) - 1

// sectionsOf is how many sections a file of a format has. A later format adds to the end; what a file has not is empty.
func sectionsOf(format uint32) int {
	if format == firstFormat {
		return int(secOddRows)
	}
	return sections
}

// headLength is how long header and table are in a file of a format.
func headLength(format uint32) int { return headerSize + sectionsOf(format)*entrySize }

// none stands for no ordinal.
const none = ^uint32(0)

var (
	// ErrNotVintage: the file is no vintage, or one of another format.
	ErrNotVintage = errors.New("not a vintage of this format")
	// ErrDamaged: the file was a vintage and is no longer whole.
	ErrDamaged = errors.New("the vintage is damaged")
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli()) }

// entry is a line of the section table.
type entry struct {
	id             section
	sum            uint32
	offset, length uint64
}

// head encodes the header and the table of a file of that size.
func head(entries []entry, size uint64) []byte {
	table := make([]byte, 0, len(entries)*entrySize)
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

// cut checks the header and the table of a whole file and says which format it has and where its sections lie.
func cut(data []byte) (format uint32, found [sectionEnd]entry, err error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return 0, found, ErrNotVintage
	}
	format = binary.LittleEndian.Uint32(data[16:])
	if format < firstFormat || format > formatVersion {
		return 0, found, fmt.Errorf("%w: its format is %d, this program reads %d to %d", ErrNotVintage, format, firstFormat, formatVersion)
	}
	end, err := checkHead(data, format)
	if err == nil {
		found, err = cutTable(data, data[headerSize:end])
	}
	return format, found, err
}

// checkHead checks the header and the table of a file of a format and says where the table ends.
func checkHead(data []byte, format uint32) (end uint64, err error) {
	if checksum(data[:headerSize-4]) != binary.LittleEndian.Uint32(data[headerSize-4:]) {
		return 0, fmt.Errorf("%w: header", ErrDamaged)
	}
	count, size := binary.LittleEndian.Uint32(data[20:]), binary.LittleEndian.Uint64(data[24:])
	if size != uint64(len(data)) {
		return 0, fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, len(data), size)
	}
	end = uint64(headLength(format))
	if int(count) != sectionsOf(format) || end > size || checksum(data[headerSize:end]) != binary.LittleEndian.Uint32(data[32:]) {
		return 0, fmt.Errorf("%w: table of sections", ErrDamaged)
	}
	return end, nil
}

func cutTable(data, table []byte) (found [sectionEnd]entry, err error) {
	for ; len(table) >= entrySize; table = table[entrySize:] {
		id := section(binary.LittleEndian.Uint32(table))
		offset, length := binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[16:])
		size := uint64(len(data))
		if id == 0 || id >= sectionEnd || offset > size || length > size-offset {
			return found, fmt.Errorf("%w: bounds of section %d", ErrDamaged, id)
		}
		found[id] = entry{id, binary.LittleEndian.Uint32(table[4:]), offset, length}
	}
	return found, nil
}
