package address

import (
	"fmt"
	"testing"

	"lieudit/queries/address/text"
)

// TestTheFirstReasonThatHoldsIsSaid asks what does not resolve. Of a match it is the match's reason, of none that of Explain.
func TestTheFirstReasonThatHoldsIsSaid(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	line := func(text string) Query { return Query{Text: text} }
	for name, c := range map[string]struct {
		query Query
		want  Reason
	}{
		"a commune that is not loaded":         {line("12 rue de Metz 31000 Toulouse"), NotCovered},
		"one without its postcode":             {line("12 rue de Metz Toulouse"), NotCovered},
		"one of the served postcode":           {line("12 rue des lilas 48000 Toulouse"), NotCovered},
		"one by its code":                      {Query{Number: "12", Street: "rue des lilas", CityCode: "31555"}, NotCovered},
		"one in its field":                     {Query{Street: "12 rue de Metz", Commune: "Toulouse"}, NotCovered},
		"a department that is not loaded":      {line("12 rue de Metz 31000"), NotCovered},
		"one by the filter":                    {Query{Text: "12 rue de Metz", Filter: Filter{Departments: []string{"31"}}}, NotCovered},
		"words behind the postcode":            {line("12 rue des lilas 48000 villequelconque"), CityUnknown},
		"a place that is none, nothing found":  {line("12 rue zzyx 48000 villequelconque"), CityUnknown},
		"a code of no commune":                 {Query{Number: "12", Street: "rue des lilas", CityCode: "99999"}, CityUnknown},
		"another commune of the postcode":      {line("2 place du foirail 48230 la canourgue"), NotCovered},
		"the code of another than the name":    {Query{Number: "12", Street: "rue zzyx", Commune: "Mende", CityCode: "48039"}, CityContradicted},
		"a postcode of another":                {line("12 rue zzyx 48230 mende"), PostcodeContradicted},
		"a postcode of none":                   {line("12 rue zzyx 48999"), PostcodeContradicted},
		"a street that is not there":           {line("12 rue zzyx 48000 mende"), StreetAbsent},
		"one without a place":                  {line("12 rue zzyx"), StreetAbsent},
		"a building of a commune":              {line("bât. B, 48000 mende"), StreetAbsent},
		"a number that is not there":           {line("99 rue des lilas 48000 mende"), NumberAbsent},
		"a repetition index that is not there": {line("12 quater rue des lilas mende"), NumberAbsent},
		"a number, and only numbers asked for": {Query{Text: "99 rue des lilas mende", Filter: Filter{Types: []Type{HouseNumber}}}, NumberAbsent},
		"two that fit":                         {line("rue des lilas"), SeveralFit},
		"two of a postcode":                    {line("3 rue de l'église 48000"), SeveralFit},
		"nothing to complain of":               {line("12 rue des lilas 48000 mende"), ""},
	} {
		c.query.Limit = 5
		found, got, err := e.Explain(t.Context(), c.query)
		if err == nil && len(found) > 0 {
			got = found[0].Reason
		}
		if got != c.want || err != nil {
			t.Errorf("%s: %q (%v, %d found), want %q", name, got, err, len(found), c.want)
		}
		for i := range found {
			if found[i].IsResolved != (found[i].Reason == "") {
				t.Errorf("%s: match %d resolves %v, and its reason is %q", name, i, found[i].IsResolved, found[i].Reason)
			}
		}
	}
}

func TestTheCommuneInThePlaceOfAnAddressSaysWhy(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string]Reason{
		"12 rue zzyx 31000 Toulouse": NotCovered,
		"12 rue zzyx 31000 Qqqxz":    NotCovered,
		"12 rue zzyx 48000 Mende":    StreetAbsent,
		"31000 Toulouse":             "",
	} {
		m := verified(t, e, Query{Text: line, CommuneFallback: true})
		if m.Reason != want || m.IsResolved != (want == "") || m.Verdict != CommuneOnly && want != "" {
			t.Errorf("%q: %s, %q, resolved %v, want %q", line, m.Verdict, m.Reason, m.IsResolved, want)
		}
	}
}

func TestANumberIsFoundWithItsRepetitionIndex(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string]bool{
		"12 rue des lilas mende": true, "12 bis rue des lilas mende": true, "12 b rue des lilas mende": true,
		"12 ter rue des lilas mende": false, "14 bis rue des lilas mende": false, "99 rue des lilas mende": false,
	} {
		if m := verified(t, e, Query{Text: line}); m.NumberFound != want || !m.NumberTyped {
			t.Errorf("%q: found %v, want %v", line, m.NumberFound, want)
		}
	}
}

// Whatever is asked of a commune that is not loaded, the reason is that: real rows of other departments, on the vintage of Lozère and
// Bondy. A commune that has the name of one that is loaded is another question.
func TestAnAddressThatIsNotLoadedIsToldFromOneThatIsNotThere(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	asked, wrong := 0, map[string]int{}
	rows := readRows(t, "questions/real-rows.csv.gz")
	for i := 0; i < len(rows); i += 53 {
		r := &rows[i]
		if len(e.ordinals(r.CodeInsee)) > 0 || e.isNamesake(r.Commune) {
			continue
		}
		street := fmt.Sprint(r.Numero, r.Rep, " ", r.Voie)
		for form, q := range map[string]Query{
			"label": {Text: street + " " + r.CodePostal + " " + r.Commune}, "no postcode": {Text: street + ", " + r.Commune}, "no commune": {Text: street + " " + r.CodePostal},
			"parts": {Street: street, Postcode: r.CodePostal, Commune: r.Commune}, "code": {Street: street, CityCode: r.CodeInsee},
			"only the commune": {Street: street, Commune: r.Commune}, "filter": {Text: street, Filter: Filter{CityCodes: []string{r.CodeInsee}}},
		} {
			q.Limit = 1
			found, got, err := e.Explain(t.Context(), q)
			if len(found) > 0 {
				got = found[0].Reason
			}
			asked++
			if err != nil || got != NotCovered {
				wrong[form]++
				t.Errorf("%s, %s: %q (%v), %v", form, parts(q), got, err, describe(found))
			}
		}
	}
	t.Logf("%d asked, wrong: %v", asked, wrong)
}

// isNamesake reports whether the vintage has a commune of the name, also of an old one.
func (e *Engine) isNamesake(name string) bool {
	for _, c := range e.table.Named(text.Terms(name)) {
		if len(e.ordinals(c.Code)) > 0 {
			return true
		}
	}
	return false
}
