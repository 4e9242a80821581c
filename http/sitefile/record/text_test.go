package record_test

import (
	"errors"
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

func TestATextIsKnownBeforeItsRowsAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, file, name, encoding string
		format, want, refused      string
	}{
		{rule: "UTF-8", file: "nom;ville\nÉglise;Mende\n", format: record.CSV, want: "utf-8"},
		{rule: "one byte a character", file: "nom;ville\n\xc9glise;Mende\n", format: record.CSV, want: "windows-1252"},
		{rule: "a byte order mark", file: "\xff\xfen\x00\n\x00", format: record.CSV, want: "utf-16le"},
		{rule: "the encoding that is asked for", file: "nom;ville\nA;Mende\n", encoding: "macintosh", format: record.CSV, want: "macintosh"},
		{rule: "JSON", file: `{"type": "FeatureCollection"}`, name: "a.geojson", format: record.JSON, want: "utf-8"},
		{rule: "a spreadsheet", file: "PK\x03\x04", refused: "spreadsheet"},
		{rule: "gzip", file: "\x1f\x8b\x08", refused: "gzip"},
		{rule: "nothing", refused: "empty"},
	} {
		got, err := record.DetectText(strings.NewReader(c.file), int64(len(c.file)), c.name, c.encoding)
		format, isRefused := errors.AsType[*record.FormatError](err)
		switch {
		case c.refused != "" && (!isRefused || !strings.Contains(format.Reason, c.refused)):
			t.Errorf("%s: %v, want a *FormatError about %q", c.rule, err, c.refused)
		case c.refused == "" && (err != nil || got.Format != c.format || got.Encoding != c.want || (got.Codec == nil) != (c.want == "utf-8")):
			t.Errorf("%s: %+v, %v, want %s in %s", c.rule, got, err, c.format, c.want)
		}
	}
}
