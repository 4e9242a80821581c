package csvgeocode

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"lieudit/http/csvfile"
)

// encode writes a text in an encoding.
func encode(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheResultHasTheEncodingOfTheFile(t *testing.T) {
	t.Parallel()
	const text = "Société;Adresse;Ville\r\nBoulangerie générale;3 rue de l'Ermitage;Mende\r\nÉpicerie;12 bis avenue Foch;Mende\r\n"
	utf16le, utf16be := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for name, c := range map[string]struct {
		codec        encoding.Encoding
		before, want string // what stands before the text; the name of the encoding
	}{
		"UTF-8":                         {encoding.Nop, "", UTF8},
		"UTF-8 with a byte order mark":  {encoding.Nop, "\ufeff", UTF8},
		"UTF-16 with a byte order mark": {utf16le, "\ufeff", "utf-16le"},
		"UTF-16 without one":            {utf16be, "", "utf-16be"},
		"Windows-1252":                  {charmap.Windows1252, "", "windows-1252"},
		"Macintosh":                     {charmap.Macintosh, "", "macintosh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, encode(t, c.codec, c.before+text))
			var found Layout
			j.Start = func(l Layout) { found = l }
			got, counts := runJob(t, j)
			decoded, err := c.codec.NewDecoder().String(got)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(decoded, "\r\n")
			for i, line := range strings.Split(c.before+text, "\r\n") {
				if !strings.HasPrefix(lines[i], line) {
					t.Errorf("line %d is %q, want it to begin with %q", i+1, lines[i], line)
				}
			}
			if found.Encoding != c.want || counts.Exact != 2 {
				t.Errorf("%s, %d exact, want %s and 2", found.Encoding, counts.Exact, c.want)
			}
		})
	}
}

func TestAnEncodingThatTheJobNamesIsNotFoundOut(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, "libell\xe9;b\n3 rue de l\x92Ermitage;Mende\n")
	j.Columns, j.Encoding = []string{"libellé"}, "windows-1252"
	if got, _ := runJob(t, j); !strings.Contains(got, "libell\xe9;b;") || !strings.Contains(got, "3 rue de l\x92Ermitage;Mende;44.5") || !strings.Contains(got, "Rue de l\x92Ermitage 48000") {
		t.Errorf("got %q", got)
	}
	j.Out, j.Encoding = j.Out+"2", UTF8
	var format *csvfile.FormatError
	if _, err := j.Run(t.Context()); !errors.As(err, &format) {
		t.Errorf("as UTF-8: %v, want a *csvfile.FormatError", err)
	}
}

func TestBytesThatAnEncodingHasNoCharacterForAreKept(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, "adresse;caf\xe9\n3 rue de l'Ermitage Mende;\x81\x9d\xe9\n")
	if got, _ := runJob(t, j); !strings.Contains(got, "Mende;\x81\x9d\xe9;44.5") {
		t.Errorf("got %q", got)
	}
}
