package sitefile

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// addressFields are the facts that are parts of the address.
var addressFields = []string{"ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays"}

// fieldAliases are other names of facts, in French and English, as plain makes them.
var fieldAliases = map[string]string{
	"external_id": "id id_externe identifiant reference ref code code_magasin store_id storeid store_code site_id externalid",
	"nom":         "name libelle enseigne label title titre",
	"ligne_1":     "adresse address ligne1 adresse_1 adresse1 address_1 address1 line_1 line1 address_line_1 rue voie street",
	"ligne_2":     "complement complement_adresse complement_d_adresse ligne2 adresse_2 adresse2 address_2 address2 line_2 line2 address_line_2",
	"code_postal": "cp codepostal postcode postal_code postalcode zip zipcode zip_code",
	"commune":     "ville city town localite nom_commune",
	"code_insee":  "insee code_commune citycode city_code insee_code code_insee_commune",
	"pays":        "country country_code code_pays",
	"id_ban":      "ban_id banid id_ban_adresse",
	"lat":         "latitude",
	"lon":         "lng long longitude",
	"horaires":    "hours opening_hours horaires_d_ouverture horaires_ouverture",
	"telephone":   "tel phone phone_number numero_de_telephone",
	"email":       "mail e_mail courriel adresse_email",
	"site_web":    "siteweb website web url site_internet site",
	"tags":        "tag etiquettes mots_cles keywords categories",
	"proprietes":  "properties",
}

// readOnlyFields is what a site shows of itself, which no file can say.
const readOnlyFields = "referentiel geocode_score position_source actif version cree_le modifie_le desactive_le"

// resolveField is the fact a column is called after, "" for one to pass over; false when it is called after none.
func resolveField(column string) (field string, known bool) {
	name := normalizeName(column)
	if _, ok := fieldAliases[name]; ok {
		return name, true
	}
	if containsWord(readOnlyFields, name) {
		return "", true
	}
	for field, aliases := range fieldAliases {
		if containsWord(aliases, name) {
			return field, true
		}
	}
	return "", false
}

func containsWord(words, name string) bool { return strings.Contains(" "+words+" ", " "+name+" ") }

// normalizeName is a name in small letters without accents, with _ between its words.
func normalizeName(name string) string {
	var out strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(strings.TrimSpace(name))) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r), unicode.IsDigit(r):
			out.WriteRune(r)
		default:
			out.WriteByte('_')
		}
	}
	return out.String()
}
