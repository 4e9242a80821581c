package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// profileTable profiles a table: the names of its columns, and its rows, each a text with cells separated by |.
func profileTable(names string, rows ...string) *mapping.Profile {
	var columns []record.Column
	for name := range strings.SplitSeq(names, "|") {
		columns = append(columns, record.Column{Name: name})
	}
	p := &mapping.Profile{}
	for i, row := range rows {
		r := record.Record{Line: i + 2}
		for cell := range strings.SplitSeq(row, "|") {
			r.Values = append(r.Values, record.Value{Text: cell})
		}
		p.Observe(columns, r)
	}
	return p
}

// describeMapping is what becomes of each column: field, "(field)" by content, proprietes.key, "-" left out.
func describeMapping(m mapping.Mapping) string {
	var parts []string
	for _, t := range m.Targets {
		switch {
		case t.IsSecondary:
			parts = append(parts, "-")
		case t.Field != "" && t.Evidence == mapping.ByContent:
			parts = append(parts, "("+string(t.Field)+")")
		case t.Field != "":
			parts = append(parts, string(t.Field))
		case t.Property != "":
			parts = append(parts, "proprietes."+t.Property)
		default:
			parts = append(parts, "-")
		}
	}
	return strings.Join(parts, "|")
}

func TestColumnsAreRecognizedByNameAndContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, names string
		rows        []string
		want        string
	}{
		{"French names of open data", "Identifiant marché|Nom complet|Code postal|Commune|Latitude|Longitude",
			[]string{"9|Marché A|48000|Mende|44.5|3.5"}, "external_id|nom|code_postal|commune|lat|lon"},
		{"names of OpenStreetMap", "@id|name|addr:housenumber|addr:street|addr:postcode|contact:city|opening_hours|contact:phone",
			[]string{"node/1|A|3|Rue Haute|48000|Mende|24/7|+33 4 66 65 12 34"}, "external_id|nom|numero|nom_voie|code_postal|commune|horaires|telephone"},
		{"names of Sirene", "siret|enseigne1Etablissement|numeroVoieEtablissement|indiceRepetitionEtablissement|typeVoieEtablissement|libelleVoieEtablissement|codePostalEtablissement|libelleCommuneEtablissement",
			[]string{"1|A|3|B|RUE|HAUTE|48000|MENDE"}, "external_id|nom|numero|rep|type_voie|nom_voie|code_postal|commune"},
		{"names of GTFS", "stop_id|stop_name|stop_lat|stop_lon|parent_station",
			[]string{"a|A|44.5|3.5|x", "b|B|44.6|3.6|x"}, "external_id|nom|lat|lon|proprietes.parent_station"},
		{"names cut at ten letters", "ETAB_CODE_|ETAB_NOM|ADR_VOIE|ADR_CODEPO|ADR_COMMUN|ETAB_LON|ETAB_LAT",
			[]string{"a|A|3 rue X|48000|Mende|3.5|44.5"}, "external_id|nom|nom_voie|code_postal|commune|lon|lat"},
		{"members of members of JSON, in containers only", "storeId|contact.phone|manager.phone|address.postalCode|location.lat|location.lng",
			[]string{"1|04 66 65 12 34|04 66 65 12 35|48000|44.5|3.5"}, "external_id|telephone|proprietes.manager.phone|code_postal|lat|lon"},
		{"a name alone is not enough: the content contradicts it", "id|nom|telephone|horaires|site_web",
			[]string{"1|A|oui|1|non", "2|B|non|0|non"}, "external_id|nom|proprietes.telephone|proprietes.horaires|proprietes.site_web"},
		{"content alone is enough where one field fits", "id|nom|Où|Joindre|Page|Écrire",
			[]string{"1|A|48000|04 66 65 12 34|https://a.fr|a@a.fr", "2|B|48100|04 66 65 12 35|https://b.fr|b@b.fr"},
			"external_id|nom|(code_postal)|(telephone)|(site_web)|(email)"},
		{"but the name may speak against it", "id|nom|Fax|Photo", []string{"1|A|04 66 65 12 34|https://a.fr/1.jpg", "2|B|04 66 65 12 35|https://b.fr/1.jpg"},
			"external_id|nom|proprietes.Fax|proprietes.Photo"},
		{"the fuller of two wins", "id|nom|adresse|adresse_postale",
			[]string{"1|A||3 rue X", "2|B||4 rue X", "3|C|2 rue Y|5 rue X"}, "external_id|nom|proprietes.adresse|ligne_1"},
		{"two columns of one name", "id|nom|nom", []string{"1|A|x", "2|B|y"}, "external_id|nom|proprietes.nom"},
		{"what repeats the position is left out", "id|nom|lat|lon|geo_point_2d|geo_shape|x_l93|y_l93",
			[]string{`1|A|44.5|3.5|44.5, 3.5|{"type":"Point","coordinates":[3.5,44.5]}|740000|6380000`}, "external_id|nom|lat|lon|-|-|-|-"},
		{"a pair without a name that says so", "id|nom|Où c'est", []string{"1|A|44.5, 3.5", "2|B|44.6, 3.6"}, "external_id|nom|(lat_lon)"},
		{"a date is no pair", "id|nom|classement", []string{"1|A|01/02/2003", "2|B|04/06/2018"}, "external_id|nom|proprietes.classement"},
		{"one coordinate alone is a property", "id|nom|latitude", []string{"1|A|44.5"}, "external_id|nom|proprietes.latitude"},
		{"empty columns and results of a geocoder are left out", "id|nom|vide|result_label|result_score", []string{"1|A||x|0.9"}, "external_id|nom|-|-|-"},
		{"N° is the house number where streets have none", "id|nom|N°|rue", []string{"1|A|3|rue X", "2|B|3|rue Y", "3|C|12|rue Z"}, "external_id|nom|numero|nom_voie"},
		{"and no number where every row has its own", "id|nom|N°|rue", []string{"1|A|1|rue X", "2|B|2|rue Y", "3|C|3|rue Z"}, "external_id|nom|proprietes.N°|nom_voie"},
		{"flags of weekdays are no hours", "id|nom|LUNDI|MARDI", []string{"1|A|1|0", "2|B|0|1"}, "external_id|nom|proprietes.LUNDI|proprietes.MARDI"},
		{"hours by weekday are", "id|nom|lundi|mardi", []string{"1|A|9h-12h|fermé"}, "external_id|nom|lundi|mardi"},
		{"several lines of a complement", "id|nom|adresse_1|adresse_2|adresse_3", []string{"1|A|3 rue X|Bât A|ZA Sud"}, "external_id|nom|ligne_1|ligne_2|ligne_2"},
		{"a foreign postcode in a column called so", "id|nom|postcode|country", []string{"1|A|H3T1K3|Canada", "2|B|H3T 1K4|Canada"}, "external_id|nom|code_postal|pays"},
		{"a short word that ends in s is no plural", "id|nom|dims|mars", []string{"1|A|12-14|9h-12h", "2|B|10-14|9h-12h"}, "external_id|nom|proprietes.dims|proprietes.mars"},
		{"one metre alone is a property", "id|nom|x_l93", []string{"1|A|740000", "2|B|740100"}, "external_id|nom|proprietes.x_l93"},
		{"plural names", "CODES|NOMS|Téléphones", []string{"1|A|04 66 65 12 34", "2|B|04 66 65 12 35"}, "external_id|nom|telephone"},
	} {
		m, errs := mapping.Guess(profileTable(c.names, c.rows...), mapping.Given{})
		if got := describeMapping(m); got != c.want || len(errs) > 0 {
			t.Errorf("%s\nof   %s\ngot  %s\nwant %s\n%v", c.rule, c.names, got, c.want, errs)
		}
	}
}

