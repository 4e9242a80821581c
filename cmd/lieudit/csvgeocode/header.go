package csvgeocode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"lieudit/http/csvfile"
	"lieudit/http/sitefile/record"
)

// header is what the beginning of a file and the job's columns determine. Its file must be closed.
type header struct {
	*csvfile.File
	input  *os.File
	writer *csvfile.ColumnWriter
	layout
}

// field returns a value of a row, decoded, without the spaces around it.
func (h *header) field(r csvfile.Row, column int) string {
	return strings.TrimSpace(h.Value(r, column))
}

// readHeader opens the file, reads its row of names and finds the columns of the job.
func (j Job) readHeader() (h header, err error) {
	if h.input, err = os.Open(j.In); err != nil {
		return h, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.input.Close())
		}
	}()
	info, err := h.input.Stat()
	if err != nil {
		return h, err
	}
	h.File, err = csvfile.Open(h.input, info.Size(), csvfile.Options{FileName: j.In, Encoding: j.Encoding, Separator: j.Separator})
	if err != nil {
		return h, explainFormat(err)
	}
	if err := h.checkNames(); err != nil {
		return h, err
	}
	if len(j.Columns) == 0 {
		if err := h.checkTable(info.Size(), j); err != nil {
			return h, err
		}
	}
	if err := h.resolveLayout(j); err != nil {
		return h, err
	}
	h.writer = h.AddColumns(h.resultNames())
	return h, nil
}

// explainFormat adds to a *csvfile.FormatError that another command reads the file. It returns other errors unchanged.
func explainFormat(err error) error {
	format, ok := errors.AsType[*csvfile.FormatError](err)
	switch {
	case !ok:
		return err
	case strings.Contains(format.Reason, "spreadsheet or another zip"):
		return &csvfile.FormatError{Reason: format.Reason + "; lieudit sites import takes XLSX as it is"}
	case strings.Contains(format.Reason, "JSON"):
		return &csvfile.FormatError{Reason: "this is JSON or GeoJSON: lieudit sites import takes it; save it as CSV to geocode it"}
	}
	return err
}

// checkNames returns a *csvfile.FormatError if the row of names cannot be right.
func (h *header) checkNames() error {
	for _, name := range h.Names {
		if h.Encoding == UTF8 && !utf8.ValidString(name) {
			return &csvfile.FormatError{Reason: "its row of names is not UTF-8: mend it, or name the file's encoding with --encoding"}
		}
	}
	if len(h.Names) > record.MaxColumns {
		return &csvfile.FormatError{Reason: fmt.Sprintf("its row of names has more than %d columns: delete the empty ones, or name what separates them with --separator", record.MaxColumns)}
	}
	return nil
}

// inspectedBytes is how much of a file is read to see whether its first row holds the names.
const inspectedBytes = 1 << 20

// checkTable returns a *csvfile.FormatError if the first row of a file does not hold the names of its columns.
func (h *header) checkTable(size int64, j Job) error {
	beginning := io.NewSectionReader(h.input, 0, min(size, inspectedBytes))
	_, err := record.Open(beginning, beginning.Size(), j.In, record.Options{Encoding: h.Encoding, Separator: j.Separator})
	if rows, ok := errors.AsType[*record.TitleRowsError](err); ok {
		return &csvfile.FormatError{Reason: fmt.Sprintf("titles stand above the row of names, which seems to be line %d: take them out", rows.HeaderLine)}
	}
	if line, ok := errors.AsType[*record.LineError](err); ok {
		return &csvfile.FormatError{Reason: line.Error()}
	}
	if format, ok := errors.AsType[*record.FormatError](err); ok {
		return &csvfile.FormatError{Reason: format.Reason}
	}
	return err
}
