package osmpbf

import (
	"bytes"
	"fmt"
)

// FormatError means that a file is not OSM PBF. Found is what it seems to be, judging by its first bytes.
type FormatError struct{ Found string }

func (e *FormatError) Error() string { return "not OSM PBF: " + e.Found }

// FeatureError means that a file requires a feature that this reader does not have.
type FeatureError struct{ Feature string }

func (e *FeatureError) Error() string {
	switch e.Feature {
	case "HistoricalInformation":
		return "the PBF holds the history of the map (HistoricalInformation); load a file of the map at one time"
	case "lzma", "bzip2", "lz4":
		return fmt.Sprintf("the PBF is compressed with %s; zlib and zstd are supported", e.Feature)
	}
	return fmt.Sprintf("the PBF needs the feature %q of its reader, which is not supported", e.Feature)
}

// CutError means that a file ends in the middle of a blob.
type CutError struct {
	Blob   int   // counted from 0, which is the header
	Offset int64 // where the blob begins
	Size   int64 // of the file
}

func (e *CutError) Error() string {
	return fmt.Sprintf("the PBF is cut: it ends at byte %d, inside blob %d, which begins at byte %d", e.Size, e.Blob, e.Offset)
}

// DamageError means that a blob violates the format.
type DamageError struct {
	Blob   int   // counted from 0, which is the header
	Offset int64 // where the blob begins
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the PBF is damaged: blob %d at byte %d: %v", e.Blob, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// foreign are the first bytes of files that users mistake for OSM PBF, with their descriptions.
var foreign = []struct{ prefix, found string }{
	{"\x1f\x8b", "it is compressed with gzip; unpack it first"},
	{"BZh", "it is compressed with bzip2, as OSM XML often is; a .osm.pbf is needed"},
	{"\xfd7zXZ", "it is compressed with xz; unpack it first"},
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd; unpack it first"},
	{"PK\x03\x04", "it is a ZIP archive; unpack it first"},
	{"\xef\xbb\xbf<", "it is XML; a .osm.pbf is needed"},
	{"<?xml", "it is XML; a .osm.pbf is needed"},
	{"<osm", "it is OSM XML; a .osm.pbf is needed"},
	{"<", "it is a web page or XML; a download may have failed"},
	{"{", "it is JSON; a .osm.pbf is needed"},
	{"SQLite format 3", "it is an SQLite database"},
	{"version https://git-lfs", "it is a pointer of Git LFS, not the file itself"},
}

// describeForeign identifies a file that does not begin like a PBF.
func describeForeign(head []byte) *FormatError {
	trimmed := bytes.TrimLeft(head, " \t\r\n")
	for _, f := range foreign {
		if bytes.HasPrefix(trimmed, []byte(f.prefix)) {
			return &FormatError{f.found}
		}
	}
	return &FormatError{"it does not begin with an OSMHeader blob"}
}
