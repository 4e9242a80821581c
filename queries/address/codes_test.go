package address

import (
	"testing"

	"lieudit/queries/address/commune"
)

func TestAPostcodeAdmitsWhatItsCommunesHave(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	mende, paris := record(t, e, "48095_0010_00012"), record(t, e, "75113_0010_00010")
	for _, c := range []struct {
		postcode string
		record   Record
		want     bool
	}{
		{"48000", mende, true},
		{"48230", mende, false}, // another commune's
		{"48909", mende, true},  // of no commune, in the department
		{"75999", mende, false},
		{"63000", mende, false},
		{"", mende, true},
		{"zzyx", mende, true},
		{"75013", paris, true},
		{"75002", paris, false},
		{"75640", paris, true},
		{"20000", Record{CityCode: "2A004", Department: division("2A")}, true},
		{"20900", Record{CityCode: "2A004", Department: division("2A")}, true},
		{"20900", Record{CityCode: "48095", Department: division("48")}, false},
		{"97499", Record{CityCode: "97411", Department: division("974")}, true},
		{"97199", Record{CityCode: "97411", Department: division("974")}, false},
	} {
		if got := e.AcceptsPostcode(c.postcode, &c.record); got != c.want {
			t.Errorf("%s, %s: %v", c.postcode, c.record.CityCode, got)
		}
	}
}

func TestACodeAdmitsItsCommune(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, c := range []struct {
		code, id string
		want     bool
	}{
		{"48095", "48095_0010_00012", true},
		{"48039", "48095_0010_00012", false},
		{"99999", "48095_0010_00012", false},
		{"75113", "75113_0010_00010", true},
		{"75056", "75113_0010_00010", true}, // the city
		{"75102", "75113_0010_00010", false},
		{"48102", "48039_0060_00002", true}, // a former commune
	} {
		r := record(t, e, c.id)
		if got := e.AdmitsCode(c.code, &r); got != c.want {
			t.Errorf("%s, %s: %v", c.code, c.id, got)
		}
	}
}

func TestDigitsAreACodeWhereTheNameBesideThemSaysSo(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, c := range []struct {
		digits, name string
		want         bool
	}{
		{"48095", "Mende", true},
		{"48140", "Saint-Chély-d'Apcher", true},
		{"48140", "ST CHELY D APCHER", true},
		{"48140", "Le Malzieu-Ville", false}, // whose postcode it is
		{"69381", "Lyon", true},
		{"48000", "Mende", false},
		{"48095", "", false},
	} {
		if got := e.IsCodeOf(c.digits, c.name); got != c.want {
			t.Errorf("%s %s: %v", c.digits, c.name, got)
		}
	}
}

func TestANameThatAnotherCommuneHasIsAmbiguous(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	of := func(code string) Record {
		r, _ := e.View(code)
		return r
	}
	for _, c := range []struct {
		name   string
		record Record
		want   bool
	}{
		{"mende", of("48095"), false},
		{"mende", record(t, e, "48095_0010_00012"), false},
		{"paris", of("75056"), false},
		{"bassens", of("73031"), true},
		{"bassens", Record{Type: HouseNumber, CityCode: "73031"}, true}, // the other one has no addresses either
	} {
		if got := e.IsAmbiguous(c.name, &c.record); got != c.want {
			t.Errorf("%s, %s: %v", c.name, c.record.Label, got)
		}
	}
}

// record is the record of an id.
func record(t *testing.T, e *Engine, id string) Record {
	t.Helper()
	r, ok := e.View(id)
	if !ok {
		t.Fatalf("no record of %s", id)
	}
	return r
}

// division is a department of which only the code counts.
func division(code string) commune.Division { return commune.Division{Code: code} }
