package sitefile_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"lieudit/http/sitefile/mapping"
	"lieudit/queries/address/commune"
)

// drawer draws files. What it draws depends on the random numbers alone.
type drawer struct {
	names    map[mapping.Field][]string // the table of names
	communes []*commune.Commune         // of the mainland

	*rand.Rand
	form    fileForm
	rows    int
	damages []string
	used    map[string]bool // names of columns, as they are compared

	hasTwoNames bool // two columns are called alike: the first one means the name
}

// newDrawer reads the table of names from its source, since no package needs it but its own.
func newDrawer(t testing.TB) *drawer {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), "mapping/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	d := &drawer{names: map[mapping.Field][]string{}}
	fields := fieldsByConstant()
	ast.Inspect(source, func(n ast.Node) bool {
		if line, ok := n.(*ast.CompositeLit); ok && len(line.Elts) == 4 {
			name, isName := line.Elts[0].(*ast.Ident)
			exact, isText := line.Elts[1].(*ast.BasicLit)
			if isName && isText && fields[name.Name] != "" {
				text, _ := strconv.Unquote(exact.Value)
				d.names[fields[name.Name]] = strings.Split(text, ", ")
			}
		}
		return true
	})
	if len(d.names) < 25 {
		t.Fatalf("the table of names has %d fields", len(d.names))
	}
	for c := range table.All() {
		if c.Kind == commune.Current && c.Located() && c.Code < "97" && len(c.Postcodes()) > 0 {
			d.communes = append(d.communes, c)
		}
	}
	return d
}

func fieldsByConstant() map[string]mapping.Field {
	return map[string]mapping.Field{
		"ExternalID": mapping.ExternalID, "Name": mapping.Name, "HouseNumber": mapping.HouseNumber, "Suffix": mapping.Suffix,
		"StreetType": mapping.StreetType, "StreetName": mapping.StreetName, "Line1": mapping.Line1, "Line2": mapping.Line2,
		"PostalCode": mapping.PostalCode, "City": mapping.City, "InseeCode": mapping.InseeCode, "Country": mapping.Country,
		"Lat": mapping.Lat, "Lon": mapping.Lon, "Pair": mapping.Pair, "Shape": mapping.Shape, "X": mapping.X, "Y": mapping.Y,
		"Hours": mapping.Hours, "Monday": mapping.Monday, "Tuesday": mapping.Tuesday, "Wednesday": mapping.Wednesday,
		"Thursday": mapping.Thursday, "Friday": mapping.Friday, "Saturday": mapping.Saturday, "Sunday": mapping.Sunday,
		"Phone": mapping.Phone, "Email": mapping.Email, "Website": mapping.Website, "Tags": mapping.Tags,
	}
}

