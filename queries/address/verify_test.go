package address

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestWhatIsWrittenOtherwiseIsExact(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, id := range map[string]string{
		"12 bis rue des lilas 48000 mende":                          "48095_0010_00012_bis",
		"12B R. DES LILAS, 48000 MENDE":                             "48095_0010_00012_bis",
		"12 b rue des Lilas Mende":                                  "48095_0010_00012_bis",
		"12 Rue des Lilas 48000 Mende":                              "48095_0010_00012",
		"Bât. B 3e étage 12 rue des lilas BP 12 48000 Mende FRANCE": "48095_0010_00012",
		"N° 12, rue des lilas, Mende":                               "48095_0010_00012",
		"Mende 12 rue des lilas":                                    "48095_0010_00012",
		"3ter av gal leclerc 48000 mende":                           "48095_0020_00003_ter",
		"3t av du Gal Leclerc Mende":                                "48095_0020_00003_ter",
		"8 rue du 8 mai 1945 mende":                                 "48095_0030_00008",
		"10 rue jenner paris 13":                                    "75113_0010_00010",
		"10 rue Jenner 75013 Paris":                                 "75113_0010_00010",
		"10 rue Jenner Paris 13e Arrondissement":                    "75113_0010_00010",
		"2 place du foirail, le monastier":                          "48039_0060_00002",
		"2 place du foirail, les hermaux, 48230 chanac":             "48039_0060_00002",
		"7 route de mende chanac":                                   "48039_0050_00007",
		"lieu-dit Le Chapitre 48000 Mende":                          "48095_b001",
		"12 rue des lilas 48095":                                    "48095_0010_00012",
	} {
		if m := verified(t, e, Query{Text: line}); m.ID != id || m.Verdict != Exact {
			t.Errorf("%q: %s, %s (%.2f), want %s, %s", line, m.Verdict, m.ID, m.Score, Exact, id)
		}
	}
}

func TestWhatIsNotConfirmedIsProbable(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, id := range map[string]string{
		"12 rue des lilas 48230 mende":          "48095_0010_00012", // another postcode
		"12 rue des lylas 48000 mende":          "48095_0010_00012", // a letter
		"12 rue des lilas 48000 mende plage":    "48095_0010_00012", // a word too much
		"12 lilas 48000 mende":                  "48095_0010_00012", // a word too few
		"12-14 rue des lilas 48000 mende":       "48095_0010_00012", // two numbers
		"13 rue des lilas 48000 mende":          "48095_0010",       // no such number
		"12 quater rue des lilas 48000 mende":   "48095_0010_00012", // no such repetition index
		"12 rue des lilas 48900 mende cedex":    "48095_0010_00012", // no postcode of the base
		"3 rue de l'église 48000":               "48095_0040_00003", // two communes have one
		"2 place du foirail 48230 la canourgue": "48039_0060_00002", // another commune
	} {
		if m := verified(t, e, Query{Text: line}); m.ID != id || m.Verdict != Probable {
			t.Errorf("%q: %s, %s (%.2f), want %s, %s", line, m.Verdict, m.ID, m.Score, Probable, id)
		}
	}
}

func TestAMissingNumberIsSaidWithItsNeighbours(t *testing.T) {
	t.Parallel()
	m := verified(t, engineOf(t, hamlet()), Query{Text: "15 rue des lilas 48000 mende"})
	want := []string{"12", "12bis", "14", "20"}
	if m.Precision != StreetType || m.NumberFound || !m.NumberTyped || !slices.Equal(m.Nearby, want) {
		t.Errorf("%s, found %v, near %v, want %s, near %v", m.Precision, m.NumberFound, m.Nearby, StreetType, want)
	}
	if c := m.Components.Number; c.Status != Unconfirmed || c.Typed != "15" {
		t.Errorf("the number is %+v, want it unconfirmed", c)
	}
}

