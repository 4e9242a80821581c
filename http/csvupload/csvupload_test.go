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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
	return receive(t, file).ReadTable(func(int64) error { return nil })
}

func receive(t *testing.T, file string) *csvupload.Upload {
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
	return upload
}

func TestReadingALargeFileGivesWay(t *testing.T) {
	t.Parallel()
	file := "a,b\n" + strings.Repeat("some,text\n", 100_000)
	upload, errNoTurn := receive(t, file), errors.New("no turn")
	var total, longest int64
	table, err := upload.ReadTable(func(read int64) error {
		total, longest = total+read, max(longest, read)
		return nil
	})
	if err != nil || table.Rows != 100_000 {
		t.Fatalf("%+v, %v", table, err)
	}
	if least := int64(len(file)) * 9 / 10; total < least || longest > 65<<10 {
		t.Errorf("gave way for %d bytes of %d, after %d at most", total, len(file), longest)
	}
	if _, err := upload.ReadTable(func(int64) error { return errNoTurn }); !errors.Is(err, errNoTurn) {
		t.Errorf("without a turn: %v", err)
	}
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
	workers := semaphore.NewWeighted(4)
	acquire := func(ctx context.Context) (func(), error) {
		return func() { workers.Release(1) }, workers.Acquire(ctx, 1)
	}
	refused := make([]string, len(columns))
	return csvupload.Extension{Columns: columns, Refused: refused, AcquireWorker: acquire, Fill: func(_ context.Context, rows [][]string) ([]csvupload.Result, error) {
		results := make([]csvupload.Result, len(rows))
		for i, row := range rows {
			results[i] = csvupload.Result{Cells: slices.Repeat([]string{fmt.Sprint(len(row[0]))}, len(columns)), IsAnswered: true}
		}
		return results, nil
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
		{"CR alone, as of a Macintosh", "é;b\rà;2\r\rœuf;3\r", "é;b;n\rà;2;2\rœuf;3;4\r", "utf-8"},
		{"CR alone, none behind the last row", "a,b\r1,2", "a,b,n\r1,2,1\r", "utf-8"},
		{"CR alone in UTF-16", encode(t, utf16, "é\tb\rà\t2\r"), encode(t, utf16, "é\tb\tn\rà\t2\t2\r"), "utf-16le"},
		{"CR within quotes of a file that has LF", "a,\"b\rc\"\n1,2\n", "a,\"b\rc\",n\n1,2,1\n", "utf-8"},
		{"no line end behind the last row", "a|b\n1|2", "a|b|n\n1|2|1\n", "utf-8"},
		{"a separator within quotes", "\"a;;;;\",b\nx,2\n", "\"a;;;;\",b,n\nx,2,1\n", "utf-8"},
		{"one column", "adresse\n1 rue\n", "adresse,n\n1 rue,5\n", "utf-8"},
		{"empty lines", "a,b\n\n1,2\n\n\n3,4\n", "a,b,n\n1,2,1\n3,4,1\n", "utf-8"},
		{"empty lines first", "\r\n\n\r\na;b\r\n1;2\r\n", "a;b;n\r\n1;2;1\r\n", "utf-8"},
		{"a quote that the end of the file leaves open", "a,b\n1,\"2", "a,b,n\n1,2,1\n", "utf-8"},
		{"a cell that is quoted without need", "\"a\",b\n1,\" 2\"\n", "\"a\",b,n\n1,\" 2\",1\n", "utf-8"},
		{"surplus cells", "a,b\n1,2,\"3,\"\n", "a,b,n\n1,\"2,3,\",1\n", "utf-8"},
		{"a column that is there already", "a,n,b\n1,\"0\",2\"3\n", "a,n,b\n1,1,2\"3\n", "utf-8"},
		{"quotes within a cell", "a,b\n5\" x,2\n", "a,b,n\n5\" x,2,4\n", "utf-8"},
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
	x.Fill = func(context.Context, [][]string) ([]csvupload.Result, error) {
		return []csvupload.Result{{Cells: []string{"Rue Țĕst → ’œ"}, IsAnswered: true}}, nil
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
		{"JSON", "[{\"a\":1}]", "JSON"},
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

// failingWriter fails once n bytes were written.
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
		x.Fill = func(context.Context, [][]string) ([]csvupload.Result, error) { return nil, fill() }
		if answered, err = table.Extend(t.Context(), io.Discard, x); err == nil || answered != 0 || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("%s: %d rows, %v", name, answered, err)
		}
	}
}

func TestAFileOfMoreThan1024ColumnsIsRefusedInWords(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat(",", csvupload.MaxColumns)
	for _, c := range []struct{ name, file, want string }{
		{"the header", wide + "\n1\n", "the file has 1025 columns, and at most 1024 are accepted: delete the empty ones"},
		{"a row", "a,b\n1\n" + wide + "\n", "row 2 has 1025 cells, and at most 1024 are accepted: check its separators"},
		{"both at the limit", wide[1:] + "\n" + wide[1:] + "\n", ""},
	} {
		_, err := readTable(t, c.file)
		if bad := new(csvupload.WidthError); c.want != "" && (!errors.As(err, &bad) || bad.Error() != c.want) || c.want == "" && err != nil {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// boundedExtension adds two columns and answers every row by a text in the first; refused rows have "error" in the second.
func boundedExtension(text string) csvupload.Extension {
	x := lengths("n", "status")
	x.Refused = []string{"", "error"}
	x.Fill = func(_ context.Context, rows [][]string) ([]csvupload.Result, error) {
		return slices.Repeat([]csvupload.Result{{Cells: []string{text, "ok"}, IsAnswered: true}}, len(rows)), nil
	}
	return x
}

func TestAnAnswerHasAtMostTheBytesOfTheFileAnd1KiBMoreARow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, header, row, result string
		wantEnd                   string // of the answer to a row
		isAnswered                bool
	}{
		{"rows that lack some cells", strings.Repeat(",", 500), "1", "2", strings.Repeat(",", 501) + "2,ok\n", true},
		{"rows that lack many cells", strings.Repeat(",", 1000), "1", strings.Repeat("2", 100), strings.Repeat(",", 1002) + "error\n", false},
		{"rows that lack all cells but one", strings.Repeat(",", 1023), "1", "2", "\n1\n", false},
		{"a long result", "a", "1", strings.Repeat("2", 1100), "1,,error\n", false},
		{"a result of quotes", "a", "1", strings.Repeat(`"`, 600), "1,,error\n", false},
		{"a result that is there already", "a,n", "1," + strings.Repeat("2", 1100), strings.Repeat("3", 1100), "\n1," + strings.Repeat("3", 1100) + ",ok\n", true},
		{"quotes that are not doubled", "a,b", "1,2" + strings.Repeat(`"`, 10_000), "2", `",2,ok` + "\n", true},
		{"cells that begin with a space", strings.Repeat(",", 1000), strings.Repeat(", ", 1000), "2", ", , ,2,ok\n", true},
		{"line ends in a cell", "a\r", "\"1" + strings.Repeat("\n", 10_000) + "\"", "2", "\n\n\",2,ok\r\n", true},
		{"surplus cells of quotes", "a,b", "1" + strings.Repeat(`,2"""`, 500), "2", "\n1" + strings.Repeat(`,2"""`, 500) + "\n", false},
	} {
		const rows = 100
		file := c.header + "\n" + strings.Repeat(c.row+"\n", rows)
		var out bytes.Buffer
		answered, err := mustReadTable(t, file).Extend(t.Context(), &out, boundedExtension(c.result))
		if err != nil || (answered == rows) != c.isAnswered || answered != rows && answered != 0 {
			t.Errorf("%s: %d rows are answered, %v", c.name, answered, err)
		}
		if out.Len() > len(file)+1024*(rows+1) {
			t.Errorf("%s: %d bytes become %d", c.name, len(file), out.Len())
		}
		if got := out.String(); !strings.HasSuffix(got, c.wantEnd) {
			t.Errorf("%s: the answer ends in %q", c.name, got[max(0, len(got)-100):])
		}
	}
}

func TestRowsTakeNoMoreMemoryThanTheirOwnCells(t *testing.T) {
	t.Parallel()
	x := lengths("n")
	fill, shortest, most := x.Fill, 1<<20, 0
	x.AcquireWorker = func(context.Context) (func(), error) { return func() {}, nil }
	var mu sync.Mutex
	x.Fill = func(ctx context.Context, rows [][]string) ([]csvupload.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, len(rows))
		for _, row := range rows {
			shortest = min(shortest, len(row))
		}
		return fill(ctx, rows)
	}
	columns := strings.Repeat(",", 1023)
	if _, err := mustReadTable(t, columns+"\n"+strings.Repeat("1\n", 100)).Extend(t.Context(), io.Discard, x); err != nil || shortest != 1 {
		t.Errorf("a row of one cell has %d in memory, %v", shortest, err)
	}
	most = 0
	if _, err := mustReadTable(t, columns+"\n"+strings.Repeat(columns+"\n", 100)).Extend(t.Context(), io.Discard, x); err != nil || most > 16 {
		t.Errorf("a batch has %d rows of 1024 empty cells, %v", most, err)
	}
}

// stuckWriter is a client that reads nothing until it is told to.
type stuckWriter struct{ proceed chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) {
	<-w.proceed
	return len(p), nil
}

func TestAFileIsNotReadFarAheadOfAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	table := mustReadTable(t, "a\n"+strings.Repeat(strings.Repeat("x", 1<<20-100)+"\n", 30))
	synctest.Test(t, func(t *testing.T) {
		x := lengths("n")
		fill, filled := x.Fill, atomic.Int64{}
		x.Fill = func(ctx context.Context, rows [][]string) ([]csvupload.Result, error) {
			filled.Add(int64(len(rows)))
			return fill(ctx, rows)
		}
		client, done := stuckWriter{make(chan struct{})}, make(chan error)
		go func() {
			_, err := table.Extend(t.Context(), client, x)
			done <- err
		}()
		synctest.Wait()
		if n := filled.Load(); n < 1 || n > 4 {
			t.Errorf("%d rows of 1 MiB are held for a client that reads nothing", n)
		}
		close(client.proceed)
		if err := <-done; err != nil || filled.Load() != 30 {
			t.Errorf("%d rows, %v", filled.Load(), err)
		}
	})
}

