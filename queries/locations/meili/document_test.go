package meili

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/siteindex"
)

func TestEncodedSortKeysAreInTheOrderOfSortKeys(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "z", "0", " ", "é", "文", "~", "A", strings.Repeat("m", 300), strings.Repeat("m", 301)}
	text := func(most int) string {
		var b strings.Builder
		for range r.IntN(most) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	v := newWordEncoder("a")
	for range 20_000 {
		p := search.SortKey{Name: text(3), ExternalID: text(3), Referential: text(3)}
		q := search.SortKey{Name: text(3), ExternalID: text(3), Referential: text(3)}
		if r.IntN(2) == 0 {
			q.Name = p.Name
		}
		a, b := v.encodeSortKey(p), v.encodeSortKey(q)
		got := 0
		for i := range a {
			got = cmp.Or(got, strings.Compare(a[i], b[i]))
			if len(a[i]) > 479 || a[i] > v.accountMark+rangeEnd {
				t.Fatalf("%q is not what the server takes", a[i])
			}
		}
		if want := p.Compare(q); got != want && len(p.Name+p.ExternalID+p.Referential) < 1000 && len(q.Name+q.ExternalID+q.Referential) < 1000 {
			t.Fatalf("%+v and %+v: got %d, want %d", p, q, got, want)
		}
	}
}

func TestFiltersContainNothingThatAnybodyWrote(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{`x" OR compte = "b`, `'`, `"`, `\`, `\"`, "\x00", "\xff", "a\nb", "🥐", "", "_geoRadius(1,2,3)", "NOT", "]"} {
		s := indexSearch{Query: search.Query{
			Account: hostile, Text: hostile, Referential: "r" + hostile, Tags: []string{hostile, hostile + "x"}, MatchExternalIDs: true,
			Box: &search.Box{West: 170, South: -1e-7, East: -170, North: 1}, Center: &geo.Point{Lat: 89.99999}, Radius: 1e9,
		}, order: search.ByName, after: &search.SortKey{Name: hostile, ExternalID: hostile, Referential: hostile}, encoder: newWordEncoder(hostile)}
		filters := []string{s.buildFilter(searchScope{radius: 1})}
		for _, from := range s.buildSubqueries() {
			filters = append(filters, from.filter, from.text)
		}
		const harmless = `abcdefghijklmnopqrstuvwxyz0123456789 ="~.-<>()`
		for _, f := range filters {
			if rest := strings.Trim(strings.NewReplacer("AND", "", "OR", "", "TO", "").Replace(f), harmless); rest != "" {
				t.Errorf("%q: got %q", hostile, f)
			}
		}
	}
}

func TestNoWordIsSharedByTwoAccounts(t *testing.T) {
	t.Parallel()
	a, b := newWordEncoder("a"), newWordEncoder("b")
	if a.encodeWord("mende") == b.encodeWord("mende") || a.encodeExternalID("x") == b.encodeExternalID("x") || siteindex.HashText("a") == siteindex.HashText("A") {
		t.Error("two accounts share a word")
	}
	if got := a.encodeWord("mende"); got != "m"+a.accountMark+"ende" {
		t.Errorf("got %q", got)
	}
	if got := a.encodeTexts([]string{"Mende 48000"}); !strings.HasPrefix(got, "0 ") || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789 ") != "" {
		t.Errorf("got %q", got)
	}
}
