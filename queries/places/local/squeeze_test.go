package local

import (
	"strconv"
	"strings"
	"testing"

	"lieudit/schemas/table"
)

func FuzzSqueeze(f *testing.F) {
	f.Add("", "")
	f.Add("", "abcdefgh")
	f.Add(`{"content":{"nom":"Un"}}`, `{"content":{"nom":"Deux"}}`)
	f.Add(strings.Repeat("a", 300), strings.Repeat("a", 299)+"b"+strings.Repeat("a", 7))
	f.Fuzz(func(t *testing.T, primer, s string) {
		primer = primer[:min(len(primer), primerMost)]
		if got := stretch(primer, string(newSqueezer(primer).squeeze(s))); got != s {
			t.Errorf("with %q: got %q, want %q", primer, got, s)
		}
	})
}

func TestAPrimerIsASmallPartOfWhatItIsFor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 16, 100, 5000} {
		rows := make([]table.Site, n)
		for i := range rows {
			rows[i].Content = strings.Repeat("x", 500)
		}
		if got := len(primerOf(rows)); got > primerMost || got > n*500/primerShare || n >= 100 && got < 1000 {
			t.Errorf("got a primer of %d bytes for %d sites", got, n)
		}
	}
}

func TestAnIndexThatGrewIsReadAnew(t *testing.T) {
	t.Parallel()
	row := func(i int) table.Site {
		return table.Site{ExternalID: strconv.Itoa(i), Content: `{"content":{"site_web":"` + strings.Repeat("Magasin ", 30) + `"}}`}
	}
	x, all := new(index), func(bool) bool { return true }
	for i := range 400 {
		var err error
		if x, err = x.changed([]table.Site{row(i)}, all); err != nil {
			t.Fatal(err)
		}
	}
	if !x.outgrown() || len(x.texts) > maxTexts || x.kept > 2*x.live+1<<12 {
		t.Errorf("%d bytes in %d texts, %d of them in use; it is outgrown: %v", x.kept, len(x.texts), x.live, x.outgrown())
	}
	var rows []table.Site
	for i := range 400 {
		rows = append(rows, row(i))
	}
	again, err := new(index).changed(rows, all)
	if err != nil || again.outgrown() || again.live*3 > x.live {
		t.Errorf("got %d bytes after %d; it is outgrown: %v, %v", again.live, x.live, again.outgrown(), err)
	}
}
