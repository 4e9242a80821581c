package address

import (
	"slices"
	"testing"
)

func TestLocalitiesAreFoundByNameAndNarrowedByRules(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for name, c := range map[string]struct {
		LocalityQuery
		want string
	}{
		"a name":             {LocalityQuery{Text: "mende"}, "48095"},
		"a beginning":        {LocalityQuery{Text: "marvej"}, "48092"},
		"an abbreviation":    {LocalityQuery{Text: "St Chély d'Apcher"}, "48140"},
		"one letter wrong":   {LocalityQuery{Text: "Langonge"}, "48080"},
		"a former commune":   {LocalityQuery{Text: "Le Monastier-Pin-Moriès"}, "48099"},
		"the most populous":  {LocalityQuery{Departments: []string{"48"}}, "48095"},
		"a postcode":         {LocalityQuery{Postcodes: []string{"48100"}}, "48092"},
		"a region":           {LocalityQuery{Text: "mende", Regions: []string{"76"}}, "48095"},
		"another region":     {LocalityQuery{Text: "mende", Regions: []string{"94"}}, "nothing"},
		"too many people":    {LocalityQuery{Text: "mende", MinPopulation: 1_000_000}, "nothing"},
		"the largest of all": {LocalityQuery{MinPopulation: 500_000, MaxPopulation: 600_000}, "69123"},
	} {
		c.Limit = 3
		got := "nothing"
		if found, err := e.Localities(c.LocalityQuery); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(found) > 0 {
			got = found[0].Code
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestATextWithoutALetterOrDigitNamesNoCommune(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for _, line := range []string{"!!!", " ", "-'", "…", "\u0301"} {
		if found, err := e.Localities(LocalityQuery{Text: line, Limit: 5, MinPopulation: 1}); err != ErrUnparsable || len(found) > 0 {
			t.Errorf("%q: %v, %v", line, found, err)
		}
	}
	if found, err := e.Localities(LocalityQuery{Text: "zxwvtq", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("words that name no commune: %v, %v", found, err)
	}
}

func TestLocalitiesAreInOrderAndOnce(t *testing.T) {
	t.Parallel()
	found, _ := engineOf(t, hamlet()).Localities(LocalityQuery{Text: "saint", Limit: 50})
	seen := map[string]bool{}
	for i, l := range found {
		if seen[l.Code] {
			t.Errorf("%s comes twice", l.Code)
		}
		seen[l.Code] = true
		if i > 0 && (found[i-1].Score < l.Score || found[i-1].Score == l.Score && found[i-1].Population < l.Population) {
			t.Errorf("%s comes after %s", l.Name, found[i-1].Name)
		}
	}
	if len(found) != 50 || !slices.ContainsFunc(found, func(l Locality) bool { return l.Name == "Saint-Denis" }) {
		t.Errorf("%d communes", len(found))
	}
}

func TestADepartmentOrRegionBesideANameNarrows(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string]string{
		"mende lozere": "48095", "Mende, Lozère": "48095", "mende occitanie": "48095", "mende 48": "48095", "Mende (48)": "48095",
		"Saint-Denis La Réunion": "97411", "saint denis reunion": "97411", "Saint-Denis, Seine-Saint-Denis": "93066", "vienne isere": "38544",
		"Bassens Gironde": "33032", "Bassens (73)": "73031", "Rue Somme": "80688", "Mende Finistère": "nothing", "La Roche-sur-Yon": "85191",
		"Paris": "75056", "Saint-Germain-sur-Vienne": "37220",
	} {
		got := "nothing"
		if found, err := e.Localities(LocalityQuery{Text: line, Limit: 3}); err != nil {
			t.Errorf("%s: %v", line, err)
		} else if len(found) > 0 {
			got = found[0].Code
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
