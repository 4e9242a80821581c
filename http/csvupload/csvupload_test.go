package csvupload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"lieudit/http/csvupload"
	"lieudit/schemas/refusal"
)

// newRequest is a request with a form that holds a file.
func newRequest(t *testing.T, file io.Reader, fields ...string) *http.Request {
	t.Helper()
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, err := form.CreateFormFile("data", "été.csv")
	if err == nil {
		_, err = io.Copy(part, file)
	}
	for i := 0; i < len(fields) && err == nil; i += 2 {
		err = form.WriteField(fields[i], fields[i+1])
	}
	if err = errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", &text)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

func readTable(t *testing.T, file string) (*csvupload.Table, error) {
	t.Helper()
	upload, err := csvupload.Receive(newRequest(t, strings.NewReader(file)), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := upload.Close(); err != nil {
			t.Error(err)
		}
	})
	return upload.ReadTable()
}

func mustReadTable(t *testing.T, file string) *csvupload.Table {
	t.Helper()
	table, err := readTable(t, file)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// lengths adds the length of each row's first cell, in bytes.
func lengths(columns ...string) csvupload.Extension {
	return csvupload.Extension{Columns: columns, Workers: semaphore.NewWeighted(4), Fill: func(_ context.Context, rows [][]string) ([][]string, int, error) {
		cells := make([][]string, len(rows))
		for i, row := range rows {
			cells[i] = slices.Repeat([]string{fmt.Sprint(len(row[0]))}, len(columns))
		}
		return cells, len(rows), nil
	}}
}

func encode(t *testing.T, codec interface{ String(string) (string, error) }, text string) string {
	t.Helper()
	encoded, err := codec.String(text)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestAFileKeepsItsEncodingItsSeparatorAndItsLineEnds(t *testing.T) {
	t.Parallel()
	windows := charmap.Windows1252.NewEncoder()
	utf16 := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder()
	for _, c := range []struct{ name, in, want, charset string }{
		{"UTF-8", "é,b\n1,2\n", "é,b,n\n1,2,1\n", "utf-8"},
		{"UTF-8 with a mark, as Excel writes it", "\ufeffé;b\r\nà;\"2\r\n3\"\r\n", "\ufeffé;b;n\r\nà;\"2\r\n3\";2\r\n", "utf-8"},
		{"Windows-1252", encode(t, windows, "é;b\nœuf €;2\n"), encode(t, windows, "é;b;n\nœuf €;2;8\n"), "windows-1252"},
		{"UTF-16", encode(t, utf16, "é\tb\nà\t2\n"), encode(t, utf16, "é\tb\tn\nà\t2\t2\n"), "utf-16le"},
		{"no line end behind the last row", "a|b\n1|2", "a|b|n\n1|2|1\n", "utf-8"},
		{"a separator within quotes", "\"a;;;;\",b\nx,2\n", "\"a;;;;\",b,n\nx,2,1\n", "utf-8"},
		{"one column", "adresse\n1 rue\n", "adresse,n\n1 rue,5\n", "utf-8"},
		{"empty lines", "a,b\n\n1,2\n\n\n3,4\n", "a,b,n\n1,2,1\n3,4,1\n", "utf-8"},
		{"quotes within a cell", "a,b\n5\" x,2\n", "a,b,n\n\"5\"\" x\",2,4\n", "utf-8"},
		{"a broken character among many that are not", strings.Repeat("é", 20) + "\nb\xe9\n", strings.Repeat("é", 20) + ",n\nb\xe9,2\n", "utf-8"},
	} {
		var out bytes.Buffer
		table := mustReadTable(t, c.in)
		_, err := table.Extend(t.Context(), &out, lengths("n"))
		if err != nil || out.String() != c.want || table.Charset() != c.charset {
			t.Errorf("%s: got %q in %s, %v, want %q in %s", c.name, out.String(), table.Charset(), err, c.want, c.charset)
		}
	}
}

func TestLettersThatWindows1252LacksLoseTheirAccents(t *testing.T) {
	t.Parallel()
	x := lengths("n")
	x.Fill = func(_ context.Context, rows [][]string) ([][]string, int, error) {
		return [][]string{{"Rue Țĕst → ’œ"}}, len(rows), nil
	}
	var out bytes.Buffer
	if _, err := mustReadTable(t, "a\n\xe9\n").Extend(t.Context(), &out, x); err != nil {
		t.Fatal(err)
	}
	if want := "a,n\n\xe9,Rue Test ? \x92\x9c\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestRowsOfAnyLengthStayInTheirOrder(t *testing.T) {
	t.Parallel()
	var in, want strings.Builder
	in.WriteString("a,b\n")
	want.WriteString("a,b,n\n")
	for i := range 3000 {
		length := i
		if i == 1500 {
			length = 100_000
		}
		cell := strings.Repeat("x", length)
		fmt.Fprintf(&in, "%s,%d\n", cell, i)
		fmt.Fprintf(&want, "%s,%d,%d\n", cell, i, length)
	}
	var out bytes.Buffer
	table := mustReadTable(t, in.String())
	answered, err := table.Extend(t.Context(), &out, lengths("n"))
	if err != nil || answered != 3000 || table.Rows != 3000 || out.String() != want.String() {
		t.Errorf("answered %d of %d rows, %v; the file differs: %t", answered, table.Rows, err, out.String() != want.String())
	}
}

func TestWhatIsNoCSVIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"gzip", "\x1f\x8b\x08x", "gzip"},
		{"a spreadsheet", "PK\x03\x04x", "spreadsheet"},
		{"binary", "a,b\n1,\x00\n", "binary"},
		{"UTF-16 without a mark", "a\x00,\x00b\x00\n\x00", "UTF-16"},
		{"a quote that is never closed", "a,b\n\"1,2\n3,4\n5,6\n", "never closed"},
		{"a row of more than a mebibyte", "a,b\n\"" + strings.Repeat("x\n", 600_000) + "\",1\n", "longer than 1 MiB"},
	} {
		_, err := readTable(t, c.file)
		if bad := new(csvupload.FormatError); !errors.As(err, &bad) || !strings.Contains(bad.Reason, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := readTable(t, ""); !errors.Is(err, refusal.RequestMalformed) {
		t.Errorf("an empty file: %v", err)
	}
	for rows, want := range map[int]error{csvupload.MaxRows: nil, csvupload.MaxRows + 1: refusal.BodyTooLarge} {
		if _, err := readTable(t, "a\n"+strings.Repeat("1\n", rows)); !errors.Is(err, want) {
			t.Errorf("%d rows: %v, want %v", rows, err, want)
		}
	}
}

func TestALargeFileIsOnDiskUntilItIsClosedAndATooLargeOneIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, c := range []struct {
		bytes int64
		want  error
	}{{csvupload.MaxFileBytes, nil}, {csvupload.MaxFileBytes + 1, &http.MaxBytesError{}}} {
		upload, err := csvupload.Receive(newRequest(t, io.LimitReader(spaces{}, c.bytes), "columns", "a", "columns", "b"), folder)
		if tooLarge := new(http.MaxBytesError); (c.want == nil) != (err == nil) || err != nil && !errors.As(err, &tooLarge) {
			t.Errorf("%d bytes: %v", c.bytes, err)
		}
		if err == nil {
			if want := []string{"a", "b"}; !slices.Equal(upload.Fields["columns"], want) || upload.FileName != "été.csv" {
				t.Errorf("got %v of %q", upload.Fields, upload.FileName)
			}
			if err := upload.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// spaces is a text of spaces without an end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAFormThatBreaksOffIsMalformedAndAFullDiskIsNot(t *testing.T) {
	t.Parallel()
	r := newRequest(t, strings.NewReader("a\n1\n"))
	r.Body = io.NopCloser(io.LimitReader(r.Body, 150))
	if _, err := csvupload.Receive(r, t.TempDir()); !errors.Is(err, refusal.RequestMalformed) {
		t.Errorf("broken off: %v", err)
	}
	_, err := csvupload.Receive(newRequest(t, io.LimitReader(spaces{}, 1<<20)), t.TempDir()+"/absent")
	if _, known := refusal.FromError(err); err == nil || known {
		t.Errorf("no folder: %v, want an error of the disk", err)
	}
}

// failingWriter fails once so many bytes were written.
type failingWriter struct{ left int }

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestOnlyRowsThatWereWrittenAreAnswered(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	table := mustReadTable(t, "a\n"+strings.Repeat("1\n", rows))
	answered, err := table.Extend(t.Context(), &failingWriter{left: 4 * rows / 2}, lengths("n"))
	if !errors.Is(err, io.ErrClosedPipe) || answered < rows/3 || answered > rows/2 {
		t.Errorf("a client that leaves in the middle: %d of %d rows, %v", answered, rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answered, err = table.Extend(ctx, io.Discard, lengths("n")); !errors.Is(err, context.Canceled) || answered != 0 {
		t.Errorf("a client that is gone: %d rows, %v", answered, err)
	}
	for name, fill := range map[string]func() error{
		"an error": func() error { return io.ErrUnexpectedEOF },
		"a panic":  func() error { panic(io.ErrUnexpectedEOF) },
	} {
		x := lengths("n")
		x.Fill = func(_ context.Context, rows [][]string) ([][]string, int, error) { return nil, len(rows), fill() }
		if answered, err = table.Extend(t.Context(), io.Discard, x); err == nil || answered != 0 || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("%s: %d rows, %v", name, answered, err)
		}
	}
}
