package keystrokes

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/schemas/geo"
)

func TestOneAsksFromTheThirdLetterOrDigitOn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"16 ru":    {"16 r", "16 ru"},
		"1 é F":    {"1 é F"},
		"4800 M":   {"4800 M"},
		"rue":      {"rue"},
		"12345":    nil,
		"l'Église": {"l'Ég", "l'Égl", "l'Égli", "l'Églis", "l'Église"},
	} {
		var got []string
		for keys, prefix := range prefixes(line) {
			if got = append(got, prefix); keys != len([]rune(prefix)) {
				t.Errorf("%q takes %d keys", prefix, keys)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestAnAddressIsWrittenInSevenWays(t *testing.T) {
	t.Parallel()
	a := typedAddress{
		record: address.Record{ID: "48095_0010_00012_bis", Number: "12", Rep: "bis", Street: "Rue de l'Église", Postcode: "48000", City: "Mende"},
		street: address.Record{ID: "48095_0010", Street: "Rue de l'Église", Postcode: "48000", City: "Mende"},
	}
	got := map[string]string{}
	for _, w := range ways() {
		if l, ok := w.line(&a); ok {
			got[w.name] = l.text + " = " + l.id
		}
	}
	want := map[string]string{
		"label":         "12bis Rue de l'Église 48000 Mende = 48095_0010_00012_bis",
		"no postcode":   "12bis Rue de l'Église Mende = 48095_0010_00012_bis",
		"no commune":    "12bis Rue de l'Église 48000 = 48095_0010_00012_bis",
		"commune first": "Mende 12bis Rue de l'Église = 48095_0010_00012_bis",
		"unaccented":    "12bis rue de l eglise 48000 mende = 48095_0010_00012_bis",
		"abbreviated":   "12bis r de l'Église 48000 Mende = 48095_0010_00012_bis",
		"street":        "Rue de l'Église Mende = 48095_0010",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	a.record.Street = "Le Bourg"
	if l, ok := ways()[5].line(&a); ok {
		t.Errorf("nothing in it is abbreviated: %q", l.text)
	}
}

// lists returns a completer with the given suggestions for each text, and ErrUnparsable for any other.
func lists(of map[string][]string) completer {
	return func(_ context.Context, text string, _ *geo.Point) (all []suggestion, err error) {
		labels, ok := of[text]
		if !ok {
			return nil, address.ErrUnparsable
		}
		for _, l := range labels {
			all = append(all, suggestion{label: l})
		}
		return all, nil
	}
}

func TestKeysBlanksAndLossesAreCounted(t *testing.T) {
	t.Parallel()
	g := geocoder{"x", lists(map[string][]string{
		"1 Le":     {"2 Le Bac", "3 Le Bac"},
		"1 Le ":    {},
		"1 Le B":   {"2 Le Bac", "1 le bac"}, // the same label in another case
		"1 Le Ba":  {"1 Le Bas"},
		"1 Le Bac": {"1 Le Bac"},
	})}
	file := filepath.Join(t.TempDir(), "log.csv")
	l, err := newLog(file)
	if err != nil {
		t.Fatal(err)
	}
	r := run{log: l}
	sums := newTally()
	meant := line{text: "1 Le Bac X", id: "1", label: "1 Le Bac"}
	for _, m := range []line{meant, {text: "1 Le ", id: "4", label: "4 Le Bac"}} {
		if err := r.typeLine(t.Context(), g, way{name: "w"}, m, sums); err != nil {
			t.Fatal(err)
		}
	}
	got := sums.figure("w", "none", "x")
	want := map[string]float64{
		"addresses": 2, "blank": 4, "blank %": 44.44, "unparsable": 2, "lost": 1, "never": 1,
		"median to 5": 6, "keys to 1st": 6.5, "median to 1st": 8,
	}
	if !reflect.DeepEqual(got.Extra, want) || got.Value != 5.5 || got.Samples != 9 {
		t.Errorf("got %v of %d, %v, want %v", got.Value, got.Samples, got.Extra, want)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if want := `geocoder;written;bias;what;q;expected id;label;first
x;w;none;blank;1 Le ;1;1 Le Bac;
x;w;none;lost;1 Le Ba;1;1 Le Bac;1 Le Bas
x;w;none;unparsable;1 Le Bac ;1;1 Le Bac;
x;w;none;unparsable;1 Le Bac X;1;1 Le Bac;
x;w;none;blank;1 Le ;4;4 Le Bac;
`; err != nil || string(written) != want {
		t.Errorf("got %s (%v), want %s", written, err, want)
	}
}

func TestTheSameRowsAreTypedEachTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "rows.csv")
	var rows strings.Builder
	rows.WriteString("id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n")
	for _, id := range []string{"48095_0010_00012;12;;Rue des Lilas", "48095_0010_00014;14;;Rue des Lilas", "48095_0020_00003;3;ter;Avenue Foch"} {
		rows.WriteString(id + ";48000;48095;Mende;3.5;44.5\n")
	}
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Addresses: 2}
	o.Files, o.Invented, o.Vintage = []string{file}, 300, filepath.Join(dir, "kept")
	type counted struct {
		labels []measure.Label
		keys   float64
		lists  int
	}
	var turns [2][]counted
	for i := range turns {
		err := Run(t.Context(), dir, o, measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
			turns[i] = append(turns[i], counted{f.Labels, f.Value, f.Samples})
			if f.Label("written") == "label" && (f.Extra["never"] != 0 || f.Extra["addresses"] != 2) {
				t.Errorf("%v: %v", f.Labels, f.Extra)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(turns[0]) != 2*len(ways()) || !reflect.DeepEqual(turns[0], turns[1]) {
		t.Errorf("%v and %v", turns[0], turns[1])
	}
}
