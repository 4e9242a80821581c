package grid_test

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/http/grid"
)

func TestSheetsAreWrittenInTheirForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form grid.Form
		want string
	}{
		"RFC 4180": {grid.Standard, "compte,requetes\r\nmende,-5\r\n\"a,\"\"b\"\"\",1\r\nc;d,2\r\n"},
		"Excel":    {grid.Excel, "\uFEFFcompte;requetes\r\nmende;-5\r\n\"a,\"\"b\"\"\";1\r\n\"c;d\";2\r\n"},
	} {
		var out strings.Builder
		w := c.form.New(&out)
		for _, row := range [][2]string{{"compte", "requetes"}, {"mende", "-5"}, {`a,"b"`, "1"}, {"c;d", "2"}} {
			if err := w.Row([]string{row[0]}, row[1]); err != nil {
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
		w := grid.Standard.New(&out)
		if err := w.Row([]string{text, "."}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil || out.String() != want+",.\r\n" {
			t.Errorf("%q is written as %q, %v", text, out.String(), err)
		}
	}
}

func TestWhoPrefersFrenchGetsWhatItsExcelOpens(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]grid.Form{
		"": grid.Standard, "fr": grid.Excel, "fr-FR,fr;q=0.9,en;q=0.8": grid.Excel, "en,fr;q=0.9": grid.Standard,
		"en;q=0.5,fr-CA": grid.Excel, "*": grid.Standard, ";;": grid.Standard, "frp": grid.Standard,
	} {
		if got := grid.Preferred(http.Header{"Accept-Language": {asked}}); got != want {
			t.Errorf("%q: got %+v", asked, got)
		}
	}
}
