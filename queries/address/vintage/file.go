// Package vintage stores one vintage of the address base as one immutable file that is mapped into memory. The
// same rows make the same bytes, in whatever order they come, and wait on disk rather than in memory.
//
//	ban.Row… ── rowSpill ──► communeRows… ── builder ──► mappedfile.Writer ──► the file                   (Build)
//	   on disk, by commune    by street, largest first
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
	"errors"

	"lieudit/queries/mappedfile"
)

// section identifies a part of the file. A name that ends in First holds offsets: the part of item i in the section of
// the same name lies between First[i] and First[i+1].
type section = mappedfile.Section

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

// Versions of the format. Files from firstFormat on are read, the last one is written.
const (
	firstFormat = 1 // has no sections for the origin of an id_ban and for former ones
	lastOfFirst = secIrregularRows
)

// fileFormat is the format of a vintage's file.
func fileFormat() mappedfile.Format {
	return mappedfile.Format{
		Magic: "lieudit-vintage\n", FirstVersion: firstFormat, SectionCounts: []int{int(lastOfFirst), int(sectionEnd) - 1},
		CheckedAtOpen: 8 << 20, ErrOther: ErrNotVintage, ErrDamaged: ErrDamaged,
	}
}

// none is the ordinal of something absent.
const none = ^uint32(0)

var (
	// ErrNotVintage says that the file is not a vintage, or has another format.
	ErrNotVintage = errors.New("not a vintage of this format")
	// ErrDamaged says that the file is a vintage but has changed since it was written.
	ErrDamaged = errors.New("the vintage is damaged")
)

// HasMagic reports whether a file that begins with these bytes is a vintage, of this format or another.
func HasMagic(head []byte) bool {
	format := fileFormat()
	return format.HasMagic(head)
}

// FormatVersions returns the oldest and the newest version of the format that is read.
func FormatVersions() (first, last int) {
	format := fileFormat()
	return format.Versions()
}
