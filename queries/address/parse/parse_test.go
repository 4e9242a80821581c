package parse

import (
	"fmt"
	"strings"
	"testing"
)

// parts writes what a line was read as: the numbers of a street, what complements own, the postcode.
func parts(q *Question, street string) string {
	n := q.HouseNumber(named(q, street), named(q, street))
	var numbers []string
	for _, c := range n.Choices[:n.Count] {
		numbers = append(numbers, fmt.Sprint(c.Number)+c.Rep)
	}
	out := strings.Join(numbers, "+")
	if n.IsAmbiguous {
		out += "?"
	}
	if complement := q.Typed(q.Complement | q.Postal); complement != "" {
		out += " / " + complement
	}
	return out
}

// named are the terms of a street in a line: those of its words that come last.
func named(q *Question, street string) (out Mask) {
	words := strings.Fields(street)
	for i := 0; i+len(words) <= len(q.Terms); i++ {
		isHere := true
		for k, w := range words {
			isHere = isHere && q.Terms[i+k].Typed == w
		}
		if isHere {
			out = Span(i, i+len(words))
		}
	}
	return out
}

func TestTheHouseNumberIsTheOneNextToTheStreet(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"14 rue des lilas":                         "14",
		"Bât. B6 14 rue des lilas":                 "14 / bat b 6",
		"cellule 6 5 rue des lilas":                "5 / cellule 6",
		"LOT 3 24 RUE DES LILAS":                   "24 / lot 3",
		"(C2) 30 rue des lilas":                    "30 / c 2",
		"30(C2) RUE DES LILAS":                     "30 / c 2",
		"24 BAT A1 RUE DES LILAS":                  "24 / bat a 1",
		"24ESC A1 RUE DES LILAS":                   "24 / esc a 1",
		"24 ETG 3 RUE DES LILAS":                   "24 / etg 3",
		"99D3 RUE DES LILAS":                       "99 / d 3",
		"12C7 RUE DES LILAS 48200 Rimeize":         "12 / c 7",
		"10C7 RUE DES LILAS":                       "10 / c 7",
		"AEROPARC 2 3 RUE DES LILAS":               "3",
		"POINT COOP N°17 5 RUE DES LILAS":          "5",
		"3e étage gauche 24 rue des lilas":         "24 / 3 etage gauche",
		"24 rue des lilas 2e étage porte droite":   "24 / 2 etage porte droite",
		"rez-de-chaussée 24 rue des lilas":         "24 / rez de chaussee",
		"24 rue des lilas BP 12 48000 Mende CEDEX": "24 / bp 12 cedex",
		"24 rue des lilas apt. B12 esc 2":          "24 / apt b 12 esc 2",
		"lot 3 rue des lilas":                      "3? / lot 3",
		"rue des lilas 24":                         "24",
		"Mende 24 rue des lilas 3 rue de la paix":  "24",
		"04 66 65 00 00 24 rue des lilas":          "24",
		"F-48000 Mende 24 rue des lilas":           "24",
		"24 rue des lilas 48000 Mende":             "24",
		"24 rue des lilas 48 000 Mende":            "24",
		"rue des lilas 48000 Mende":                "",
		"RueTurgot 24 rue des lilas":               "24",
		"２４ rue des lilas":                         "24",
		"douze rue des lilas":                      "12",
		"vingt-quatre bis rue des lilas":           "24bis",
		"quatre vingt douze rue des lilas":         "92",
		"24 rue des lilas paris 14e arrdt":         "24",
		"24 rue des lilas (Lozère)":                "24",
		"24\x00rue des lilas":                      "24",
		"24 rue des lilas n° 3":                    "24",
		"n° 24 rue des lilas":                      "24",
		"rue des lilas n 24":                       "24",
		"rue des lilas N 24 Mende":                 "24",
		"Mende rue des lilas n° 24":                "24",
		"24 rue des lilas n°":                      "24",
		"24 rue des lilas route n 7":               "24",
		"1115 rue des lilas":                       "1115",
		"Balsièges, 1115 rue des lilas":            "1115",
		"12e étage rue des lilas":                  " / 12 etage",
		"12 étage rue des lilas":                   " / 12 etage",
		"12 ème étage 24 rue des lilas":            "24 / 12 eme etage",
		"24 rue des lilas, 12e étage":              "24 / 12 etage",
		"24 rue des lilas 2e gauche":               "24 / 2 gauche",
		"24 rue des lilas étage 2":                 "24 / etage 2",
		"Bât. B 3 étage 24 rue des lilas":          "24 / bat b 3 etage",
		"42a bis rue des lilas":                    "42a bis",
		"42 a bis rue des lilas":                   "42a bis",
		"42 d bis rue des lilas":                   "42d bis",
	} {
		if got := parts(Line(line, false), "rue des lilas"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestAListOfNumbersKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"13/15 rue des lilas":    "13+15",
		"4 à 6 rue des lilas":    "4+6",
		"12 et 14 rue des lilas": "12+14",
		"106 108 rue des lilas":  "106+108",
		"12-14bis rue des lilas": "12+14bis",
		"1&2 rue des lilas":      "1+2",
		"2_4 rue des lilas":      "2+4",
		"24-26-28 rue des lilas": "24+26+28",
		"3-avr RUE DES LILAS":    "3+4",
		"7-août RUE DES LILAS":   "7+8",
		"avr-13 RUE DES LILAS":   "4+13",
		"2A 2 RUE DES LILAS":     "2",
		"(7A) 7 RUE DES LILAS":   "7",
		"5-7 5 RUE DES LILAS":    "5",
		"24bis rue des lilas":    "24bis",
		"24 B rue des lilas":     "24b",
		"24 Bis RUE DES LILAS":   "24bis",
		"24 ter, rue des lilas":  "24ter",
		"21 d rue des lilas":     "21d",
		"21 d, rue des lilas":    "21d",
	} {
		if got := parts(Line(line, false), "rue des lilas"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestThePostcodeIsTheLastWordOfFiveDigits(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Postcode{
		"24 rue des lilas 48000 Mende":    {Code: 48000},
		"24 rue des lilas 48 000 Mende":   {Code: 48000},
		"24 rue des lilas F-48000 Mende":  {Code: 48000},
		"24 rue des lilas 4800 Mende":     {Short: 4800},
		"LOT 46 108 ROUTE DE MENDE":       {},
		"appartement 13, 323 route Mende": {},
		"2700 TERGNIER":                   {Short: 2700},
		"8 rue du 8 mai 1945":             {},
		"route départementale 1006 Mende": {},
		"24 rue des lilas BP 4800 Mende":  {},
		"24 rue des lilas paris":          {},
		"24 place du 11 novembre 9600":    {Short: 9600},
		"11 novembre 9600":                {Short: 9600},
		"24 rue du 19 mars 1962":          {},
		"6000 NICE":                       {Short: 6000},
		"1115 rue des palhos Balsièges":   {},
		"Balsièges, 1115 rue des Palhos":  {},
		"rue des Palhos 1115":             {Short: 1115},
		"24 rue des lilas TSA No30719":    {},
		"24 rue des lilas CP 48000 Mende": {Code: 48000},
	} {
		got := Line(line, false).Postcode
		if got.Code != want.Code || got.Short != want.Short {
			t.Errorf("%q: %05d, short %04d, want %05d, %04d", line, got.Code, got.Short, want.Code, want.Short)
		}
	}
}

// The number of a post box is not a house number and no postcode, however the box is written.
func TestAPostBoxOwnsItsNumber(t *testing.T) {
	t.Parallel()
	for _, box := range []string{"BP %s", "BP N %s", "BP N° %s", "BP n°%s", "BP No %s", "BP no%s", "BP numéro %s", "B.P. %s", "B.P. N %s", "B P %s", "CS %s", "C.S. %s",
		"TSA %s", "TSA No%s", "T.S.A. %s", "CIDEX %s", "boîte postale %s", "boite postale n° %s", "bte postale %s", "case postale %s", "case postale n° %s", "CP %s"} {
		for _, number := range []string{"7", "12", "305", "7015", "30719"} {
			for _, line := range []string{"24 rue des lilas %s 48000 Mende", "24 rue des lilas, %s, 48000 Mende cedex", "%s 24 rue des lilas 48000 Mende"} {
				if box == "CP %s" && len(number) == 5 {
					continue // a postcode
				}
				text := fmt.Sprintf(line, fmt.Sprintf(box, number))
				q := Line(text, false)
				n := q.HouseNumber(named(q, "rue des lilas"), named(q, "rue des lilas"))
				if n.Count != 1 || n.Choices[0].Number != 24 || n.IsAmbiguous || q.Postcode.Code != 48000 || !strings.Contains(q.Typed(q.Postal), number) {
					t.Errorf("%q: number %v, postcode %05d, post box %q", text, n.Choices[:n.Count], q.Postcode.Code, q.Typed(q.Postal))
				}
			}
		}
	}
}

func TestALineIsSplitAtItsPostcode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]string{
		"24 rue des Lilas, 48000 Mende": {"24 rue des Lilas, ", " Mende"},
		"24 rue des Lilas - 48 000":     {"24 rue des Lilas - ", ""},
		"F-48000 Mende":                 {"", " Mende"},
		"24 rue des Lilas BP 48000":     {"24 rue des Lilas BP 48000", ""},
		"24 rue des Lilas":              {"24 rue des Lilas", ""},
		"":                              {"", ""},
	} {
		if before, after := Line(line, false).AroundPostcode(); before != want[0] || after != want[1] {
			t.Errorf("%q: %q, %q, want %q", line, before, after, want)
		}
	}
}

func TestDigitsThatEndAnUnfinishedLineBeginAPostcode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]uint32{
		"4810":                 {48100, 48110},
		"480":                  {48000, 48100},
		"24 rue des lilas 48":  {48000, 49000},
		"24 rue des lilas 480": {48000, 48100},
		"rue des lilas 2":      {20000, 30000},
		"24 rue des lilas":     {0, 0},
	} {
		if p := Line(line, true).Postcode; p.From != want[0] || p.To != want[1] {
			t.Errorf("%q: %d to %d, want %v", line, p.From, p.To, want)
		}
	}
}

