package address

import (
	"fmt"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
)

func TestOneRuleResolvesTextToAnAddress(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, id := range map[string]string{
		"12 rue des lilas 48000 mende":           "48095_0010_00012",
		"12 rue des lylas 48000 mende":           "48095_0010_00012",
		"12 rue des lilas, bât. B, 48000 mende":  "48095_0010_00012",
		"rue des lilas mende":                    "48095_0010", // a street resolves to itself
		"le chapitre mende":                      "48095_b001", // so does a locality
		"mende":                                  "48095",      // and a commune
		"48000 mende cedex":                      "48095",
		"cp 48000 mende":                         "48095",
		"code postal 48000 mende":                "48095",
		"12 rue des lilas cp 48000 mende":        "48095_0010_00012",
		"48095":                                  "48095",
		"paris":                                  "75056",
		"99 rue des lilas 48000 mende":           "", // a number that is not there
		"rue des lilas":                          "", // two fit
		"3 rue de l'église 48000":                "",
		"12 rue des lilas 48000 chanac":          "", // another commune
		"12 rue des lilas 48000 villequelconque": "", // a place that is unknown
		"12 quater rue des lilas mende":          "", // a repetition index that is not there
		"bât. B, 48000 mende":                    "", // a building is not its commune
		"12 rue zzyx 48000 mende":                "",
		"?!":                                     "",
		"31000 toulouse":                         "", // no row of it
	} {
		m, ok, err := e.Resolve(t.Context(), Query{Text: line, CommuneFallback: true})
		if err != nil || ok != (id != "") || m.ID != id {
			t.Errorf("%q: %q, %v, %v, want %q", line, m.ID, ok, err, id)
		}
	}
}

