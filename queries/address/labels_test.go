package address

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"lieudit/eventstore/leveltest"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/address/text"
)

// labelStep is how many rows of Lozère and Bondy lie from one whose label is read to the next. Those with a repetition index of more
// than one word are all read.
const labelStep = 7

// Every label of ours is exact when it is typed, if no other address has the same words.
func TestTheLabelOfEveryRowIsExact(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	rows := addresstest.Lozere(t).Rows
	official := len(rows)
	rows = append(rows[:official:official], readRows(t, "questions/real-rows.csv.gz")...)
	e := engineOf(t, rows)
	labels, counts := make([]string, len(rows)), map[string]int{}
	for i := range rows {
		if r, ok := e.View(rows[i].ID); ok {
			labels[i] = r.Label
			counts[bareLabel(r.Label)]++
		}
	}
	asked, wrong := 0, 0
	for i, label := range labels {
		if label == "" || isReadOtherwise(rows[i].Voie) || counts[bareLabel(label)] != 1 || i < official && i%labelStep != 0 && len(rows[i].Rep) < 4 {
			continue
		}
		asked++
		found, err := e.Verify(t.Context(), Query{Text: label, Limit: 2})
		if err != nil || len(found) == 0 || found[0].ID != rows[i].ID || found[0].Verdict != Exact || !found[0].IsResolved {
			if wrong++; wrong <= 20 {
				t.Errorf("%q (%s): %v", label, rows[i].ID, describe(found))
			}
		}
	}
	if asked < 10_000 {
		t.Errorf("%d labels were asked, want 10,000", asked)
	}
	t.Logf("%d of %d labels are not exact", wrong, asked)
}

// isReadOtherwise reports whether a question reads a name in another way than the base, which knows no slips: it drops the sign of a
// number, and parts words at a capital (RueTurgot).
func isReadOtherwise(name string) bool {
	hasInnerCapital, before := false, ' '
	for _, r := range name {
		hasInnerCapital = hasInnerCapital || unicode.IsLower(before) && unicode.IsUpper(r)
		before = r
	}
	return hasInnerCapital || strings.Contains(name, "n°")
}

// describe is what was found, in short.
func describe(found []Match) (all []string) {
	for _, m := range found {
		all = append(all, strings.Join([]string{m.ID, m.Label, string(m.Verdict), string(m.Reason)}, "|"))
	}
	return all
}

// bareLabel are the words of a label without links, which identify it.
func bareLabel(label string) string {
	var words []string
	for _, t := range text.Terms(label) {
		if text.ClassOf(t.Text) != text.StopWord {
			words = append(words, t.Text+t.Tail)
		}
	}
	return strings.Join(words, " ")
}

// readRows reads rows of the BAN from a file of the official data.
func readRows(t *testing.T, name string) (rows []ban.Row) {
	t.Helper()
	file, err := os.Open(filepath.Join(officialtest.Folder(), filepath.FromSlash(name)))
	if err != nil {
		officialtest.SkipOrFail(t, err)
	}
	defer file.Close()
	for row, err := range ban.Read(file, name, &ban.Report{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