func TestWordsBehindAPostcodeNameAPlace(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"24 rue des lilas 94210 LA-VARENNE-SAINT-HILAIRE": "la varenne saint hilaire",
		"rue des lilas 48000 Mende":                       "mende",
		"48000 Mende 24 rue des lilas":                    "",
		"24 rue des lilas Mende":                          "",
		"Le Bourg 48000 Mende":                            "",
	} {
		q := Line(line, false)
		if got := q.Typed(q.PlaceOnly); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	q := Fields(Parts{Number: "24", Street: "rue des lilas", Postcode: "48000", Commune: "Mende"})
	if street, place := q.Typed(q.StreetOnly), q.Typed(q.PlaceOnly); street != "rue des lilas" || place != "mende" {
		t.Errorf("fields: %q and %q", street, place)
	}
}

func TestAPhraseIsAStreetWhereNothingElseCanBe(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Résidence les pins 24 rue des lilas":    "residence les pins",
		"24 rue des lilas, résidence les pins":   "residence les pins",
		"SARL Dupont 24 rue des lilas":           "sarl dupont",
		"24 résidence les pins Mende":            "",
		"24 bis lotissement du petit bois Mende": "",
		"24 rue du grand clos Mende":             "",
		"24 rue du pavillon Mende":               "",
	} {
		q := Line(line, false)
		if got := q.Typed(q.Phrases); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestShortenedWordsBehindNumbersAreWrittenOut(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Paris 14e arrdt":    "arrondissement",
		"Lyon 1er ardt":      "arrondissement",
		"5 avenue du 11 nov": "novembre",
		"2 rue du 18 juil":   "juillet",
		"rue arr":            "arr",
	} {
		q := Line(line, false)
		if got := q.Terms[len(q.Terms)-1].Text; got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
