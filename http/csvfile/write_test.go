package csvfile_test

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/http/csvfile"
)

func TestCSVIsWrittenInItsDialect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form csvfile.Dialect
		want string
	}{
		"RFC 4180": {csvfile.RFC4180, "compte,requetes\r\nmende,-5\r\n\"a,\"\"b\"\"\",1\r\nc;d,2\r\n"},
		"Excel":    {csvfile.FrenchExcel, "\uFEFFcompte;requetes\r\nmende;-5\r\n\"a,\"\"b\"\"\";1\r\n\"c;d\";2\r\n"},
	} {
		var out strings.Builder
		w := c.form.NewSafeWriter(&out)
		for _, row := range [][2]string{{"compte", "requetes"}, {"mende", "-5"}, {`a,"b"`, "1"}, {"c;d", "2"}} {
			if err := w.WriteRow([]string{row[0]}, row[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v, want %q", name, out.String(), err, c.want)
		}
	}
}

func TestNoTextBeginsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+33": "'+33", "-k1": "'-k1", "@sum": "'@sum", "\tx": "'\tx", "a=1": "a=1", "": "", "é": "é",
	} {
		var out strings.Builder
		w := csvfile.RFC4180.NewSafeWriter(&out)
		if err := w.WriteRow([]string{text, "."}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil || out.String() != want+",.\r\n" {
			t.Errorf("%q is written as %q, %v", text, out.String(), err)
		}
	}
}

func TestARequestInFrenchGetsTheDialectOfAFrenchExcel(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]csvfile.Dialect{
		"": csvfile.RFC4180, "fr": csvfile.FrenchExcel, "fr-FR,fr;q=0.9,en;q=0.8": csvfile.FrenchExcel, "en,fr;q=0.9": csvfile.RFC4180,
		"en;q=0.5,fr-CA": csvfile.FrenchExcel, "*": csvfile.RFC4180, ";;": csvfile.RFC4180, "frp": csvfile.RFC4180,
	} {
		if got := csvfile.PreferredDialect(http.Header{"Accept-Language": {asked}}); got != want {
			t.Errorf("%q: got %+v", asked, got)
		}
	}
}
