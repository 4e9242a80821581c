package memory

import (
	"strconv"
	"strings"
	"testing"

	"lieudit/schemas/table"
)

func FuzzCompress(f *testing.F) {
	f.Add("", "")
	f.Add("", "abcdefgh")
	f.Add(`{"content":{"nom":"Un"}}`, `{"content":{"nom":"Deux"}}`)
	f.Add(strings.Repeat("a", 300), strings.Repeat("a", 299)+"b"+strings.Repeat("a", 7))
	f.Fuzz(func(t *testing.T, dictionary, s string) {
		dictionary = dictionary[:min(len(dictionary), maxDictionary)]
		if got := decompress(dictionary, string(newCompressor(dictionary).compress(s))); got != s {
			t.Errorf("with %q: got %q, want %q", dictionary, got, s)
		}
	})
}

func TestADictionaryIsASmallPartOfTheContents(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 16, 100, 5000} {
		rows := make([]table.Site, n)
		for i := range rows {
			rows[i].Content = strings.Repeat("x", 500)
		}
		if got := len(buildDictionary(rows)); got > maxDictionary || got > n*500/dictionaryShare || n >= 100 && got < 1000 {
			t.Errorf("got a dictionary of %d bytes for %d sites", got, n)
		}
	}
}

func TestAnIndexThatGrewGetsANewDictionary(t *testing.T) {
	t.Parallel()
	row := func(i int) table.Site {
		return table.Site{ExternalID: strconv.Itoa(i), Content: `{"content":{"site_web":"` + strings.Repeat("Magasin ", 30) + `"}}`}
	}
	x, all := new(index), func(bool) bool { return true }
	for i := range 400 {
		var err error
		if x, err = x.withChanges([]table.Site{row(i)}, all); err != nil {
			t.Fatal(err)
		}
	}
	if !x.needsNewDictionary() || len(x.chunks) > maxChunks || x.totalBytes > 2*x.liveBytes+1<<12 {
		t.Errorf("%d bytes in %d texts, %d of them in use; it is outgrown: %v", x.totalBytes, len(x.chunks), x.liveBytes, x.needsNewDictionary())
	}
	var rows []table.Site
	for i := range 400 {
		rows = append(rows, row(i))
	}
	again, err := new(index).withChanges(rows, all)
	if err != nil || again.needsNewDictionary() || again.liveBytes*3 > x.liveBytes {
		t.Errorf("got %d bytes after %d; it is outgrown: %v, %v", again.liveBytes, x.liveBytes, again.needsNewDictionary(), err)
	}
}