func TestTheIDIsAColumnThatTellsRowsApart(t *testing.T) {
	t.Parallel()
	for names, c := range map[string]struct {
		rows []string
		want string
	}{
		"id|nom":                  {[]string{"1|A", "2|B"}, "id"},
		"id|siret|nom":            {[]string{"1|11|A", "1|12|B"}, "siret"},    // the known name repeats
		"ref_musee|nom":           {[]string{"M1|A", "M2|B"}, "ref_musee"},    // only called like one
		"gid|code_ecole|nom":      {[]string{"5|x|A", "6|y|B"}, "code_ecole"}, // gid is the number of a map program's row
		"code_postal|nom":         {[]string{"48000|A", "48100|B"}, ""},       // unique by chance, and something else
		"id_station|id_pdc|nom":   {[]string{"S|1|A", "S|2|A"}, "id_pdc"},     //
		"identifiant|nom":         {[]string{"1|A", "|B"}, ""},                // a row has none
		"id_ligne|numero|libelle": {[]string{"1|1|A", "1|2|B", "2|3|C"}, ""},  // counts its rows
	} {
		m, _ := mapping.Guess(profileTable(names, c.rows...), mapping.Given{})
		got := ""
		if m.ID.Column >= 0 {
			got = m.Columns[m.ID.Column]
		}
		if got != c.want {
			t.Errorf("%s: got %q (%s), want %q", names, got, m.ID.Reason, c.want)
		}
	}
}