func TestEachComponentHasItsStatus(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string][5]Status{
		"12 bis rue des lilas 48000 mende": {Confirmed, Confirmed, Confirmed, Confirmed, Confirmed},
		"12 rue des lilas mende":           {Confirmed, Absent, Confirmed, Added, Confirmed},
		"12 rue des lylas 48230 mend":      {Confirmed, Absent, Corrected, Corrected, Corrected},
		"rue des lilas 48000":              {Absent, Absent, Confirmed, Confirmed, Added},
		"99 z rue des lilas mende":         {Unconfirmed, Unconfirmed, Confirmed, Added, Confirmed},
	} {
		c := verified(t, e, Query{Text: line}).Components
		got := [5]Status{c.Number.Status, c.Rep.Status, c.Street.Status, c.Postcode.Status, c.City.Status}
		if got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestPartsAreReadAsALineIs(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	parts := Query{Number: "12 bis", Street: "rue des Lilas", Complement: "Résidence des Pins, bât. 3", Postcode: "48000", Commune: "Mende"}
	coded := Query{Number: "12", Street: "rue des lilas", CityCode: "48095"}
	city := Query{Number: "10", Street: "rue Jenner", CityCode: "75056"}
	for id, q := range map[string]Query{"48095_0010_00012_bis": parts, "48095_0010_00012": coded, "75113_0010_00010": city} {
		if m := verified(t, e, q); m.ID != id || m.Verdict != Exact {
			t.Errorf("%+v: %s %s, want %s %s", q, m.Verdict, m.ID, Exact, id)
		}
	}
	other := Query{Number: "12", Street: "rue des lilas", Commune: "Mende", CityCode: "48039"}
	if m := verified(t, e, other); m.Verdict == Exact {
		t.Errorf("the code of another commune: %s, %s", m.Verdict, m.ID)
	}
}

func TestWhatIsNoAddressIsUnparsable(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, line := range []string{"", "?!", "🙂🙂", "zzzz qqqq", "\xff\xfe"} {
		if found, err := e.Verify(t.Context(), Query{Text: line, Limit: 5}); !errors.Is(err, ErrUnparsable) {
			t.Errorf("%q: %v, %v, want %v", line, found, err, ErrUnparsable)
		}
	}
	if found, err := e.Verify(t.Context(), Query{Text: "4 rue Zzzyx 99999 Qqqqq", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("what can be read and is not there: %v, %v, want nothing", found, err)
	}
}

func TestTheScoreOfTheNextTellsATie(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	if m := verified(t, e, Query{Text: "3 rue de l'église 48000"}); m.Next != m.Score {
		t.Errorf("next is %v, want %v", m.Next, m.Score)
	}
	if m := verified(t, e, Query{Text: "12 rue des lilas 48000 Mende"}); m.Next >= m.Score {
		t.Errorf("next is %v, want less than %v", m.Next, m.Score)
	}
}

func TestAnotherStreetOfTheSameKindIsNoAnswer(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	if found, err := e.Verify(t.Context(), Query{Text: "12 rue zzzyx 48000 Mende", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v, want nothing", found, err)
	}
}

func TestAnExactMatchConfirmsAllThatWasTyped(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, line := range []string{"12 rue lilas 48000 mende", "48095", "lieu-dit Le Chapitre 48000 Mende", "2 place du foirail, le monastier"} {
		m := verified(t, e, Query{Text: line})
		c := m.Components
		for _, part := range []Component{c.Number, c.Rep, c.Street, c.Postcode, c.City} {
			if m.Verdict == Exact && (part.Status == Corrected || part.Status == Unconfirmed) {
				t.Errorf("%q is exact, and %q is %s", line, part.Typed, part.Status)
			}
		}
	}
}

// A number that its word gives to a flat changes no verdict, whatever numbers the street has; one that may be the house's does.
func TestTheNumberOfAFlatChangesNoVerdict(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet()) // Rue des Lilas has 12, 14 and 20
	for _, line := range []string{"12 rue des lilas %s 48000 mende", "%s 12 rue des lilas 48000 mende", "12 rue des lilas, %s, 48000 mende"} {
		for _, flat := range []string{"appt", "appartement", "bât", "porte", "esc", "lot", "étage", "box", "logement n°", "chambre"} {
			for _, number := range []string{"3", "14", "20", "12"} {
				text := flat + " " + number
				m := verified(t, e, Query{Text: fmt.Sprintf(line, text)})
				if m.ID != "48095_0010_00012" || m.Verdict != Exact || len(m.Components.Unknown) > 0 {
					t.Errorf("%q: %s, %s, unknown %q", fmt.Sprintf(line, text), m.Verdict, m.ID, m.Components.Unknown)
				}
			}
		}
	}
}