func TestNamesAndHeadsOfPartsAreBounded(t *testing.T) {
	t.Parallel()
	const part = "--x\r\nContent-Disposition: form-data; name=%q%s\r\n\r\n%s\r\n"
	file := fmt.Sprintf(part, "data", `; filename="a.csv"`, "a\n1\n")
	long := strings.Repeat("n", 40<<10)
	for _, c := range []struct {
		name, form string
		want       error
	}{
		{"a field", file + fmt.Sprintf(part, long, "", "1"), nil},
		{"two fields of long names", file + fmt.Sprintf(part, long, "", "1") + fmt.Sprintf(part, long, "", "1"), refusal.RequestMalformed},
		{"a long name with a long value", file + fmt.Sprintf(part, long, "", long), refusal.RequestMalformed},
		{"a file and a field of long names", fmt.Sprintf(part, long, "", "1") + fmt.Sprintf(part, "data", `; filename="`+long+`"`, "a\n1\n"), refusal.RequestMalformed},
		{"a head of a mebibyte", file + fmt.Sprintf(part, "b", "\r\nX-Y: "+strings.Repeat("n", 1<<20), "1"), refusal.RequestMalformed},
		{"text before the first part", strings.Repeat("\r\n", 1<<20) + file, refusal.RequestMalformed},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(c.form+"--x--\r\n"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		if upload, err := csvupload.Receive(r, t.TempDir()); !errors.Is(err, c.want) || (upload == nil) == (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
