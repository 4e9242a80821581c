package csvgeocode

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"lieudit/queries/address"
)

// maxRowBytes is how long a row may be, its line breaks within quotes included. Without a bound, a quote that is not closed
// would read the rest of the file into memory.
const maxRowBytes = 1 << 20

// errUnclosedQuote says that a row is longer than maxRowBytes.
var errUnclosedQuote = errors.New("it does not end: a quote is not closed")

// row is one row of the file: its text and its fields.
type row struct {
	raw    string   // as it stands in the file, quotes included, without its line end
	fields []string // values, without quotes
}

// rowReader reads rows together with their text. encoding/csv returns fields only. So a retainingReader below it keeps the
// text that the CSV reader has read, and the CSV reader's InputOffset says where in that text a row ends. Offsets count
// bytes of the decoded text of the whole file.
type rowReader struct {
	csv      *csv.Reader
	buffered *retainingReader
	offset   int64 // end of the last row
	start    int64 // offset of the text that the CSV reader counts as 0
}

// readBufferSize is how many bytes the CSV reader reads at once.
const readBufferSize = 1 << 16

// retainingReader keeps the text that is read through it until consume returns it. More than maxRowBytes of it, beyond what
// the CSV reader reads ahead, is errUnclosedQuote.
type retainingReader struct {
	io.Reader
	retained []byte
	consumed int // leading bytes of retained that were consumed
}

func (r *retainingReader) Read(p []byte) (int, error) {
	if len(r.retained)-r.consumed > maxRowBytes+readBufferSize {
		return 0, errUnclosedQuote
	}
	r.retained = append(r.retained[:0], r.retained[r.consumed:]...)
	r.consumed = 0
	n, err := r.Reader.Read(p)
	r.retained = append(r.retained, p[:n]...)
	return n, err
}

// consume returns the next n bytes of the retained text. The next Read drops them.
func (r *retainingReader) consume(n int) string {
	text := string(r.retained[r.consumed : r.consumed+n])
	r.consumed += n
	return text
}

// peekLine returns the first line that is not consumed yet, at most 60 bytes of it, for error messages.
func (r *retainingReader) peekLine() string {
	next := strings.TrimLeft(string(r.retained[r.consumed:min(r.consumed+60, len(r.retained))]), "\r\n")
	line, _, _ := strings.Cut(next, "\n")
	return line
}

// newRowReader reads rows from text that begins at an offset of the whole file, which must be the beginning of a row. It is
// lenient, because customers' files are: quotes may stand within a field, and rows may have more or fewer fields than the
// header.
func newRowReader(text io.Reader, separator rune, offset int64) *rowReader {
	retaining := &retainingReader{Reader: text}
	reader := csv.NewReader(bufio.NewReaderSize(retaining, readBufferSize))
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = separator, true, -1
	return &rowReader{csv: reader, buffered: retaining, offset: offset, start: offset}
}

// readRow reads the next row and skips empty lines. At the end it returns io.EOF.
func (r *rowReader) readRow() (row, error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if err != nil {
		return row{}, fmt.Errorf("the row that begins with %q: %w", r.buffered.peekLine(), err)
	}
	end := r.start + r.csv.InputOffset()
	// What is consumed begins with the empty lines that the CSV reader has skipped, and ends with the row's line end.
	raw := strings.Trim(r.buffered.consume(int(end-r.offset)), "\r\n")
	r.offset = end
	return row{raw, fields}, nil
}

// resultColumnNames are the columns written beside each row. The names are those of the CSV service of the former national
// address API, which customers' programs read.
func resultColumnNames() []string {
	return []string{"result_latitude", "result_longitude", "result_label", "result_score", "result_score_next", "result_type", "result_id",
		"result_housenumber", "result_name", "result_street", "result_postcode", "result_city", "result_context", "result_citycode",
		"result_oldcitycode", "result_oldcity", "result_district", "result_ban_id", "result_verdict", "result_number_found", "result_status"}
}

// Values of result_status.
const (
	statusFound    = "ok"
	statusNotFound = "not-found"
	statusSkipped  = "skipped" // the row holds no address
	statusNotText  = "error"   // the row is not text in the file's encoding
)

