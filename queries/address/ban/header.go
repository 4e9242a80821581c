package ban

import (
	"bytes"
	"fmt"
	"strings"
)

// field is a column the reader knows.
type field int

const (
	fieldID field = iota
	fieldNumero
	fieldRep
	fieldVoie
	fieldPlace // nom_lieu_dit, of the files of localities
	fieldCodePostal
	fieldCodeInsee
	fieldCommune
	fieldCodeInseeAncienne
	fieldCommuneAncienne
	fieldX
	fieldY
	fieldLon
	fieldLat
	fieldTypePosition
	fieldAlias
	fieldLieuDit
	fieldAcheminement
	fieldNomAFNOR
	fieldCertifie
	fieldParcelles
	fieldIDBan
	fieldSource
	fieldCount
)

// names are the columns in the official files, by field. Of several for one field, the first that is there counts.
var names = [fieldCount][]string{
	fieldID:                {"id"},
	fieldNumero:            {"numero"},
	fieldRep:               {"rep"},
	fieldVoie:              {"nom_voie"},
	fieldPlace:             {"nom_lieu_dit"},
	fieldCodePostal:        {"code_postal"},
	fieldCodeInsee:         {"code_insee"},
	fieldCommune:           {"nom_commune"},
	fieldCodeInseeAncienne: {"code_insee_ancienne_commune"},
	fieldCommuneAncienne:   {"nom_ancienne_commune"},
	fieldX:                 {"x"},
	fieldY:                 {"y"},
	fieldLon:               {"lon"},
	fieldLat:               {"lat"},
	fieldTypePosition:      {"type_position"},
	fieldAlias:             {"alias"},
	fieldLieuDit:           {"nom_ld"},
	fieldAcheminement:      {"libelle_acheminement"},
	fieldNomAFNOR:          {"nom_afnor"},
	fieldCertifie:          {"certification_commune"},
	fieldParcelles:         {"cad_parcelles"},
	fieldIDBan:             {"id_ban_adresse", "id_ban", "uid_adresse"},
	fieldSource:            {"source_nom_voie"},
}

// columns says where each field stands in a file; -1 is nowhere.
type columns struct {
	at       [fieldCount]int
	width    int
	locality bool
}

// readHeader finds the columns of a file.
func readHeader(file string, line []byte) (columns, error) {
	c := columns{}
	titles := strings.Split(strings.ToLower(string(line)), ";")
	c.width = len(titles)
	for f := range c.at {
		c.at[f] = position(titles, names[f])
	}
	c.locality = c.at[fieldPlace] >= 0 && c.at[fieldNumero] < 0
	if missing := c.missing(); len(missing) > 0 {
		looks := fmt.Sprintf("it has no column %s; %s", strings.Join(missing, ", "), quoted(line))
		if bytes.Count(line, []byte(",")) > 3 && len(titles) < 3 {
			looks = "its columns are separated by commas, the base's by semicolons; " + quoted(line)
		}
		return c, &FormatError{File: file, Looks: looks}
	}
	return c, nil
}

func position(titles, wanted []string) int {
	for _, name := range wanted {
		for i, t := range titles {
			if strings.Trim(t, "\" \t\r") == name {
				return i
			}
		}
	}
	return -1
}

// missing names the columns a file cannot do without.
func (c *columns) missing() (absent []string) {
	needed := []field{fieldID, fieldNumero, fieldVoie, fieldCodeInsee, fieldCommune, fieldLon, fieldLat}
	if c.locality {
		needed = []field{fieldID, fieldPlace, fieldCodeInsee, fieldCommune, fieldLon, fieldLat}
	}
	for _, f := range needed {
		if c.at[f] < 0 {
			absent = append(absent, names[f][0])
		}
	}
	return absent
}
