package csvupload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"lieudit/http/csvupload"
	"lieudit/schemas/refusal"
)

// keepRows makes an extension note the rows that it is given.
func keepRows(x csvupload.Extension, into *[][]string) csvupload.Extension {
	fill, one := x.Fill, semaphore.NewWeighted(1) // so that batches come in order
	x.AcquireWorker = func(ctx context.Context) (func(), error) { return func() { one.Release(1) }, one.Acquire(ctx, 1) }
	x.Fill = func(ctx context.Context, rows [][]string) ([]csvupload.Result, error) {
		*into = append(*into, rows...)
		return fill(ctx, rows)
	}
	return x
}

func trimSeparators(cell string) string { return strings.TrimRight(cell, ",;\t|") }

// FuzzAnyFile checks that a file is either refused in words, or comes back as a file of the same rows, each with one cell more.
func FuzzAnyFile(f *testing.F) {
	for _, file := range []string{"a,b\n1,2\n", "a;b\r\n\"x;\r\ny\";2", "\xff\xfea\x00\n\x001\x00", "\xef\xbb\xbfa\n\xe9\n", "a\n\"1\n2\n", "\"\"\"\n\"\n", "a\t\nb", ",\n,,\n", "\n\r\na;b\r\n", "a,b\n1,\"2", "a\n\"1\"\"\n", "a\nlieudit_n\n", "lieudit_n,b\n1,\"x\"\"y\"\n"} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		table, err := readTable(t, string(file))
		bad, wide := new(csvupload.FormatError), new(csvupload.WidthError)
		if errors.As(err, &bad) || errors.As(err, &wide) || errors.Is(err, refusal.RequestMalformed) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		var rows, rowsAgain [][]string
		answered, err := table.Extend(t.Context(), &out, keepRows(lengths("lieudit_n"), &rows))
		if err != nil || answered != table.Rows {
			t.Fatalf("%d of %d rows, %v", answered, table.Rows, err)
		}
		if !utf8.Valid(file) { // bytes that are no text may look like a byte order mark without the quote before them
			return
		}
		again := mustReadTable(t, out.String())
		added := 1
		if table.Column("lieudit_n") >= 0 {
			added = 0
		}
		if again.Rows != table.Rows || len(again.Columns) != len(table.Columns)+added {
			t.Fatalf("%q has %d rows of %d cells and becomes %q of %d rows of %d cells", file, table.Rows, len(table.Columns), out.Bytes(), again.Rows, len(again.Columns))
		}
		if added == 0 { // its cells differ
			return
		}
		if _, err := again.Extend(t.Context(), io.Discard, keepRows(lengths("m"), &rowsAgain)); err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			missing := len(table.Columns) - len(row)
			want := append(append(slices.Clone(row), make([]string, missing)...), strconv.Itoa(len(row[0])))
			// The values of surplus cells lack the separators at their end, which the file keeps.
			if !slices.EqualFunc(rowsAgain[i], want, func(a, b string) bool { return trimSeparators(a) == trimSeparators(b) }) {
				t.Fatalf("%q becomes %q: row %d is %q, want %q", file, out.Bytes(), i+1, rowsAgain[i], want)
			}
		}
	})
}
