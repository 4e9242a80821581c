package placing

import (
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/bench/address/accuracy"
	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/locations"
)

func loadCommunes(t *testing.T) *commune.Table {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return communes
}

func TestAQuestionIsTakenApartByItsPostcodeOrItsCommune(t *testing.T) {
	t.Parallel()
	s := splitter{loadCommunes(t)}
	of := func(text string) accuracy.Question {
		return accuracy.Question{Text: text, ID: "48095_0010_00012", Label: "12 Rue des Lilas 48000 Mende"}
	}
	for name, c := range map[string]struct {
		question accuracy.Question
		want     [4]string // line, postcode, city, code
	}{
		"by its postcode":     {of("12 rue des lilas, 48000 mende bât B"), [4]string{"12 rue des lilas", "48000", "Mende", "48095"}},
		"by its commune":      {of("12 rue des lilas mende"), [4]string{"12 rue des lilas", "48000", "Mende", "48095"}},
		"by its answer alone": {of("12 rue des lilas"), [4]string{"12 rue des lilas", "48000", "Mende", "48095"}},
		"absent":              {accuracy.Question{Text: "12 rue X 48230 Chanac"}, [4]string{"12 rue X", "48230", "Chanac", "48039"}},
		"absent, no postcode": {accuracy.Question{Text: "12 rue X Chanac"}, [4]string{"12 rue X", "48230", "Chanac", "48039"}},
		"absent, a namesake":  {accuracy.Question{Text: "12 rue X Bassens"}, [4]string{"12 rue X Bassens", "", "", ""}},
		"a commune":           {accuracy.Question{Text: "Mende (48)", ID: "48095", Label: "Mende"}, [4]string{"", "", "", "48095"}},
	} {
		p := s.split(c.question)
		if got := [4]string{p.line, p.postcode, p.city, p.code}; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAPlaceIsJudgedByItsDistanceItsNumberAndItsDepartment(t *testing.T) {
	t.Parallel()
	meant := address.Record{Type: address.HouseNumber, Number: "12", CityCode: "48095", Lon: 3.5, Lat: 44.5,
		Department: commune.Division{Code: "48"}}
	j := judge{communes: loadCommunes(t), view: func(id string) (address.Record, bool) { return meant, id == "12" }}
	far, other, elsewhere, street, centre := meant, meant, meant, meant, meant
	far.Lat, other.Number, elsewhere.Department.Code = 44.51, "14", "63"
	street.Type, street.Number, centre.Type = address.StreetType, "", address.Municipality
	at := &locations.SiteAddress{PostalCode: "48000", InseeCode: "48095", City: "Mende 48000"}
	for name, c := range map[string]struct {
		id    string
		found address.Record
		want  judgement
	}{
		"right":                 {"12", meant, judgement{isMeasurable: true, isNumbered: true, isRight: true}},
		"too far":               {"12", far, judgement{isMeasurable: true, isNumbered: true}},
		"another number":        {"12", other, judgement{isMeasurable: true, isNumbered: true}},
		"its street":            {"12", street, judgement{isMeasurable: true, isRight: true}},
		"its commune":           {"12", centre, judgement{isMeasurable: true, isRight: true}},
		"another department":    {"12", elsewhere, judgement{isMeasurable: true, isNumbered: true, isRight: true, isElsewhere: true}},
		"what is not there":     {"", meant, judgement{isNumbered: true, isFalse: true}},
		"the commune of it":     {"", centre, judgement{}},
		"not there, far beyond": {"", elsewhere, judgement{isNumbered: true, isFalse: true, isElsewhere: true}},
	} {
		c.want.isPlaced = true
		got := j.judge(&parts{Question: accuracy.Question{ID: c.id}}, at, address.Match{Record: c.found}, true)
		got.distance = 0
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := j.judge(&parts{}, at, address.Match{}, false); got != (judgement{}) {
		t.Errorf("not placed: %+v", got)
	}
}

func TestEachCodeOfAnAddressNamesADepartment(t *testing.T) {
	t.Parallel()
	j := judge{communes: loadCommunes(t)}
	for _, c := range []struct {
		address    locations.SiteAddress
		department string
		want       bool
	}{
		{locations.SiteAddress{PostalCode: "48000"}, "48", true},
		{locations.SiteAddress{PostalCode: "48000"}, "63", false},
		{locations.SiteAddress{PostalCode: "48909"}, "48", true}, // CEDEX
		{locations.SiteAddress{PostalCode: "20900"}, "2A", true},
		{locations.SiteAddress{PostalCode: "97400", InseeCode: "97411"}, "974", true},
		{locations.SiteAddress{PostalCode: "48000", InseeCode: "63113"}, "48", false},
		{locations.SiteAddress{Line1: "12 rue X, 63000 Clermont"}, "48", false},
		{locations.SiteAddress{Line2: "63000"}, "48", false},
		{locations.SiteAddress{City: "63000 Clermont"}, "48", false},
		{locations.SiteAddress{Line1: "12 rue X"}, "48", true},
	} {
		r := address.Record{Department: commune.Division{Code: c.department}}
		if got := j.liesWhereSaid(&c.address, &r); got != c.want {
			t.Errorf("%+v in %s: %v", c.address, c.department, got)
		}
	}
}

// Every writing of an address in the vintage is placed at it, except those that contradict themselves and those without the street.
func TestEveryWritingIsPlacedAndCounted(t *testing.T) {
	t.Parallel()
	v, err := addresstest.BuildVintage(addresstest.Hamlet())
	if err != nil {
		t.Fatal(err)
	}
	communes := loadCommunes(t)
	addresses := live.New(communes)
	addresses.Swap(v)
	t.Cleanup(func() { addresses.Swap(nil) })
	results, err := newResultWriter(filepath.Join(t.TempDir(), "placed.csv"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]measure.Figure{}
	r := run{geocoder: geocode.New(addresses), results: results, splitter: splitter{communes},
		judge: judge{communes: communes, view: address.New(v, communes).View},
		out: measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
			got[f.Label("writing")] = f
			return nil
		}}}
	question := accuracy.Question{Set: "tester", Kind: "city", Text: "14 rue des Lilas Mende", ID: "48095_0010_00014",
		Label: "14 Rue des Lilas 48000 Mende"}
	if err := r.placeAll(t.Context(), []accuracy.Question{question}); err != nil {
		t.Fatal(err)
	}
	if err := results.close(); err != nil {
		t.Error(err)
	}
	for _, w := range writings {
		f := got[w.name]
		want := 100.0
		if strings.HasPrefix(w.name, "other department") || w.name == "an unknown building" {
			want = 0
		}
		if f.Samples != 1 || f.Value != want || f.Extra["far"] != 0 || f.Extra["wrong department"] != 0 {
			t.Errorf("%s: %+v, want %v placed", w.name, f, want)
		}
	}
}