func TestAMatchResolvesWhereItIsClearlyTheBestAndNothingIsUnconfirmed(t *testing.T) {
	t.Parallel()
	unconfirmed := Components{Postcode: Component{Typed: "48000", Status: Unconfirmed}}
	corrected := Components{Street: Component{Typed: "lila", Kept: "Rue des Lilas", Status: Corrected}}
	for name, c := range map[string]struct {
		match Match
		want  bool
	}{
		"far from the next":        {Match{Score: 0.70, Next: 0.60}, true},
		"just far enough":          {Match{Score: 0.85, Next: 0.80}, true},
		"too near the next":        {Match{Score: 0.80, Next: 0.7501}, false},
		"a low score":              {Match{Score: 0.6999}, false},
		"an unconfirmed component": {Match{Score: 0.9, Components: unconfirmed}, false},
		"a corrected component":    {Match{Score: 0.9, Components: corrected}, true},
		"a number that is missing": {Match{Score: 0.9, NumberTyped: true}, false},
		"a number that is found":   {Match{Score: 0.9, NumberTyped: true, NumberFound: true}, true},
		"a commune for a street":   {Match{Score: 0.9, Precision: Municipality, Components: corrected}, false},
	} {
		if got := c.match.isResolved(); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestACodeOfNoCommuneResolvesNothing(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for name, q := range map[string]Query{
		"none":            {Number: "12", Street: "rue des lilas", CityCode: "99999"},
		"beside a name":   {Number: "12", Street: "rue des lilas", Commune: "Mende", CityCode: "99999"},
		"of no addresses": {Number: "12", Street: "rue des lilas", Commune: "Mende", CityCode: "31555"},
		"of another":      {Number: "12", Street: "rue des lilas", Commune: "Mende", CityCode: "48016"},
	} {
		if m, ok, err := e.Resolve(t.Context(), q); ok || err != nil {
			t.Errorf("%s: %s, %v", name, m.ID, err)
		}
	}
}

func TestAnAddressThatAnotherFitsAsWellIsNotExact(t *testing.T) {
	t.Parallel()
	mende, balsieges := addresstest.NewArea("48000", "48095", "Mende"), addresstest.NewArea("48000", "48016", "Balsièges")
	e := engineOf(t, []ban.Row{
		addresstest.NewHouse(mende, "0010", "Rue de la Combe", 1, ""),
		addresstest.NewHouse(balsieges, "0010", "Rue de la Combe", 1, ""),
		addresstest.NewHouse(balsieges, "0010", "Rue de la Combe", 6, ""), // so that the number of the staircase may be its own
	})
	for _, line := range []string{"1 rue de la combe 48000", "ESC 6 1 rue de la combe 48000"} {
		if m := verified(t, e, Query{Text: line}); m.Verdict == Exact || m.IsResolved {
			t.Errorf("%q: %s of %q, resolved %v", line, m.Verdict, m.Label, m.IsResolved)
		}
	}
}

func TestAPostcodeOfCEDEXIsNoCodeOfAnotherCommune(t *testing.T) {
	t.Parallel()
	e := engineOf(t, []ban.Row{
		addresstest.NewHouse(addresstest.NewArea("48200", "48007", "Arzenc-d'Apcher"), "0010", "Rue Haute", 12, ""),
		addresstest.NewHouse(addresstest.NewArea("48000", "48095", "Mende"), "0010", "Rue Haute", 12, ""),
	})
	for _, c := range []struct {
		query Query
		city  string // where it resolves
	}{
		{Query{Text: "12 rue Haute 48007 Mende CEDEX"}, "Mende"},
		{Query{Text: "12 rue Haute 48007 Mende"}, "Mende"},
		{Query{Text: "48007 Mende CEDEX 2"}, "Mende"},
		{Query{Text: "48007 Mende"}, "Mende"},
		{Query{Street: "12 rue Haute", Postcode: "48007", Commune: "MENDE CEDEX"}, "Mende"},
		{Query{Street: "12 rue Haute", Postcode: "48007", Commune: "Mende"}, "Mende"},
		{Query{Text: "12 rue Haute 48007"}, "Arzenc-d'Apcher"},
		{Query{Text: "12 rue Haute 48007 Arzenc d'Apcher"}, "Arzenc-d'Apcher"},
		{Query{Street: "12 rue Haute", Postcode: "48007", Commune: "ARZENC D APCHER"}, "Arzenc-d'Apcher"},
		{Query{Text: "48007"}, "Arzenc-d'Apcher"},
	} {
		if m, ok, err := e.Resolve(t.Context(), c.query); !ok || err != nil || m.City != c.city {
			t.Errorf("%+v: %v, %s (%v), want %s", c.query, ok, m.Label, err, c.city)
		}
	}
}

func TestANameThatSharesAWordWithACommuneIsAnother(t *testing.T) {
	t.Parallel()
	e := engineOf(t, []ban.Row{addresstest.NewHouse(addresstest.NewArea("48000", "48137", "Saint-Bauzile"), "0010", "Rue du Clapio", 20, "")})
	for name, isResolved := range map[string]bool{
		"Saint-Bauzile":            true,
		"St Bauzile":               true,
		"Saint-Bausile":            true,
		"Saint-Parres-aux-Tertres": false,
		"Saint-Zzyx":               false,
	} {
		if m, ok, err := e.Resolve(t.Context(), Query{Street: "20 rue du Clapio", Postcode: "48000", Commune: name}); ok != isResolved || err != nil {
			t.Errorf("%s: %v (%s, %v), want %v", name, ok, m.Label, err, isResolved)
		}
	}
}

// Every row resolves to itself by its number, street and commune, or to nothing if another fits as well: never to another street.
func TestRealRowsResolveToThemselves(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked, right := 0, 0
	for i := 0; i < len(o.Rows); i += 101 {
		r := &o.Rows[i]
		if r.Kind == ban.Locality || r.Numero == 0 {
			continue
		}
		line := fmt.Sprintf("%d %s %s %s %s", r.Numero, r.Rep, r.Voie, r.CodePostal, r.Commune)
		m, ok, err := e.Resolve(t.Context(), Query{Text: line})
		if err != nil {
			t.Fatal(err)
		}
		asked++
		if ok && m.ID == r.ID {
			right++
		}
		if ok && (m.CityCode != r.CodeInsee || m.Number != fmt.Sprint(r.Numero)) {
			t.Errorf("%q resolves to %s %q", line, m.ID, m.Label)
		}
	}
	if right*100 < asked*95 {
		t.Errorf("%d of %d rows resolve to themselves, want 95 in 100", right, asked)
	}
	t.Logf("%d of %d rows resolve to themselves", right, asked)
}

// A street that exists elsewhere only resolves to nothing.
func TestRealStreetsOfAnotherTownResolveToNothing(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked, wrong := 0, 0
	for i := 0; i < len(o.Rows); i += 997 {
		r := &o.Rows[i]
		if r.CodeInsee != "93010" || r.Numero == 0 {
			continue
		}
		line := fmt.Sprintf("%d %s 48000 Mende", r.Numero, r.Voie)
		m, ok, err := e.Resolve(t.Context(), Query{Text: line})
		if err != nil {
			t.Fatal(err)
		}
		asked++
		if ok && m.CityCode != "48095" {
			wrong++
			t.Errorf("%q resolves to %q", line, m.Label)
		}
	}
	t.Logf("%d of %d streets resolve elsewhere", wrong, asked)
}
