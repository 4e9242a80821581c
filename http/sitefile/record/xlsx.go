package record

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// What a spreadsheet may take at most. A few KiB of zip can unpack to many GiB.
const (
	maxUnpackedBytes = 512 << 20
	maxRatio         = 300 // of unpacked to packed bytes, in a part of more than checkedBytes
	checkedBytes     = 16 << 20
	maxSharedBytes   = 128 << 20
	maxSharedTexts   = 4 << 20
)

// archive is the zip archive of a spreadsheet. Its parts are found without regard to case: some programs write other ones than they
// name.
type archive struct {
	parts    map[string]*zip.File
	unpacked int64 // bytes of all parts so far, of one run
}

func openArchive(file io.ReaderAt, size int64) (*archive, error) {
	z, err := zip.NewReader(boundedReaderAt{file, size}, size)
	if err != nil {
		return nil, &FormatError{"this is a damaged zip archive or spreadsheet: get the whole file, or save it again"}
	}
	a := &archive{parts: make(map[string]*zip.File, len(z.File))}
	for _, f := range z.File {
		a.parts[normalizePart(f.Name)] = f
	}
	return a, nil
}

// boundedReaderAt is a file that a damaged archive cannot ask for bytes outside it.
type boundedReaderAt struct {
	io.ReaderAt
	size int64
}

func (r boundedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > r.size {
		return 0, zip.ErrFormat
	}
	return r.ReaderAt.ReadAt(p, at)
}

func normalizePart(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// open unpacks a part as it is read; nil: there is none.
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

// partReader reads a part, and refuses what unpacks to too much.
type partReader struct {
	io.ReadCloser
	archive  *archive
	packed   int64
	unpacked int64
}

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

// asFormatError is a *FormatError for an error that the archive's bytes cause; any other is of the file, and stays.
func asFormatError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errWrongXML) {
		return &FormatError{fmt.Sprintf("the spreadsheet is damaged (%v): save it again, or as CSV", err)}
	}
	return err
}

// eachToken calls read for each tag and text of a part. A part that is missing has none.
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

// workbook is a spreadsheet: its sheets, and what they share.
type workbook struct {
	archive  *archive
	sheets   []sheet
	is1904   bool           // days are counted from 1904
	formats  []numberFormat // by the style of a cell
	shared   sharedTexts
	mainPart string
}

// sheet is a sheet of cells.
type sheet struct {
	name, part string
	isHidden   bool
}

// openXLSX finds the sheet that holds a table.
func openXLSX(file io.ReaderAt, size int64, o Options) (*File, error) {
	a, err := openArchive(file, size)
	if err != nil {
		return nil, err
	}
	wb := &workbook{archive: a}
	if err := wb.findMainPart(); err != nil {
		return nil, err
	}
	if err := errors.Join(wb.readSheets(), wb.readStyles(), wb.readShared()); err != nil {
		return nil, firstError(err)
	}
	return wb.openTable(o)
}

