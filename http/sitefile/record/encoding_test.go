package record_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"lieudit/http/sitefile/record"
)

const frenchFile = "nom;ville\nCafé de la Forêt;Sainte-Énimie\nGarçon d’œuvre;Prés-à-Vaches n° 5\n"

func encode(t testing.TB, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEncodingsAreFoundByAllBytesOfAFile(t *testing.T) {
	t.Parallel()
	want := []string{"2 Café de la Forêt|Sainte-Énimie", "3 Garçon d’œuvre|Prés-à-Vaches n° 5"}
	plain := strings.ReplaceAll(frenchFile, "’", "'")
	wantPlain := []string{want[0], strings.ReplaceAll(want[1], "’", "'")}
	for _, c := range []struct {
		rule, file, encoding string
		rows                 []string
	}{
		{"UTF-8", frenchFile, "utf-8", want},
		{"UTF-8 with a mark", "\ufeff" + frenchFile, "utf-8", want},
		{"ASCII", "nom;ville\nA;B\n", "utf-8", []string{"2 A|B"}},
		{"UTF-16 little endian with a mark", encode(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), frenchFile), "utf-16le", want},
		{"UTF-16 big endian with a mark", encode(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), frenchFile), "utf-16be", want},
		{"UTF-16 little endian", encode(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), frenchFile), "utf-16le", want},
		{"UTF-16 big endian", encode(t, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), frenchFile), "utf-16be", want},
		{"Windows-1252", encode(t, charmap.Windows1252, frenchFile), "windows-1252", want},
		{"ISO-8859-15", encode(t, charmap.ISO8859_15, plain), "iso-8859-15", wantPlain},
		{"Windows-1252, of which little is left", "nom;ville\n\x93A\x94 \x96 B;C\n", "windows-1252", []string{"2 “A” – B|C"}},
		{"Macintosh", encode(t, charmap.Macintosh, frenchFile), "macintosh", want},
		{"DOS", encode(t, charmap.CodePage850, strings.ReplaceAll(plain, "œ", "oe")), "ibm850", []string{want[0], strings.ReplaceAll(wantPlain[1], "œ", "oe")}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			f, rows, err := readText(t, c.file, "", record.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Info().Encoding; got != c.encoding || strings.Join(rows, "\n") != strings.Join(c.rows, "\n") {
				t.Errorf("got %s %q, want %s %q", got, rows, c.encoding, c.rows)
			}
		})
	}
}

func TestTheEncodingThatIsAskedForIsUsed(t *testing.T) {
	t.Parallel()
	runFileCases(t, []fileCase{{rule: "macintosh", file: "nom;ville\n\x8e;b\n", options: record.Options{Encoding: "Macintosh"}, rows: []string{"2 é|b"}}})
}

func TestAFewBrokenBytesLeaveAFileUTF8(t *testing.T) {
	t.Parallel()
	file := "nom;ville\n" + strings.Repeat("Café;Énimie\n", 50) + "Caf\xe9;cut \xc3\n" + "cut \xe2\x80;x\n"
	f, rows, err := readText(t, file, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows[49:], "\n"); got != "51 Café|Énimie\n52 Café|cut \ufffd\n53 cut \ufffd|x" {
		t.Errorf("got %s", got)
	}
	if got := f.Info(); got.Encoding != "utf-8" || got.BrokenCharacters != (record.Count{Number: 4, Line: 52}) {
		t.Errorf("got %+v", got)
	}
}

func TestUTF8ReadAsWindows1252IsUndoneWhereTheWholeFileIsSo(t *testing.T) {
	t.Parallel()
	twice, err := charmap.Windows1252.NewDecoder().String(strings.Repeat(frenchFile, 3))
	if err != nil {
		t.Fatal(err)
	}
	f, rows, err := readText(t, twice, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Info(); rows[1] != "3 Garçon d’œuvre|Prés-à-Vaches n° 5" || !got.WrongDecodingUndone || got.WrongDecoding.Line != 2 {
		t.Errorf("got %q, %+v", rows, got)
	}
	f, rows, err = readText(t, twice+"é;é\n", "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Info(); rows[0] != "2 CafÃ© de la ForÃªt|Sainte-Ã‰nimie" || got.WrongDecodingUndone || got.WrongDecoding.Number == 0 {
		t.Errorf("got %q, %+v", rows, got)
	}
}
