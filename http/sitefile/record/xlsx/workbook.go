// Package xlsx reads the cells of spreadsheets as texts: numbers in shortest form, dates in ISO 8601, leading zeros from the
// format. Open reads what all sheets share; Rows then reads a sheet row by row, as often as asked:
//
//	io.ReaderAt -> archive -> xmlScanner -> Workbook (sheets, shared texts, number formats)
//	                     `--> xmlScanner -> sheetReader -> Row
//
// Memory does not grow with a sheet, and unpacking is bounded for any archive.
//
// excelize, which the field knows, reads rows one by one too, but gives a cell either as its format shows it, a date as 11-22-26, or
// without its format; it unpacks parts into memory or temporary files, and brings a package for encryption.
package xlsx

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// FormatError is why a spreadsheet cannot be read, with advice for the user.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return e.Reason }

// The limits of the texts that sheets share. They are in memory as long as the workbook is.
const (
	maxSharedBytes = 128 << 20
	maxSharedTexts = 4 << 20
)

// Workbook is a spreadsheet: its sheets, and what they share. It is not safe for concurrent use.
type Workbook struct {
	archive  *archive
	sheets   []Sheet
	is1904   bool           // days are counted from 1904
	formats  []numberFormat // by the style of a cell
	shared   sharedTexts
	mainPart string
}

// Sheet is a sheet of cells.
type Sheet struct {
	Name     string
	IsHidden bool
	part     string
}

// Open reads what the sheets of a spreadsheet share. An archive of another format is a *FormatError that says which it is; other errors
// are those of file.
func Open(file io.ReaderAt, size int64) (*Workbook, error) {
	a, err := openArchive(file, size)
	if err != nil {
		return nil, err
	}
	w := &Workbook{archive: a}
	for _, read := range []func() error{w.findMainPart, w.readSheets, w.readStyles, w.readShared} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Sheets are the sheets in their order, without those of charts.
func (w *Workbook) Sheets() []Sheet { return slices.Clone(w.sheets) }

// findMainPart finds the part that lists the sheets.
func (w *Workbook) findMainPart() error {
	w.mainPart = "xl/workbook.xml"
	err := w.archive.eachToken("_rels/.rels", func(_ *xmlScanner, t *xmlToken) error {
		if target := t.attribute("Target"); t.kind == xmlStart && bytes.HasSuffix(t.attribute("Type"), []byte("/officeDocument")) {
			w.mainPart = string(target)
		}
		return nil
	})
	if err != nil {
		return err
	}
	isOther := !strings.HasSuffix(w.mainPart, ".xml") || strings.Contains(w.mainPart, "word/")
	if isOther || w.archive.parts[normalizePart(w.mainPart)] == nil {
		return w.archive.explain()
	}
	return nil
}

// readSheets reads the names of the sheets, and finds their parts. Sheets of charts have no cells, and are left out.
func (w *Workbook) readSheets() error {
	targets, err := w.readTargets()
	if err != nil {
		return err
	}
	return w.archive.eachToken(w.mainPart, func(_ *xmlScanner, t *xmlToken) error {
		switch {
		case t.kind != xmlStart:
		case string(t.name) == "workbookPr":
			w.is1904 = isTrue(t.attribute("date1904"))
		case string(t.name) == "sheet":
			if part := targets[string(t.attribute("id"))]; part != "" {
				state := string(t.attribute("state"))
				w.sheets = append(w.sheets, Sheet{string(t.attribute("name")), state == "hidden" || state == "veryHidden", part})
			}
		}
		return nil
	})
}

// isTrue reports whether an attribute or a cell is true.
func isTrue(value []byte) bool { return string(value) == "1" || string(value) == "true" }

// readTargets reads the parts for which the ids of sheets stand.
func (w *Workbook) readTargets() (map[string]string, error) {
	folder, base := path.Split(w.mainPart)
	targets := map[string]string{}
	err := w.archive.eachToken(folder+"_rels/"+base+".rels", func(_ *xmlScanner, t *xmlToken) error {
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
func (w *Workbook) readStyles() error {
	custom, inCells := map[string]string{}, false
	return w.archive.eachToken(path.Join(path.Dir(w.mainPart), "styles.xml"), func(_ *xmlScanner, t *xmlToken) error {
		switch name := string(t.name); {
		case name == "cellXfs":
			inCells = t.kind == xmlStart
		case t.kind != xmlStart:
		case name == "numFmt":
			custom[string(t.attribute("numFmtId"))] = string(t.attribute("formatCode"))
		case name == "xf" && inCells:
			id := string(t.attribute("numFmtId"))
			if code, ok := custom[id]; ok {
				w.formats = append(w.formats, parseNumberFormat(code))
			} else {
				w.formats = append(w.formats, builtinFormat(id))
			}
		}
		return nil
	})
}

// sharedTexts are the texts to which the cells of a workbook refer by number, concatenated in one text.
type sharedTexts struct {
	text string
	ends []uint32
}

// text is a shared text; "" for an unknown number.
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

// readShared reads the shared texts, without fonts and phonetic readings.
func (w *Workbook) readShared() error {
	var out strings.Builder
	inText, inPronunciation := false, false
	err := w.archive.eachToken(path.Join(path.Dir(w.mainPart), "sharedStrings.xml"), func(_ *xmlScanner, t *xmlToken) error {
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
			w.shared.ends = append(w.shared.ends, uint32(out.Len()))
		}
		if out.Len() > maxSharedBytes || len(w.shared.ends) > maxSharedTexts {
			return &FormatError{fmt.Sprintf("the spreadsheet has more than %d MiB of texts: save it as CSV", maxSharedBytes>>20)}
		}
		return nil
	})
	w.shared.text = out.String()
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