// firstError is the first of joined errors.
func firstError(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

// openTable opens the sheet that is asked for, else the first that has a row of names. A sheet with titles above its names is refused
// and not skipped: the sheets behind it may be lists that its cells refer to.
func (wb *workbook) openTable(o Options) (*File, error) {
	visible := slices.DeleteFunc(slices.Clone(wb.sheets), func(s sheet) bool { return s.isHidden })
	candidates := visible
	if o.Sheet != "" {
		found, err := wb.findSheet(o.Sheet, visible)
		if err != nil {
			return nil, err
		}
		candidates = []sheet{found}
	}
	var firstErr error
	var skipped []string
	for _, s := range candidates {
		f, err := wb.openSheet(s, o)
		if err == nil && len(f.columns) < 2 && len(candidates) > 1 {
			err = errNoNames
		}
		if err == nil {
			f.info.SkippedSheets = skipped
			f.info.OtherSheets = sheetNames(slices.DeleteFunc(visible, func(v sheet) bool { return v == s }))
			return f, nil
		}
		if !isOfSheet(err) {
			return nil, err
		}
		skipped = append(skipped, s.name)
		if firstErr == nil {
			firstErr = err
		}
	}
	if firstErr == nil {
		firstErr = &FormatError{"the spreadsheet has no sheet of cells that is not hidden"}
	}
	return nil, firstErr
}

// isOfSheet reports whether an error says that a sheet holds no table; any other is of the whole spreadsheet.
func isOfSheet(err error) bool {
	_, isLine := errors.AsType[*LineError](err)
	return isLine || errors.Is(err, errNoNames)
}

// findSheet is the sheet of a name, or of a number among those that are not hidden.
func (wb *workbook) findSheet(name string, visible []sheet) (sheet, error) {
	for _, s := range wb.sheets {
		if strings.EqualFold(strings.TrimSpace(s.name), strings.TrimSpace(name)) {
			return s, nil
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(visible) {
		return visible[n-1], nil
	}
	return sheet{}, &FormatError{fmt.Sprintf("no sheet is called %q; there are %q", name, sheetNames(visible))}
}

func sheetNames(sheets []sheet) []string {
	names := make([]string, len(sheets))
	for i, s := range sheets {
		names[i] = s.name
	}
	return names
}

// otherArchives are the archives of other formats: a part that tells each, or how a part's name ends, and what its user can do.
var otherArchives = []struct{ part, reason string }{
	{"xl/workbook.bin", "this is an XLSB file: save it as XLSX"},
	{"word/document.xml", "this is a Word document: save its table as XLSX or CSV"},
	{"index/document.iwa", "this is a Numbers file: export it as XLSX or CSV"},
	{".kml", "this is a KMZ file: export it as GeoJSON"},
	{".shp", "this is a zip archive with a shapefile: export it as GeoJSON"},
	{".gpkg", "this is a zip archive with a GeoPackage: export it as GeoJSON"},
	{"stops.txt", "this is a zip archive of a timetable (GTFS): unpack it and give its stops.txt"},
}

// unpackable are the endings of files that are read once they are unpacked.
var unpackable = []string{".csv", ".tsv", ".txt", ".xlsx", ".geojson", ".json", ".ndjson"}

// explain says what an archive is that holds no spreadsheet.
func (a *archive) explain() error {
	if in, err := a.open("mimetype"); in != nil && err == nil {
		defer in.Close()
		text, _ := io.ReadAll(io.LimitReader(in, 200)) // what cannot be read says nothing
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

func (a *archive) hasPart(ending string) bool {
	for name := range a.parts {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

// findMainPart finds the part that lists the sheets.
func (wb *workbook) findMainPart() error {
	wb.mainPart = "xl/workbook.xml"
	err := wb.archive.eachToken("_rels/.rels", func(_ *xmlScanner, t *xmlToken) error {
		if target := t.attribute("Target"); t.kind == xmlStart && bytes.HasSuffix(t.attribute("Type"), []byte("/officeDocument")) {
			wb.mainPart = string(target)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if isSpreadsheet := strings.HasSuffix(wb.mainPart, ".xml") && !strings.Contains(wb.mainPart, "word/"); !isSpreadsheet || wb.archive.parts[normalizePart(wb.mainPart)] == nil {
		return wb.archive.explain()
	}
	return nil
}

// readSheets reads the names of the sheets, and finds their parts. Sheets of charts have no cells, and are left out.
func (wb *workbook) readSheets() error {
	targets, err := wb.readTargets()
	if err != nil {
		return err
	}
	return wb.archive.eachToken(wb.mainPart, func(_ *xmlScanner, t *xmlToken) error {
		switch {
		case t.kind != xmlStart:
		case string(t.name) == "workbookPr":
			wb.is1904 = isTrue(t.attribute("date1904"))
		case string(t.name) == "sheet":
			if part := targets[string(t.attribute("id"))]; part != "" {
				state := string(t.attribute("state"))
				wb.sheets = append(wb.sheets, sheet{string(t.attribute("name")), part, state == "hidden" || state == "veryHidden"})
			}
		}
		return nil
	})
}

func isTrue(value []byte) bool { return string(value) == "1" || string(value) == "true" }

// readTargets reads which parts the ids of sheets stand for.
func (wb *workbook) readTargets() (map[string]string, error) {
	folder, base := path.Split(wb.mainPart)
	targets := map[string]string{}
	err := wb.archive.eachToken(folder+"_rels/"+base+".rels", func(_ *xmlScanner, t *xmlToken) error {
		if t.kind != xmlStart || !bytes.HasSuffix(t.attribute("Type"), []byte("/worksheet")) {
			return nil
		}
		target := string(t.attribute("Target"))
		if !strings.HasPrefix(target, "/") {
			target = path.Join(folder, target)
		}
		targets[string(t.attribute("Id"))] = target
		return nil
	})
	return targets, err
}

// readStyles reads the number format of each style.
func (wb *workbook) readStyles() error {
	custom, inCells := map[string]string{}, false
	return wb.archive.eachToken(path.Join(path.Dir(wb.mainPart), "styles.xml"), func(_ *xmlScanner, t *xmlToken) error {
		switch name := string(t.name); {
		case name == "cellXfs":
			inCells = t.kind == xmlStart
		case t.kind != xmlStart:
		case name == "numFmt":
			custom[string(t.attribute("numFmtId"))] = string(t.attribute("formatCode"))
		case name == "xf" && inCells:
			id := string(t.attribute("numFmtId"))
			if code, ok := custom[id]; ok {
				wb.formats = append(wb.formats, parseNumberFormat(code))
			} else {
				wb.formats = append(wb.formats, builtinFormat(id))
			}
		}
		return nil
	})
}

// sharedTexts are the texts that the cells of a workbook refer to by number, one behind the other in one text.
type sharedTexts struct {
	text string
	ends []uint32
}

// text is a shared text; "" for a number that none has.
func (s *sharedTexts) at(n int) string {
	if n < 0 || n >= len(s.ends) {
		return ""
	}
	start := uint32(0)
	if n > 0 {
		start = s.ends[n-1]
	}
	return s.text[start:s.ends[n]]
}

// readShared reads the shared texts. Of a text with fonts it takes the letters, and leaves out how they are pronounced.
func (wb *workbook) readShared() error {
	var out strings.Builder
	inText, inPronunciation := false, false
	err := wb.archive.eachToken(path.Join(path.Dir(wb.mainPart), "sharedStrings.xml"), func(_ *xmlScanner, t *xmlToken) error {
		switch name := string(t.name); {
		case t.kind == xmlText:
			if inText && !inPronunciation {
				out.WriteString(decodeEscapes(string(t.text)))
			}
		case name == "t":
			inText = t.kind == xmlStart
		case name == "rPh":
			inPronunciation = t.kind == xmlStart
		case name == "si" && t.kind == xmlEnd:
			wb.shared.ends = append(wb.shared.ends, uint32(out.Len()))
		}
		if out.Len() > maxSharedBytes || len(wb.shared.ends) > maxSharedTexts {
			return &FormatError{fmt.Sprintf("the spreadsheet has more than %d MiB of texts: save it as CSV", maxSharedBytes>>20)}
		}
		return nil
	})
	wb.shared.text = out.String()
	return err
}

// decodeEscapes decodes _x000D_ and the like, which stand for control signs.
func decodeEscapes(text string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, "_x")
		if i < 0 || i+7 > len(text) {
			break
		}
		n, err := strconv.ParseUint(text[i+2:i+6], 16, 16)
		if err != nil || text[i+6] != '_' {
			out.WriteString(text[:i+2])
			text = text[i+2:]
			continue
		}
		out.WriteString(text[:i])
		out.WriteRune(rune(n))
		text = text[i+7:]
	}
	if out.Len() == 0 {
		return text
	}
	return out.String() + text
}
