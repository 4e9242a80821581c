package sitefile_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// fileForm is how a file is written.
type fileForm struct {
	kind      string // csv, xlsx, list, wrapped, ndjson or geojson
	separator string // of csv
	quotesAll bool
	encoding  string
	lineEnd   string
	asNumbers bool // cells that are numbers are written so, in XLSX and JSON
}

func (f fileForm) String() string {
	if f.kind != "csv" {
		return fmt.Sprintf("%s, numbers %v", f.kind, f.asNumbers)
	}
	return fmt.Sprintf("csv, separator %q, quotes %v, %s, line end %q", f.separator, f.quotesAll, f.encoding, f.lineEnd)
}

// show is the cells of a file, for a message.
func (f inventedFile) show() string {
	var out strings.Builder
	for _, row := range f.table() {
		fmt.Fprintf(&out, "%q\n", row)
	}
	return out.String()
}

// table is the names and the rows of cells.
func (f inventedFile) table() [][]string {
	var names []string
	for _, g := range f.groups {
		names = append(names, g.names...)
	}
	rows := [][]string{names}
	for n, row := range f.rows {
		var cells []string
		for _, g := range f.groups {
			cells = append(cells, g.rows[row].cells...)
		}
		if rows = append(rows, cells); f.repeatsHeader && n == len(f.rows)/2 && n+1 < len(f.rows) {
			rows = append(rows, names)
		}
	}
	return rows
}

// encode is the bytes of the file.
func (f inventedFile) encode() string {
	switch f.form.kind {
	case "csv":
		return f.form.encodeText(f.form.encodeCSV(f.table()))
	case "xlsx":
		return f.form.encodeXLSX(f.table())
	}
	return f.encodeJSON()
}

// encodeCSV writes cells with separators. A cell is quoted where it must be, or always.
func (f fileForm) encodeCSV(rows [][]string) string {
	var out strings.Builder
	for _, row := range rows {
		for n, cell := range row {
			if n > 0 {
				out.WriteString(f.separator)
			}
			if f.quotesAll || strings.ContainsAny(cell, f.separator+"\"\r\n") {
				cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
			}
			out.WriteString(cell)
		}
		out.WriteString(f.lineEnd)
	}
	return out.String()
}

// encodeText writes a text in an encoding. A sign that Windows-1252 does not have becomes a question mark, and is in no invented text.
func (f fileForm) encodeText(text string) string {
	switch f.encoding {
	case "utf-8 with mark":
		return "\ufeff" + text
	case "windows-1252":
		encoded, err := charmap.Windows1252.NewEncoder().String(text)
		if err != nil {
			panic(err)
		}
		return encoded
	case "utf-16":
		encoded, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
		if err != nil {
			panic(err)
		}
		return encoded
	}
	return text
}

// plainNumber is a cell that a program may write as a number without a loss.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9]\d{0,14})(\.\d{1,9})?$`)

