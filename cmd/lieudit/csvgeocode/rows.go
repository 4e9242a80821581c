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

// maxRowBytes is how long a row may be, its line breaks within quotes included.
const maxRowBytes = 1 << 20

// errUnclosedQuote says that a row is longer than maxRowBytes.
var errUnclosedQuote = errors.New("it does not end: a quote is not closed")

// row is one row of the file: its text and its fields.
type row struct {
	raw    string // without its line end
	fields []string
}

// rowReader reads rows with their text. encoding/csv gives fields only, so a retainingReader below it keeps the text that
// the CSV reader has read, and the CSV reader's offset says where a row ends in it. Offsets count the decoded text.
type rowReader struct {
	csv      *csv.Reader
	buffered *retainingReader
	offset   int64 // end of the last row
	start    int64 // where the reader began
}

// readBufferSize is how many bytes the CSV reader reads at once.
const readBufferSize = 1 << 16

// retainingReader keeps the text that passes through it until consume takes it.
type retainingReader struct {
	io.Reader
	retained []byte
	consumed int // leading bytes of retained that were consumed
}

func (k *retainingReader) Read(p []byte) (int, error) {
	if len(k.retained)-k.consumed > maxRowBytes+readBufferSize {
		return 0, errUnclosedQuote
	}
	k.retained = append(k.retained[:0], k.retained[k.consumed:]...)
	k.consumed = 0
	n, err := k.Reader.Read(p)
	k.retained = append(k.retained, p[:n]...)
	return n, err
}

// consume returns the next n bytes of the retained text and lets go of them.
func (k *retainingReader) consume(n int) string {
	text := string(k.retained[k.consumed : k.consumed+n])
	k.consumed += n
	return text
}

// peekLine is the beginning of the first line not consumed yet, for messages.
func (k *retainingReader) peekLine() string {
	next := strings.TrimLeft(string(k.retained[k.consumed:min(k.consumed+60, len(k.retained))]), "\r\n")
	line, _, _ := strings.Cut(next, "\n")
	return line
}

// newRowReader reads rows from text that begins at an offset of the whole file. Quotes may be loose, and rows may have more
// or fewer fields than the header.
func newRowReader(text io.Reader, separator rune, offset int64) *rowReader {
	k := &retainingReader{Reader: text}
	c := csv.NewReader(bufio.NewReaderSize(k, readBufferSize))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = separator, true, -1
	return &rowReader{csv: c, buffered: k, offset: offset, start: offset}
}

// readRow reads the next row that is not empty. At the end it returns io.EOF.
func (r *rowReader) readRow() (row, error) {
	fields, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return row{}, io.EOF
	}
	if err != nil {
		return row{}, fmt.Errorf("the row that begins with %q: %w", r.buffered.peekLine(), err)
	}
	end := r.start + r.csv.InputOffset()
	raw := strings.Trim(r.buffered.consume(int(end-r.offset)), "\r\n")
	r.offset = end
	return row{raw, fields}, nil
}

// resultColumnNames are the columns written beside each row. The names are those of the CSV service of the former national
// address API, which customers' programs know.
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

// result is what is written beside a row.
type result struct {
	status string
	match  address.Match // valid with statusFound
}

// verifyRow verifies the address of a row. An error is one of the engine: a row that cannot be verified is a result.
func (j Job) verifyRow(ctx context.Context, h *header, r row) (result, error) {
	query := address.Query{Text: h.joinAddress(r), Limit: 1}
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

// trimmedField is a field without the spaces around it.
func (r row) trimmedField(i int) string {
	if i < 0 || i >= len(r.fields) {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

// joinAddress joins the address columns of a row in one line.
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
	numberFound := ""
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

// formatRow formats a row with the results behind it. So that the results stand in their columns, a row with too few
// fields gets empty ones, and in a row with too many the surplus fields are joined with the last.
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
