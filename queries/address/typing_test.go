package address_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/perturb"
	"lieudit/queries/address/text"
)

// typedWays are ways to write an address, as a field that completes it sees them.
func typedWays() map[string]func(number, street, postcode, city string) string {
	return map[string]func(number, street, postcode, city string) string{
		"label": func(number, street, postcode, city string) string {
			return number + " " + street + " " + postcode + " " + city
		},
		"no postcode":   func(number, street, _, city string) string { return number + " " + street + " " + city },
		"no commune":    func(number, street, postcode, _ string) string { return number + " " + street + " " + postcode },
		"commune first": func(number, street, _, city string) string { return city + " " + number + " " + street },
		"unaccented": func(number, street, postcode, city string) string {
			return text.Fold(number + " " + street + " " + postcode + " " + city)
		},
		"abbreviated": func(number, street, postcode, city string) string {
			kind, rest, _ := strings.Cut(street, " ")
			kind, _ = perturb.Abbreviate(kind)
			return number + " " + kind + " " + rest + " " + postcode + " " + city
		},
	}
}

// writeRow writes a row in one way.
func writeRow(r *ban.Row, write func(number, street, postcode, city string) string) string {
	return write(fmt.Sprint(r.Numero)+r.Rep, r.Voie, r.CodePostal, r.Commune)
}

// isTypedEnough reports whether a beginning is long enough to be completed, and has a letter.
func isTypedEnough(prefix string) bool {
	length, hasLetter := 0, false
	for _, w := range text.Words(prefix) {
		length += len(w.Text) + len(w.Tail)
		hasLetter = hasLetter || !w.Number()
	}
	return length >= 3 && hasLetter
}

// TestNoListIsBlankWhileAnAddressIsTyped types addresses of Lozère and Bondy letter by letter in each way. Something is always
// suggested, and the address itself once no more addresses than are asked for begin as typed.
func TestNoListIsBlankWhileAnAddressIsTyped(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	data := addresstest.Lozere(t)
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	e := address.New(data.Vintage, table)
	rng := rand.New(rand.NewPCG(7, 40))
	var drawn []*ban.Row
	for len(drawn) < 60 {
		if r := &data.Rows[rng.IntN(len(data.Rows))]; r.Kind == ban.HouseNumber {
			drawn = append(drawn, r)
		}
	}
	for name, write := range typedWays() {
		var all []string
		for i := range data.Rows {
			if data.Rows[i].Kind == ban.HouseNumber {
				all = append(all, text.Fold(writeRow(&data.Rows[i], write)))
			}
		}
		sort.Strings(all)
		all = slices.Compact(all)
		for _, r := range drawn {
			typeRow(t, e, name, r, writeRow(r, write), all)
		}
	}
}

// typeRow types one line. Others are the lines of all addresses, sorted.
func typeRow(t *testing.T, e *address.Engine, way string, r *ban.Row, line string, others []string) {
	t.Helper()
	runes := []rune(line)
	for keys := 1; keys <= len(runes); keys++ {
		prefix := string(runes[:keys])
		if !isTypedEnough(prefix) {
			continue
		}
		found, err := e.Complete(t.Context(), address.Query{Text: prefix, Limit: 5})
		if err != nil && !errors.Is(err, address.ErrUnparsable) {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("%s: nothing is suggested for %q of %q (%v)", way, prefix, line, err)
		}
		begun := text.Fold(prefix)
		from := sort.SearchStrings(others, begun)
		few := len(others) <= from+5 || !strings.HasPrefix(others[from+5], begun)
		isMeant := func(s address.Suggestion) bool {
			return s.ID == r.ID || text.Fold(s.Label) == text.Fold(fmt.Sprint(r.Numero)+r.Rep+" "+r.Voie+" "+r.CodePostal+" "+r.Commune)
		}
		if few && len(found) > 0 && !slices.ContainsFunc(found, isMeant) {
			t.Errorf("%s: %q is not suggested for %q, but %q", way, line, prefix, found[0].Label)
		}
	}
}