// encodeXLSX writes the smallest workbook that holds the rows.
func (f fileForm) encodeXLSX(rows [][]string) string {
	var sheet strings.Builder
	sheet.WriteString(`<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`)
	for n, row := range rows {
		fmt.Fprintf(&sheet, `<row r="%d">`, n+1)
		for c, cell := range row {
			switch at := fmt.Sprintf("%s%d", columnLetters(c), n+1); {
			case cell == "":
			case cell == uncomputed:
				fmt.Fprintf(&sheet, `<c r="%s"><f>UPPER(A1)</f></c>`, at)
			case f.asNumbers && n > 0 && plainNumber.MatchString(cell):
				fmt.Fprintf(&sheet, `<c r="%s"><v>%s</v></c>`, at, cell)
			default:
				fmt.Fprintf(&sheet, `<c r="%s" t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, at, escapeXML(cell))
			}
		}
		sheet.WriteString("</row>")
	}
	sheet.WriteString("</sheetData></worksheet>")
	return zipParts(map[string]string{
		"_rels/.rels":                relate("r", "officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml":            `<workbook xmlns:r="` + relation + `"><sheets><sheet name="Feuil1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": relate("rId1", "worksheet", "worksheets/sheet1.xml"),
		"xl/worksheets/sheet1.xml":   sheet.String(),
	})
}

// uncomputed is a formula without a value.
const uncomputed = "\x00formula"

// relation is the namespace of what the parts of a workbook are to each other.
const relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

// relate writes that a part of a workbook has another one.
func relate(id, kind, target string) string {
	return fmt.Sprintf(`<Relationships><Relationship Id="%s" Type="%s/%s" Target="%s"/></Relationships>`, id, relation, kind, target)
}

// columnLetters is what a spreadsheet calls its n-th column: A to Z, then AA.
func columnLetters(n int) string {
	if n < 26 {
		return string(rune('A' + n))
	}
	return columnLetters(n/26-1) + columnLetters(n%26)
}

func escapeXML(text string) string {
	var out bytes.Buffer
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		panic(err)
	}
	return out.String()
}

func zipParts(parts map[string]string) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, err := w.Create(name)
		if err != nil {
			panic(err)
		}
		if _, err := part.Write([]byte(parts[name])); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// encodeJSON writes objects: a list, an object that holds one, one a line, or features.
func (f inventedFile) encodeJSON() string {
	objects := make([]string, len(f.rows))
	for n, row := range f.rows {
		objects[n] = f.encodeObject(row)
	}
	switch f.form.kind {
	case "ndjson":
		return strings.Join(objects, "\n") + "\n"
	case "wrapped":
		return `{"nhits":` + fmt.Sprint(len(objects)) + `,"parameters":{"rows":10},"results":[` + strings.Join(objects, ",\n") + "]}"
	case "geojson":
		return `{"type":"FeatureCollection","features":[` + strings.Join(objects, ",\n") + "]}"
	}
	return "[" + strings.Join(objects, ",\n") + "]"
}

// encodeObject writes a row as an object. A name with a point is a member of a member; empty cells are null.
func (f inventedFile) encodeObject(row int) string {
	properties, geometry := &jsonObject{}, "null"
	for _, g := range f.groups {
		for c, name := range g.names {
			switch cell := g.rows[row].cells[c]; {
			case g.isGeometry && cell != "":
				geometry = cell
			case g.isGeometry:
			default:
				properties.set(name, f.form.encodeValue(cell))
			}
		}
	}
	if f.form.kind == "geojson" {
		return `{"type":"Feature","properties":` + properties.String() + `,"geometry":` + geometry + "}"
	}
	return properties.String()
}

func (f fileForm) encodeValue(cell string) string {
	switch {
	case cell == "":
		return "null"
	case f.asNumbers && plainNumber.MatchString(cell):
		return cell
	}
	text, err := json.Marshal(cell)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// jsonObject is an object whose members keep their order.
type jsonObject struct {
	names  []string
	values map[string]string      // JSON
	inner  map[string]*jsonObject // members that are objects
}

func (o *jsonObject) set(path, value string) {
	if o.values == nil {
		o.values, o.inner = map[string]string{}, map[string]*jsonObject{}
	}
	name, rest, isDeep := strings.Cut(path, ".")
	if !slices.Contains(o.names, name) {
		o.names = append(o.names, name)
	}
	if !isDeep {
		o.values[name] = value
		return
	}
	if o.inner[name] == nil {
		o.inner[name] = &jsonObject{}
	}
	o.inner[name].set(rest, value)
}

func (o *jsonObject) String() string {
	members := make([]string, len(o.names))
	for n, name := range o.names {
		key, err := json.Marshal(name)
		if err != nil {
			panic(err)
		}
		value := o.values[name]
		if inner := o.inner[name]; inner != nil {
			value = inner.String()
		}
		members[n] = string(key) + ":" + value
	}
	return "{" + strings.Join(members, ",") + "}"
}