func TestWhatTheUserSaysWins(t *testing.T) {
	t.Parallel()
	rows := []string{"1|A|B|44.5|3.5"}
	g := mapping.Given{Columns: map[string]mapping.Target{"Libre": {Field: mapping.Name}, "nom": {}}, Ignore: []string{"L*T"}, ID: "hash:nom, lat"}
	m, errs := mapping.Guess(profileTable("id|nom|libre|lat|lon", rows...), g)
	if diff := cmp.Diff("proprietes.id|proprietes.nom|nom|-|proprietes.lon", describeMapping(m)); diff != "" || len(errs) > 0 {
		t.Errorf("%s %v", diff, errs)
	}
	if diff := cmp.Diff([]string{"nom", "lat"}, m.ID.Hash); diff != "" {
		t.Error(diff)
	}
	_, errs = mapping.Guess(profileTable("id|nom", "1|A"), mapping.Given{Columns: map[string]mapping.Target{"surnom": {Field: mapping.Name}}, ID: "Code"})
	if text := fmt.Sprint(errs); len(errs) != 2 || !strings.Contains(text, `"surnom"`) || !strings.Contains(text, `"Code"`) {
		t.Errorf("got %v", errs)
	}
}

// TestAMappingIsWrittenAndRepeated: what a mapping says of each column gives the same mapping again.
func TestAMappingIsWrittenAndRepeated(t *testing.T) {
	t.Parallel()
	p := profileTable("id|nom|téléphone|mobile|adresse|nom|lat|lon|geo|vide|result_score",
		"1|A|04 66 65 12 34|06 12 34 56 78|3 rue X|x|44.5|3.5|44.5, 3.5||1", "2|B||06 12 34 56 79|4 rue X|y|44.6|3.6|44.6, 3.6||1")
	first, _ := mapping.Guess(p, mapping.Given{})
	given := map[string]mapping.Target{}
	for i, target := range first.Targets {
		again, ok := mapping.ParseTarget(target.String())
		if !ok {
			t.Errorf("%s is not read", target)
		}
		given[first.ColumnKeys()[i]] = again
	}
	second, errs := mapping.Guess(p, mapping.Given{Columns: given, ID: "id"})
	if diff := cmp.Diff(describeMapping(first), describeMapping(second)); diff != "" || len(errs) > 0 {
		t.Errorf("%s %v", diff, errs)
	}
	for i := range first.Targets {
		if first.Targets[i].Fallback != second.Targets[i].Fallback || first.Targets[i].IsSecondary != second.Targets[i].IsSecondary {
			t.Errorf("%s: %+v became %+v", first.Columns[i], first.Targets[i], second.Targets[i])
		}
	}
	if len(second.Positions) != 2 {
		t.Errorf("%d positions", len(second.Positions))
	}
}

func TestTwoColumnsForOneFieldAreAnError(t *testing.T) {
	t.Parallel()
	given := map[string]mapping.Target{"a": {Field: mapping.Name}, "b": {Field: mapping.Name}}
	if _, errs := mapping.Guess(profileTable("id|a|b", "1|A|B"), mapping.Given{Columns: given}); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
}

// TestNothingThatTheUserSaysIsPassedOver: a name that the file does not have is an error, whatever it should become.
func TestNothingThatTheUserSaysIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]mapping.Given{
		"property": {Columns: map[string]mapping.Target{"psote": {}}}, "ignore": {Ignore: []string{"nothere*"}}, "hash": {ID: "hash:nom,viile"}, "field": {ID: "hash:nom,numero"},
	} {
		if _, errs := mapping.Guess(profileTable("id|nom", "1|A", "2|B"), g); len(errs) != 1 {
			t.Errorf("%s: %v", name, errs)
		}
	}
	saved := mapping.Given{Columns: map[string]mapping.Target{"gone": {}, "id": {Field: mapping.ExternalID}}, IsSaved: true}
	if _, errs := mapping.Guess(profileTable("id|nom", "1|A"), saved); len(errs) != 0 {
		t.Errorf("a mapping of an earlier file: %v", errs)
	}
}

// TestAColumnThatCountsItsRowsIsNoID: however many rows there are. A column called id may.
func TestAColumnThatCountsItsRowsIsNoID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"ref_table": -1, "id": 0} {
		var rows []string
		for n := range 1000 {
			rows = append(rows, fmt.Sprintf("%d|A", n+1))
		}
		if m, _ := mapping.Guess(profileTable(name+"|nom", rows...), mapping.Given{}); m.ID.Column != want {
			t.Errorf("%s: column %d", name, m.ID.Column)
		}
	}
}

func TestPatternsOfIgnoredColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, column string
		want            bool
	}{
		{"geo_*", "Geo_Shape", true}, {"*", "x", true}, {"a,b", "A,B ", true}, {"geo", "geo_shape", false}, {"*_fr", "nom_fr", true}, {"a*c*e", "abcde", true},
		{"a*c*e", "abde", false}, {"", "", true}, {"a*a", "a", false},
	} {
		if got := mapping.MatchGlob(c.pattern, c.column); got != c.want {
			t.Errorf("%q, %q: got %t", c.pattern, c.column, got)
		}
	}
}
