package csvgeocode

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
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
		"UTF-8 with a byte order mark":  {encoding.Nop, bom, UTF8},
		"UTF-16 with a byte order mark": {utf16le, bom, "utf-16le"},
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
	var format *FormatError
	if _, err := j.Run(t.Context()); !errors.As(err, &format) {
		t.Errorf("as UTF-8: %v, want a *FormatError", err)
	}
}

func TestBytesThatAnEncodingHasNoCharacterForAreKept(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, "adresse;caf\xe9\n3 rue de l'Ermitage Mende;\x81\x9d\xe9\n")
	if got, _ := runJob(t, j); !strings.Contains(got, "Mende;\x81\x9d\xe9;44.5") {
		t.Errorf("got %q", got)
	}
}

func TestCharactersThatAnEncodingLacksGetTheirNearestForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		single     *charmap.Charmap
		text, want string
	}{
		{charmap.Windows1252, "l’Œuf d’Éléonore", "l\x92\x8cuf d\x92\xc9l\xe9onore"},
		{charmap.CodePage850, "l’Œuf", "l'OEuf"},
		{charmap.Windows1252, "Ker Gwenoĺ – ṽ", "Ker Gwenol \x96 v"},
		{charmap.ISO8859_15, "“a”…", `"a"...`},
		{charmap.Windows1252, "日", "?"},
	} {
		if got := (charset{single: c.single}).encodeField(c.text); got != c.want {
			t.Errorf("%q in %s: %q, want %q", c.text, c.single, got, c.want)
		}
	}
	h := header{charset: charset{single: charmap.ISO8859_15}, names: []string{"a"}, separator: ';', lineEnd: "\n"}
	if got, want := h.formatRow(row{raw: "x", fields: []string{"x"}}, []string{"“a”"}), "x;\"\"\"a\"\"\"\n"; got != want {
		t.Errorf("a sign that becomes a quote: %q, want %q", got, want)
	}
}

// FuzzTextIsWrittenBackAsItWasRead holds every charset to its promise that the bytes of a file come back.
func FuzzTextIsWrittenBackAsItWasRead(f *testing.F) {
	f.Add([]byte("adresse;ville\r3 rue\rb\n"), "macintosh")
	f.Add([]byte("a;b\r\n\xe9;\x81\r\n"), "")
	f.Add([]byte("\xff\xfea\x00\n\x00"), "utf-16le")
	f.Fuzz(func(t *testing.T, file []byte, name string) {
		path := t.TempDir() + "/in.csv"
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := detectCharset(path, name)
		if err != nil || c.wide != nil && !bytes.Equal(file, roundTrip(t, c.wide, file)) {
			return // no text, or UTF-16 that is broken
		}
		text, err := io.ReadAll(c.decodeText(bytes.NewReader(file)))
		if err != nil {
			t.Fatal(err)
		}
		c.decodeField(string(text))
		if got, err := c.encodeText(text); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%q in %s came back as %q, %v", file, c.name, got, err)
		}
	})
}

// roundTrip is a text of an encoding, decoded and written again.
func roundTrip(t *testing.T, e encoding.Encoding, text []byte) []byte {
	t.Helper()
	decoded, err := e.NewDecoder().Bytes(text)
	if err != nil {
		return nil
	}
	again, err := e.NewEncoder().Bytes(decoded)
	if err != nil {
		return nil
	}
	return again
}