// realNames are names of columns in files of others that the table does not have as they stand.
func realNames() map[mapping.Field][]string {
	return map[mapping.Field][]string{
		mapping.ExternalID:  {"id_magasin_interne", "Code du point de vente", "ID_SITE_2024", "num_etab", "REFERENCE_LIEU", "identifiant_unique_lieu", "code_agence"},
		mapping.Name:        {"Nom du magasin", "NOM_ETAB_COURT", "nom_du_lieu", "Nom de la structure", "LIBELLE_SITE", "nom_equipement", "intitule_agence", "Nom du commerce", "nom point de vente"},
		mapping.Line1:       {"Adresse du magasin", "ADRESSE_ETAB", "adresse_1_ligne", "Adresse (n° et rue)", "adresse géographique", "ADR_LIGNE1", "adresse_du_lieu"},
		mapping.HouseNumber: {"num", "Numéro dans la voie", "NUM_VOIE_SITE"},
		mapping.StreetName:  {"Voie (libellé)", "RUE_SITE", "nom_de_la_voie"},
		mapping.PostalCode:  {"CP_SITE", "Code Postal du magasin", "cod_postal", "CodePostalEtab", "cp_ville"},
		mapping.City:        {"Ville du magasin", "COMMUNE_SITE", "nom_de_la_commune", "Localité du site", "ville_etab"},
		mapping.InseeCode:   {"code_insee_de_la_commune", "INSEE_COM_SITE", "Code commune (INSEE)"},
		mapping.Country:     {"pays_du_site", "Pays"},
		mapping.Lat:         {"Latitude (WGS84)", "lat_dd", "latitude_site", "GPS_LATITUDE", "coord_lat_wgs84"},
		mapping.Lon:         {"Longitude (WGS84)", "lon_dd", "longitude_site", "GPS_LONGITUDE", "coord_lon_wgs84"},
		mapping.Pair:        {"coordonnees_gps_lieu", "Point géographique", "geo_point_site", "latitude_longitude"},
		mapping.Hours:       {"Horaires du magasin", "HEURES_OUV", "jours_et_horaires", "Horaires d'accueil"},
		mapping.Phone:       {"Téléphone du magasin", "TEL_SITE", "n° de tél.", "Téléphone accueil", "contact_tel", "tel_public"},
		mapping.Email:       {"Email du magasin", "MAIL_SITE", "e_mail_contact", "Courriel public", "adresse_mel"},
		mapping.Website:     {"Site Web du magasin", "URL_SITE", "lien_web", "page_web", "Adresse du site"},
		mapping.Tags:        {"mots-clés du lieu", "Etiquettes site"},
	}
}

// drawFile draws the file of a seed: its form, its damages, a group for most fields, and columns that are none.
func (d *drawer) drawFile(seed uint64) inventedFile {
	d.Rand, d.used = rand.New(rand.NewPCG(seed, 20)), map[string]bool{}
	d.rows = 2 + d.IntN(14)
	d.form = fileForm{
		kind:      pick(d, "csv", "csv", "csv", "csv", "xlsx", "xlsx", "list", "wrapped", "ndjson", "geojson", "geojson"),
		separator: pick(d, ",", ";", ";", "\t", "|"), quotesAll: d.chance(0.3),
		encoding: pick(d, "utf-8", "utf-8", "utf-8 with mark", "windows-1252", "utf-16"),
		lineEnd:  pick(d, "\n", "\r\n"), asNumbers: d.chance(0.5),
	}
	d.damages = nil
	for _, damage := range []string{"spaces", "control", "html", "line end", "empty", "no scheme"} {
		if d.chance(0.25) {
			d.damages = append(d.damages, damage)
		}
	}
	f := inventedFile{form: d.form}
	for n := range d.rows {
		f.rows = append(f.rows, n)
	}
	for _, draw := range []func() []group{
		d.drawIDs, d.drawNames, d.drawAddresses, d.drawPositions, d.drawContacts, d.drawHours, d.drawTags, d.drawExtras,
	} {
		f.groups = append(f.groups, draw()...)
	}
	if d.chance(0.3) && !d.hasTwoNames {
		d.Shuffle(len(f.groups), func(i, j int) { f.groups[i], f.groups[j] = f.groups[j], f.groups[i] })
	}
	f.repeatsHeader = d.chance(0.15) && (d.form.kind == "csv" || d.form.kind == "xlsx")
	return f
}

func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

func (d *drawer) chance(p float64) bool { return d.Float64() < p }

// drawName draws the name of a column that no other has: mostly one of the table, in some spelling, otherwise a real one. A prefix makes
// it a member of a member.
func (d *drawer) drawName(f mapping.Field, prefix string) string {
	for {
		name := pick(d, d.names[f]...)
		if others := realNames()[f]; len(others) > 0 && d.chance(0.25) {
			name = pick(d, others...)
		} else {
			name = d.spell(name)
		}
		if key := strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "", ".", "").Replace(name)); !d.used[key] {
			d.used[key] = true
			return prefix + name
		}
	}
}

