package csvupload_test

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"lieudit/http/csvupload"
	"lieudit/schemas/refusal"
)

// FuzzAnyFile checks that a file is either refused in words, or comes back as a file of as many rows, each with one cell more.
func FuzzAnyFile(f *testing.F) {
	for _, file := range []string{"a,b\n1,2\n", "a;b\r\n\"x;\r\ny\";2", "\xff\xfea\x00\n\x001\x00", "\xef\xbb\xbfa\n\xe9\n", "a\n\"1\n2\n", "\"\"\"\n\"\n", "a\t\nb", ",\n,,\n"} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		table, err := readTable(t, string(file))
		if bad := new(csvupload.FormatError); errors.As(err, &bad) || errors.Is(err, refusal.RequestMalformed) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		answered, err := table.Extend(t.Context(), &out, lengths("lieudit_n"))
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
	})
}
