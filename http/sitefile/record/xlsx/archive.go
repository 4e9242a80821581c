package xlsx

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// The limits of a spreadsheet. A few KiB of zip can unpack to many GiB.
const (
	maxUnpackedBytes = 512 << 20
	maxRatio         = 300 // of unpacked to packed bytes, in a part of more than checkedBytes
	checkedBytes     = 16 << 20
)

// An archive is hostile until read: its list may name parts that are not there, or that unpack to any length.

// archive is the zip archive of a spreadsheet. Its parts are found regardless of case: some programs name parts differently than they
// write them.
type archive struct {
	parts    map[string]*zip.File
	unpacked int64 // bytes of all parts so far, of one run
}

// openArchive reads the list of parts.
func openArchive(file io.ReaderAt, size int64) (*archive, error) {
	z, err := zip.NewReader(boundedReaderAt{file, size}, size)
	if _, isFormat := errors.AsType[*FormatError](asFormatError(err)); isFormat {
		return nil, &FormatError{"this is a damaged zip archive or spreadsheet: get the whole file, or save it again"}
	}
	if err != nil {
		return nil, err
	}
	a := &archive{parts: make(map[string]*zip.File, len(z.File))}
	for _, f := range z.File {
		a.parts[normalizePart(f.Name)] = f
	}
	return a, nil
}

// boundedReaderAt is a file that a damaged archive cannot read beyond its bounds.
type boundedReaderAt struct {
	io.ReaderAt
	size int64
}

// ReadAt is that of io.ReaderAt.
func (r boundedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > r.size {
		return 0, zip.ErrFormat
	}
	return r.ReaderAt.ReadAt(p, at)
}

// normalizePart is the name by which a part is found: other programs write backslashes and capitals.
func normalizePart(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// open unpacks a part as it is read; nil if there is none.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.parts[normalizePart(name)]
	if f == nil {
		return nil, nil
	}
	in, err := f.Open()
	if err != nil {
		return nil, asFormatError(err)
	}
	return &partReader{ReadCloser: in, archive: a, packed: int64(f.CompressedSize64)}, nil
}

// partReader reads a part, and refuses one that unpacks to too much. It counts the bytes: the sizes that an archive states may be
// wrong.
type partReader struct {
	io.ReadCloser
	archive  *archive
	packed   int64
	unpacked int64
}

// Read is that of io.Reader.
func (r *partReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.unpacked += int64(n)
	r.archive.unpacked += int64(n)
	if r.archive.unpacked > maxUnpackedBytes || r.unpacked > checkedBytes && r.unpacked > maxRatio*r.packed {
		return 0, &FormatError{"the spreadsheet unpacks to too much: delete its empty rows and columns, or save it as CSV"}
	}
	if err != nil && err != io.EOF {
		err = asFormatError(err)
	}
	return n, err
}

// asFormatError turns an error that the archive's bytes cause into a *FormatError. Any other is of the file, and returned unchanged.
func asFormatError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errWrongXML) {
		return &FormatError{fmt.Sprintf("the spreadsheet is damaged (%v): save it again, or as CSV", err)}
	}
	return err
}

// eachToken calls read for each tag and text of a part. A missing part is empty.
func (a *archive) eachToken(name string, read func(s *xmlScanner, t *xmlToken) error) error {
	in, err := a.open(name)
	if in == nil || err != nil {
		return err
	}
	defer in.Close()
	s := newXMLScanner(in)
	for {
		t, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = read(s, t)
		}
		if err != nil {
			return asFormatError(err)
		}
	}
}

// otherArchives are archives of other formats: each has a part, or the ending of one, that identifies it, and advice for the user.
var otherArchives = []struct{ part, reason string }{
	{"xl/workbook.bin", "this is an XLSB file: save it as XLSX"},
	{"word/document.xml", "this is a Word document: save its table as XLSX or CSV"},
	{"index/document.iwa", "this is a Numbers file: export it as XLSX or CSV"},
	{".kml", "this is a KMZ file: export it as GeoJSON"},
	{".shp", "this is a zip archive with a shapefile: export it as GeoJSON"},
	{".gpkg", "this is a zip archive with a GeoPackage: export it as GeoJSON"},
	{"stops.txt", "this is a zip archive of a timetable (GTFS): unpack it and give its stops.txt"},
}

// unpackable are the endings of files that can be read once unpacked.
var unpackable = []string{".csv", ".tsv", ".txt", ".xlsx", ".geojson", ".json", ".ndjson"}

// explain describes an archive without a spreadsheet.
func (a *archive) explain() error {
	if in, err := a.open("mimetype"); in != nil && err == nil {
		defer in.Close()
		text, _ := io.ReadAll(io.LimitReader(in, 200)) // a read error leaves it empty
		if bytes.Contains(text, []byte("opendocument")) {
			return &FormatError{"this is an OpenDocument file (ODS or the like): save it as XLSX or CSV"}
		}
	}
	for _, o := range otherArchives {
		if a.hasPart(o.part) {
			return &FormatError{o.reason}
		}
	}
	for _, ending := range unpackable {
		if a.hasPart(ending) {
			return &FormatError{"this is a zip archive with other files: unpack it and give one of them"}
		}
	}
	return &FormatError{"this is a zip archive without a spreadsheet: give a CSV, XLSX or GeoJSON file"}
}

// hasPart reports whether the name of a part ends so.
func (a *archive) hasPart(ending string) bool {
	for name := range a.parts {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}
