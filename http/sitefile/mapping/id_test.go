package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/http/sitefile/mapping"
)

// idColumn is the name of the column that a file of places takes its ids from, "" if there is none. value makes the value of a row.
func idColumn(name string, rows int, value func(row int) string) (string, mapping.Mapping) {
	var lines []string
	for n := range rows {
		lines = append(lines, fmt.Sprintf("%s|Place %d|%d rue Haute|48000|Mende", value(n), n, n%7+1))
	}
	m, _ := mapping.Guess(profileTable(name+"|nom|adresse|code_postal|commune", lines...), mapping.Given{})
	if m.ID.Column < 0 {
		return "", m
	}
	return m.Columns[m.ID.Column], m
}

// scattered gives unique codes that count nothing.
func scattered(n int) string { return fmt.Sprintf("87%06d", (n*7919+13)%999_983) }

// counting gives the number of the row.
func counting(n int) string { return fmt.Sprint(n + 1) }

func TestAUniqueColumnThatIsCalledLikeAnIDIsTheID(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"N° magasin", "N°magasin", "Numéro de magasin", "No magasin", "n_magasin", "NUM_MAGASIN", "Code agence", "N° client", "N° de site", "ref_boutique",
		"code_uic", "CODE UIC", "uai", "UAI", "code_uai", "numero_uai", "Code RNE", "uic", "siret", "SIRET_ETABLISSEMENT", "num_siret", "n_siret", "N° FINESS",
		"finess_et", "cip", "num_adherent", "Identifiant_de_l_etablissement", "id_borne", "idgaia", "ref_pdv", "Code PDV", "PDV", "matricule", "gln", "code_gln",
	} {
		if got, _ := idColumn(name, 40, scattered); got != name {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestANumberOfAPlaceMayCountAndANumberOfARowIsNoID(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"N° magasin", "Code agence", "num_site", "id_station", "Numéro de boutique"} {
		if got, _ := idColumn(name, 40, counting); got != name {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, name := range []string{"FID", "fid", "gid", "GID", "OBJECTID", "objectid", "OBJECT_ID", "ObjectID", "ogc_fid", "FID_1", "OBJECTID_1", "gid_2", "index", "Unnamed: 0", "row_id", "N° ligne", "rowid", "id_0", "pk"} {
		for kind, value := range map[string]func(int) string{"counting": counting, "scattered": scattered} {
			if got, _ := idColumn(name, 40, value); got != "" {
				t.Errorf("%s, %s: got %q", name, kind, got)
			}
		}
	}
}

func TestAFewEmptyIDsDoNotKeepAColumnFromBeingTheID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows, empty int
		want        string
	}{{200, 1, "code_uic"}, {200, 2, "code_uic"}, {200, 3, ""}, {99, 1, ""}, {100, 1, "code_uic"}} {
		got, m := idColumn("code_uic", c.rows, func(n int) string {
			if n%(c.rows/c.empty) == 0 && n/(c.rows/c.empty) < c.empty {
				return ""
			}
			return scattered(n)
		})
		if got != c.want || got == "" && !strings.Contains(m.ID.Reason, "empty") {
			t.Errorf("%d of %d empty: got %q (%s), want %q", c.empty, c.rows, got, m.ID.Reason, c.want)
		}
	}
}

func TestOfAddressesAndAreasNoCodeIsTheID(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"code_postal_id", "code_commune", "code_departement", "id_region", "n_voie", "N° de rue", "code_fantoir", "num_tel", "code_ape", "siren", "id_epci", "N° de fax", "n_rue", "code_iris", "code_categorie"} {
		if got, _ := idColumn(name, 40, scattered); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
