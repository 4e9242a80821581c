package address

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheCommuneAnswersForAnAddressThatIsNotThere(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for name, c := range map[string]struct {
		query Query
		id    string
		city  Status
	}{
		"named in the line":            {Query{Text: "12 rue zzyx 48000 Mende"}, "48095", Confirmed},
		"named without a postcode":     {Query{Text: "12 rue zzyx Mende"}, "48095", Confirmed},
		"of the table alone":           {Query{Text: "12 rue zzyx 31000 Toulouse"}, "31555", Confirmed},
		"of the table, by its name":    {Query{Text: "12 rue zzyx Toulouse"}, "31555", Confirmed},
		"by its short name":            {Query{Text: "4 place du bois 44150 ancenis"}, "44003", Confirmed},
		"in a form":                    {Query{Number: "12", Street: "rue zzyx", Postcode: "31000", Commune: "Toulouse"}, "31555", Confirmed},
		"by the code of a form":        {Query{Number: "12", Street: "rue zzyx", CityCode: "48095"}, "48095", Confirmed},
		"by a code the vintage lacks":  {Query{Number: "12", Street: "rue des lilas", CityCode: "31555"}, "31555", Confirmed},
		"by the code in the line":      {Query{Text: "12 rue zzyx 48095"}, "48095", Confirmed},
		"with its department":          {Query{Text: "12 rue zzyx Saint-Denis (974)"}, "97411", Confirmed},
		"a city with its department":   {Query{Text: "12 rue zzyx Lyon 69"}, "69123", Confirmed},
		"as a city":                    {Query{Text: "12 rue zzyx Paris"}, "75056", Confirmed},
		"as an arrondissement":         {Query{Text: "12 rue zzyx 75013 Paris"}, "75113", Confirmed},
		"by its postcode alone":        {Query{Text: "12 rue zzyx 31000"}, "31555", Added},
		"by a postcode, name unknown":  {Query{Text: "12 rue zzyx 31000 Qqqxz"}, "31555", Unconfirmed},
		"by a filter":                  {Query{Text: "12 rue zzyx", Filter: Filter{CityCodes: []string{"48095"}}}, "48095", Added},
		"with a postcode of several":   {Query{Text: "12 rue zzyx Toulouse", Filter: Filter{Postcodes: []string{"31500"}}}, "31555", Confirmed},
		"not where several are called": {Query{Text: "12 rue zzyx Saint-Denis"}, "", ""},
		"one of several, told apart":   {Query{Text: "12 rue zzyx 97400 Saint-Denis"}, "97411", Confirmed},
		"not of several by postcode":   {Query{Text: "12 rue zzyx 48000"}, "", ""},
		"not of another's postcode":    {Query{Text: "12 rue zzyx 31000 Mende"}, "", ""},
		"not the only word of a road":  {Query{Text: "100 route de Strasbourg"}, "", ""},
		"not where types leave it out": {Query{Text: "12 rue zzyx 48000 Mende", Filter: Filter{Types: []Type{HouseNumber}}}, "", ""},
		"not outside of a filter":      {Query{Text: "12 rue zzyx Toulouse", Filter: Filter{Departments: []string{"48"}}}, "", ""},
	} {
		c.query.Limit, c.query.CommuneFallback = 5, true
		found, err := e.Verify(t.Context(), c.query)
		switch {
		case err != nil || len(found) > 1 || len(found) == 0 != (c.id == ""):
			t.Errorf("%s: %v, %v, want %q alone", name, found, err, c.id)
		case c.id == "":
		case found[0].ID != c.id || found[0].Precision != Municipality || found[0].Verdict != CommuneOnly || found[0].IsResolved || found[0].Components.City.Status != c.city:
			t.Errorf("%s: %+v, want %s in its place, unresolved, its name %s", name, found[0], c.id, c.city)
		}
	}
}

func TestAFallbackSaysWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	q := Query{Text: "12 bis rue zzyx, bât. C, 31000 Toulouse cedex", CommuneFallback: true}
	m := verified(t, engineOf(t, hamlet()), q)
	c := m.Components
	want := Components{Number: Component{"12", "", Unconfirmed}, Rep: Component{"bis", "", Unconfirmed}, Street: Component{"rue zzyx", "", Unconfirmed},
		Postcode: Component{"31000", "31000", Confirmed}, City: Component{"toulouse", "Toulouse", Confirmed}, Complement: Component{"bat c cedex", "", Absent}}
	if diff := cmp.Diff(want, c); diff != "" || !m.NumberTyped || m.NumberFound || m.Score >= 0.5 || m.Score < 0.3 {
		t.Errorf("score %v, want one below what is accepted (-want +got)\n%s", m.Score, diff)
	}
}

func TestACommuneWithoutAddressesAnswersForItself(t *testing.T) {
	t.Parallel()
	m := verified(t, engineOf(t, hamlet()), Query{Text: "31000 Toulouse", CommuneFallback: true})
	if m.ID != "31555" || m.Verdict != Exact || m.Score != 1 || !m.IsResolved || m.Lon == 0 {
		t.Errorf("%+v, want Toulouse, exact", m)
	}
}

func TestAnAddressThatIsThereAnswersBeforeItsCommune(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, line := range []string{"12 rue des lilas 48000 mende", "99 rue des lilas 48000 mende", "rue des lylas mende"} {
		if m := verified(t, e, Query{Text: line, CommuneFallback: true}); m.Precision == Municipality {
			t.Errorf("%q: %s", line, m.ID)
		}
	}
}