// accents are words of the table as people write them.
var accents = strings.NewReplacer("numero", "numéro", "telephone", "téléphone", "libelle", "libellé", "denomination", "dénomination",
	"intitule", "intitulé", "etablissement", "établissement", "geographique", "géographique")

// spell writes a name of the table, which is in small letters and without accents, as a file has it.
func (d *drawer) spell(name string) string {
	words := strings.Fields(name)
	switch d.IntN(6) {
	case 0:
		return accents.Replace(name)
	case 1:
		return strings.ToUpper(strings.Join(words, "_"))
	case 2:
		return strings.ToUpper(name[:1]) + accents.Replace(name[1:])
	case 3:
		return strings.Join(words, "-")
	}
	return strings.Join(words, "_")
}

// newGroup makes a group of columns. draw gives the plain cells of a row and what they mean; the cells are damaged by damage.
func (d *drawer) newGroup(names []string, draw func(row int) (plain []string, means map[mapping.Field]string)) group {
	g := group{names: names}
	for n := range d.rows {
		plain, means := draw(n)
		g.rows = append(g.rows, groupRow{slices.Clone(plain), plain, means})
	}
	return g
}

// damageTexts damages the cells of a group of one column whose text means one field, or none.
func (d *drawer) damageTexts(g group, f mapping.Field) group {
	for n := range g.rows {
		row := &g.rows[n]
		for _, damage := range d.damages {
			if d.chance(0.3) && row.cells[0] != "" {
				d.damageText(row, damage, f)
			}
		}
	}
	return g
}

// damageText damages one cell. An empty sign takes its meaning away.
func (d *drawer) damageText(row *groupRow, damage string, f mapping.Field) {
	cell := row.cells[0]
	middle := strings.IndexByte(cell, ' ')
	switch {
	case damage == "empty" && f != mapping.ExternalID:
		row.cells[0], row.plain[0] = pick(d, "-", "NC", "n/a", "null", "--"), ""
		for field := range row.means {
			row.means[field] = ""
		}
	case damage == "spaces":
		row.cells[0] = " " + strings.ReplaceAll(cell, " ", "  ") + pick(d, " ", "\t", "\u00a0")
	case damage == "control" && d.form.kind != "xlsx":
		_, first := utf8.DecodeRuneInString(cell)
		row.cells[0] = cell[:first] + pick(d, "\x07", "\x1f", "\x0e") + cell[first:]
	case damage == "line end" && middle > 0 && d.form.kind != "xlsx" && f != "" && f != mapping.Hours: // there lines stay
		row.cells[0] = cell[:middle] + "\n" + cell[middle+1:]
	case damage == "html" && f != mapping.Website && f != mapping.Email:
		entities := strings.NewReplacer("é", "&eacute;", "à", "&#224;")
		row.cells[0] = pick(d, html.EscapeString(cell), entities.Replace(cell), "<b>"+cell+"</b>")
	}
}

// text makes the group of a column with one text a row, each the meaning of a field.
func (d *drawer) text(f mapping.Field, prefix string, draw func(row int) (cell, means string)) group {
	g := d.newGroup([]string{d.drawName(f, prefix)}, func(n int) ([]string, map[mapping.Field]string) {
		cell, want := draw(n)
		return []string{cell}, map[mapping.Field]string{f: want}
	})
	return d.damageTexts(g, f)
}

func (d *drawer) drawIDs() []group {
	if d.chance(0.2) {
		return nil
	}
	form := pick(d, "S-%03d", "%05d", "%d.0", "FR/%d", "%d", "magasin %d")
	return []group{d.newGroup([]string{d.drawName(mapping.ExternalID, "")}, func(n int) ([]string, map[mapping.Field]string) {
		id := fmt.Sprintf(form, 100+7*n)
		want := strings.TrimSuffix(strings.NewReplacer("/", "-", " ", "-").Replace(id), ".0")
		return []string{id}, map[mapping.Field]string{mapping.ExternalID: want}
	})}
}
