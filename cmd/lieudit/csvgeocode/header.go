package csvgeocode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"lieudit/http/sitefile/record"
)

// bom is the byte order mark with which Excel begins UTF-8 files, as text. It is kept in the result.
const bom = "\ufeff"

// header is what the first line of a file and the job's columns determine.
type header struct {
	charset
	names      []string // of the columns, as they stand in the file
	raw        string   // the line without its end
	before     string   // what stands before it: a byte order mark, a line that names the separator
	lineEnd    string   // "\n" or "\r\n"
	separator  rune
	rowsOffset int64 // offset of the first row, in bytes of the text
	layout
}

// FormatError says why a file cannot be read. Reason is a sentence with the way on.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return e.Reason }

// explainFormat turns what the readers of files of places say about a file into a *FormatError. They read more formats than this
// command does, so the way on is another. Other errors stay as they are.
func explainFormat(err error) error {
	if rows, ok := errors.AsType[*record.TitleRowsError](err); ok {
		return &FormatError{fmt.Sprintf("titles stand above the row of names, which seems to be line %d: take them out", rows.HeaderLine)}
	}
	if line, ok := errors.AsType[*record.LineError](err); ok {
		return &FormatError{line.Error()}
	}
	format, ok := errors.AsType[*record.FormatError](err)
	if !ok {
		return err
	}
	what, wayOn, hasWay := strings.Cut(format.Reason, ": ")
	if hasWay && (strings.HasPrefix(wayOn, "save it") || strings.HasPrefix(wayOn, "export it")) {
		wayOn = "save it as CSV"
	}
	if strings.Contains(what, "spreadsheet or another zip") {
		wayOn += "; lieudit sites import takes XLSX as it is"
	}
	return &FormatError{strings.TrimSuffix(what+": "+wayOn, ": ")}
}

// readHeader reads the first line and finds the columns of the job. It reads up to maxRowBytes, because a column's name may
// hold line breaks within quotes.
func (j Job) readHeader() (h header, err error) {
	if h.charset, err = detectCharset(j.In, j.Encoding); err != nil {
		return h, err
	}
	start, err := h.readStart(j.In)
	if err != nil {
		return h, err
	}
	if line, _, _ := bytes.Cut(start, []byte("\n")); h.name == UTF8 && !utf8.Valid(line) {
		return h, &FormatError{"its row of names is not UTF-8: mend it, or name the file's encoding with --encoding"}
	}
	verdict, err := j.inspectTable(h.charset)
	if err != nil && len(j.Columns) == 0 {
		return h, err
	}
	h.cutPreamble(start)
	h.chooseSeparator(j, verdict, start[len(h.before):])
	if err := h.parseNames(start[len(h.before):]); err != nil {
		return h, err
	}
	return h, h.resolveLayout(j)
}

// readStart reads the beginning of a file, as text.
func (c charset) readStart(path string) ([]byte, error) {
	text, err := c.openText(path, 0)
	if err != nil {
		return nil, err
	}
	defer text.file.Close()
	start := make([]byte, maxRowBytes)
	n, err := io.ReadFull(text, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return start[:n], nil
}

// inspectTable asks the reader of files of places about the beginning of the file: what separates its cells, and whether its first
// row holds names. An error of it is a *FormatError.
func (j Job) inspectTable(c charset) (record.Info, error) {
	file, err := os.Open(j.In)
	if err != nil {
		return record.Info{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return record.Info{}, err
	}
	table, err := record.Open(file, min(info.Size(), maxRowBytes), j.In, record.Options{Encoding: c.name, Separator: j.Separator})
	if err != nil {
		return record.Info{}, explainFormat(err)
	}
	return table.Info(), nil
}

// separatorLine is a first line that names the separator; programs of Microsoft write and read it.
var separatorLine = regexp.MustCompile(`^(?i:"?sep=)([^\r\n"])"?\r?\n`)

// cutPreamble finds what stands before the row of names.
func (h *header) cutPreamble(start []byte) {
	rest := bytes.TrimPrefix(start, []byte(bom))
	if m := separatorLine.FindSubmatch(rest); m != nil {
		h.separator = rune(m[1][0])
		rest = rest[len(m[0]):]
	}
	h.before = string(start[:len(start)-len(rest)])
}

// chooseSeparator decides what separates the fields: what the job says, what the file says in its first line, what cuts its rows into
// the same number of cells, what occurs most often in the row of names. A file of one column gets a separator that it does not have,
// so that the results can be told from its text.
func (h *header) chooseSeparator(j Job, found record.Info, start []byte) {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	switch {
	case j.Separator != 0:
		h.separator = j.Separator
	case h.separator != 0:
	case found.Separator != 0:
		h.separator = found.Separator
	case found.Format == record.CSV:
		h.separator = rarestSeparator(start)
	default:
		h.separator = mostFrequentSeparator(line)
	}
}

// separators are those that are looked for; the first decides where none occurs.
const separators = ",;\t|"

// rarestSeparator is the first one that a text does not have, otherwise a comma.
func rarestSeparator(text []byte) rune {
	for _, c := range separators {
		if bytes.IndexByte(text, byte(c)) < 0 {
			return c
		}
	}
	return ','
}

// mostFrequentSeparator is the one that occurs most often in a line.
func mostFrequentSeparator(line []byte) rune {
	best, highest := ',', 0
	for _, c := range separators {
		if n := bytes.Count(line, []byte(string(c))); n > highest {
			best, highest = c, n
		}
	}
	return best
}

// parseNames reads the row of names, its line end and where the rows begin. start is the text from the row of names on.
func (h *header) parseNames(start []byte) error {
	rows := newRowReader(bytes.NewReader(start), h.separator, 0)
	row, err := rows.readRow()
	if err != nil {
		return err
	}
	if len(row.fields) > record.MaxColumns {
		return &FormatError{fmt.Sprintf("its row of names has more than %d columns: delete the empty ones, or name what separates them with --separator", record.MaxColumns)}
	}
	for _, name := range row.fields {
		h.names = append(h.names, h.decodeField(name))
	}
	h.raw, h.rowsOffset = row.raw, rows.offset+int64(len(h.before))
	h.lineEnd = "\n"
	if bytes.HasSuffix(start[:rows.offset], []byte("\r\n")) {
		h.lineEnd = "\r\n"
	}
	return nil
}
