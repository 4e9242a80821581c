package local

import (
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