// result is the outcome of verifying one row, which is written behind it.
type result struct {
	status string
	match  address.Match // valid with statusFound
}

// verifyRow verifies the address of a row. A row that cannot be verified is a result, not an error: an error is one of the
// engine and ends the run.
func (j Job) verifyRow(ctx context.Context, h *header, r row) (result, error) {
	query := address.Query{Text: h.joinAddress(r), Limit: 1, CommuneFallback: j.Fallback}
	if code := r.trimmedField(h.postcodeColumn); code != "" {
		query.Filter.Postcodes = []string{code}
	}
	if code := r.trimmedField(h.cityCodeColumn); code != "" {
		query.Filter.CityCodes = []string{code}
	}
	switch {
	case !utf8.ValidString(r.raw):
		return result{status: statusNotText}, nil
	case query.Text == "":
		return result{status: statusSkipped}, nil
	}
	matches, err := j.Engine.Verify(ctx, query)
	if errors.Is(err, address.ErrUnparsable) || err == nil && len(matches) == 0 {
		return result{status: statusNotFound}, nil
	}
	if err != nil {
		return result{}, err
	}
	return result{statusFound, matches[0]}, nil
}

// trimmedField returns a field without the spaces around it. It is "" for the index -1 and for a field that the row lacks.
func (r row) trimmedField(i int) string {
	if i < 0 || i >= len(r.fields) {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

// joinAddress joins the values of the address columns with spaces. It is "" when all of them are empty.
func (h *header) joinAddress(r row) string {
	var parts []string
	for _, i := range h.addressColumns {
		if part := r.trimmedField(i); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// countResult counts one row by its result.
func (c *Counts) countResult(r result) {
	c.Rows++
	switch {
	case r.status == statusNotFound:
		c.NotFound++
	case r.status == statusSkipped:
		c.Skipped++
	case r.status == statusNotText:
		c.Errors++
	case r.match.Verdict == address.Exact:
		c.Exact++
	default:
		c.Probable++
	}
}

// values are the result's fields, in the order of resultColumnNames.
func (r result) values() []string {
	if r.status != statusFound {
		out := make([]string, len(resultColumnNames()))
		out[len(out)-1] = r.status
		return out
	}
	m := &r.match
	numberFound := "" // empty where the row names no house number
	if m.NumberTyped {
		numberFound = strconv.FormatBool(m.NumberFound)
	}
	number := m.Number + m.Rep
	name := strings.TrimSpace(number + " " + m.Street)
	if m.Type == address.Municipality {
		name = m.City
	}
	return []string{formatDecimal(m.Lat), formatDecimal(m.Lon), m.Label, formatDecimal(m.Score), formatDecimal(m.Next), string(m.Type), m.ID,
		number, name, m.Street, m.Postcode, m.City, m.Context(), m.CityCode,
		m.OldCityCode, m.OldCity, m.District, m.BanID, string(m.Verdict), numberFound, r.status}
}

// formatDecimal writes the shortest decimal that reads back as the same number.
func formatDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// formatRow formats the line of a row: its text, the results behind it, and the header's line end. The results must stand
// in the same columns in every row. So a row with too few fields gets empty ones, and in a row with too many the surplus
// fields become part of the last; only then are the fields quoted anew.
func (h *header) formatRow(r row, results []string) string {
	var out strings.Builder
	missing := len(h.columns) - len(r.fields)
	if missing < 0 {
		rest := strings.Join(r.fields[len(h.columns)-1:], string(h.separator))
		for _, f := range r.fields[:len(h.columns)-1] {
			out.WriteString(h.quoteField(f))
			out.WriteRune(h.separator)
		}
		out.WriteString(h.quoteField(rest))
	} else {
		out.WriteString(r.raw)
		out.WriteString(strings.Repeat(string(h.separator), missing))
	}
	for _, f := range results {
		out.WriteRune(h.separator)
		out.WriteString(h.quoteField(f))
	}
	out.WriteString(h.lineEnd)
	return out.String()
}

// quoteField quotes a field where CSV demands it.
func (h *header) quoteField(field string) string {
	if !strings.ContainsAny(field, "\"\r\n"+string(h.separator)) {
		return field
	}
	return `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
}
