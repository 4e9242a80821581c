package sitefile_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"lieudit/http/sitefile"
)

// mustRead reads a file that may have obstacles.
func mustRead(t *testing.T, file []byte, o sitefile.Options) *sitefile.Import {
	t.Helper()
	i, err := sitefile.Read(bytes.NewReader(file), int64(len(file)), "places.csv", o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAFewRowsWithoutAnIDAreLeftOutAndSaid(t *testing.T) {
	t.Parallel()
	file := func(rows, empty int) []byte {
		var out strings.Builder
		out.WriteString("code_uic;libelle;commune\n")
		for n := range rows {
			id := fmt.Sprintf("87%06d", (n*7919+13)%999_983)
			if n < empty {
				id = ""
			}
			fmt.Fprintf(&out, "%s;Gare %d;Mende\n", id, n)
		}
		return []byte(out.String())
	}
	i := readFile(t, file(200, 2), sitefile.Options{})
	if len(i.Sites) != 198 || len(i.Doubts) != 1 || i.Doubts[0].Count != 2 || !strings.Contains(i.Doubts[0].Kind, "no id") {
		t.Errorf("%d sites, %+v", len(i.Sites), i.Doubts)
	}
	if notes := strings.Join(i.Notes(), "\n"); !strings.Contains(notes, `"code_uic"`) || !strings.Contains(notes, "--id") {
		t.Errorf("the choice of the id is not said: %s", notes)
	}
	if i := mustRead(t, file(200, 3), sitefile.Options{}); len(i.Obstacles) != 1 {
		t.Errorf("many rows without an id: %v", i.Obstacles)
	}
	o := sitefile.Options{}
	o.Columns.ID = "code_uic"
	if i := readFile(t, file(200, 1), o); len(i.Obstacles) != 0 || len(i.Sites) != 199 {
		t.Errorf("with --id: %d sites, %v", len(i.Sites), i.Obstacles)
	}
}

func TestARowOfTotalsIsNoPlace(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"TOTAL;120;;", "Total;;;12,5", "TOTAUX :;120;;", "Sous-total;120;;", "Total général;120;3;"} {
		i := readFile(t, []byte("code magasin;surface;nom;caisses\nM1;60;A;3\nM2;60;B;2\n"+last+"\n"), sitefile.Options{})
		if len(i.Sites) != 2 || len(i.Obstacles) > 0 || !strings.Contains(strings.Join(i.Notes(), "\n"), "totals") {
			t.Errorf("%s: %d sites, %v, %v", last, len(i.Sites), i.Obstacles, i.Notes())
		}
	}
	for _, row := range []string{"TOTAL;120;Station;2", "Total Énergies;60;;", "T1;60;TOTAL;2"} {
		if i := readFile(t, []byte("code magasin;surface;nom;caisses\nM1;60;A;3\n"+row+"\n"), sitefile.Options{}); len(i.Sites) != 2 {
			t.Errorf("%s: %d sites, %v", row, len(i.Sites), i.Obstacles)
		}
	}
}
