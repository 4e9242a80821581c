package sitefile_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/sitefile/mapping"
	"lieudit/queries/address/commune"
)

// drawNames draws the names of sites, each with a number, so that no two rows are the same.
func (d *drawer) drawNames() []group {
	if d.hasTwoNames = false; d.chance(0.05) {
		return nil
	}
	if d.hasTwoNames = d.form.kind == "csv" && d.chance(0.1); d.hasTwoNames {
		// The fuller of two would win.
		d.damages = slices.DeleteFunc(d.damages, func(damage string) bool { return damage == "empty" })
	}
	names := d.text(mapping.Name, "", func(n int) (string, string) {
		kind := pick(d, "Boulangerie", "Café de l'Hôtel", "Pharmacie", "Agence", `Chez "Léa"`, "Maison & Fils", "Épicerie, bar", "Garage")
		name := fmt.Sprintf("%s %s %d", kind, pick(d, "Dupont", "du Château", "Saint-Roch", "Élodie", "des Lilas", "N°"), n+1)
		return name, name
	})
	if !d.hasTwoNames {
		return []group{names}
	}
	// A second column of the same name is an extra one: of two alike the first is the field's.
	others := d.newGroup(names.names, func(n int) ([]string, map[mapping.Field]string) { return []string{"autre " + strconv.Itoa(n)}, nil })
	return []group{names, others}
}

// drawAddresses draws addresses in one of the forms that files have: one line with all, a line and columns of postcode and town, or
// parts of a street. In JSON they may be members of a member.
func (d *drawer) drawAddresses() (groups []group) {
	if d.chance(0.1) {
		return nil
	}
	places := make([]*commune.Commune, d.rows)
	for n := range places {
		places[n] = pick(d, d.communes...)
	}
	prefix := ""
	if d.form.kind != "csv" && d.form.kind != "xlsx" && d.chance(0.3) {
		prefix = pick(d, "adresse.", "address.", "fields.")
	}
	switch d.IntN(4) {
	case 0:
		return []group{d.drawWholeLines(prefix, places)}
	case 1:
		groups = append(groups, d.drawStreetParts(prefix))
	default:
		groups = append(groups, d.text(mapping.Line1, prefix, func(int) (string, string) {
			line := d.drawNumber() + " " + d.drawStreet()
			return line, line
		}))
	}
	groups = append(groups, d.drawTowns(prefix, places)...)
	return append(groups, d.drawFurther(prefix, places)...)
}

// drawFurther draws what an address may say besides: an INSEE code, a second line, the country.
func (d *drawer) drawFurther(prefix string, places []*commune.Commune) (groups []group) {
	if d.chance(0.2) {
		isNumber := d.chance(0.3)
		groups = append(groups, d.text(mapping.InseeCode, prefix, func(n int) (string, string) {
			if isNumber {
				return strings.TrimLeft(places[n].Code, "0"), places[n].Code
			}
			return places[n].Code, places[n].Code
		}))
	}
	if d.chance(0.2) {
		groups = append(groups, d.text(mapping.Line2, prefix, func(int) (string, string) {
			line := pick(d, "Bâtiment B", "ZA des Lilas", "BP 12", "Centre commercial")
			return line, line
		}))
	}
	if d.chance(0.15) {
		groups = append(groups, d.text(mapping.Country, prefix, func(int) (string, string) { return "France", "France" }))
	}
	return groups
}

// drawTowns draws postcodes and towns: in columns of their own, either of which may be absent; or both in the column of the town.
func (d *drawer) drawTowns(prefix string, places []*commune.Commune) (groups []group) {
	if d.chance(0.1) {
		return []group{d.newGroup([]string{d.drawName(mapping.City, prefix)}, func(n int) ([]string, map[mapping.Field]string) {
			postcode, town := places[n].Postcodes()[0], places[n].Name
			return []string{postcode + " " + town}, map[mapping.Field]string{mapping.PostalCode: postcode, mapping.City: town}
		})}
	}
	if d.chance(0.9) {
		groups = append(groups, d.drawPostcodes(prefix, places))
	}
	if d.chance(0.9) {
		isPost := d.chance(0.1)
		groups = append(groups, d.text(mapping.City, prefix, func(n int) (string, string) {
			town := places[n].Name
			if isPost {
				town = strings.ToUpper(town) + pick(d, " CEDEX", " CEDEX 2", "")
			}
			return town, town
		}))
	}
	return groups
}

func (d *drawer) drawStreet() string {
	return pick(d, "rue", "avenue", "place", "boulevard", "chemin", "impasse") + " " +
		pick(d, "de la Paix", "Victor Hugo", "du 8 mai 1945", "des Écoles", "Jean-Jaurès", "de l'Église", "du Général de Gaulle")
}

func (d *drawer) drawNumber() string {
	return strconv.Itoa(1+d.IntN(150)) + pick(d, "", "", " bis", " B")
}

// drawWholeLines draws addresses with postcode and town in one line.
func (d *drawer) drawWholeLines(prefix string, places []*commune.Commune) group {
	form := pick(d, "%s, %s %s", "%s %s %s", "%s - %s %s", "%s, %s, %s", "%s, %s %s, France")
	return d.newGroup([]string{d.drawName(mapping.Line1, prefix)}, func(n int) ([]string, map[mapping.Field]string) {
		line, postcode := d.drawNumber()+" "+d.drawStreet(), places[n].Postcodes()[0]
		return []string{fmt.Sprintf(form, line, postcode, places[n].Name)},
			map[mapping.Field]string{mapping.Line1: line, mapping.PostalCode: postcode, mapping.City: places[n].Name}
	})
}

// drawStreetParts draws a number and a street in columns of their own, the type of the street in a third one or not.
func (d *drawer) drawStreetParts(prefix string) group {
	fields := []mapping.Field{mapping.HouseNumber, mapping.StreetName}
	hasType, hasSuffix := d.chance(0.4), d.chance(0.3)
	switch {
	case hasType:
		fields = []mapping.Field{mapping.HouseNumber, mapping.StreetType, mapping.StreetName}
	case hasSuffix:
		fields = []mapping.Field{mapping.HouseNumber, mapping.Suffix, mapping.StreetName}
	}
	var names []string
	for _, f := range fields {
		names = append(names, d.drawName(f, prefix))
	}
	return d.newGroup(names, func(int) ([]string, map[mapping.Field]string) {
		number, street := strconv.Itoa(1+d.IntN(150)), d.drawStreet()
		line := map[mapping.Field]string{mapping.Line1: number + " " + street}
		switch kind, name, _ := strings.Cut(street, " "); {
		case hasType:
			return []string{number, kind, name}, line
		case hasSuffix && d.chance(0.3):
			return []string{number, "bis", street}, map[mapping.Field]string{mapping.Line1: number + " bis " + street}
		case hasSuffix:
			return []string{number, "", street}, line
		}
		return []string{number, street}, line
	})
}

// drawPostcodes draws postcodes, with their zeros or as numbers without.
func (d *drawer) drawPostcodes(prefix string, places []*commune.Commune) group {
	isNumber := d.chance(0.3)
	return d.text(mapping.PostalCode, prefix, func(n int) (string, string) {
		code := places[n].Postcodes()[0]
		if isNumber {
			return strings.TrimLeft(code, "0"), code
		}
		return code, code
	})
}

// drawPositions draws positions in one of the forms that files have. Features have theirs as geometry.
func (d *drawer) drawPositions() []group {
	if d.form.kind != "geojson" && d.chance(0.25) {
		return nil
	}
	form := d.IntN(6)
	if d.form.kind == "geojson" {
		form = 6
	}
	names := d.namePositions(form)
	pair := pick(d, "%v, %v", "%v,%v", "%v %v", "(%v, %v)", "[%v, %v]", "%v;%v")
	isTurned := d.chance(0.3)
	g := d.newGroup(names, func(int) ([]string, map[mapping.Field]string) {
		place := pick(d, d.communes...)
		lat, lon := round(place.Lat, 1e6), round(place.Lon, 1e6)
		if d.chance(0.1) {
			return make([]string, len(names)), nil
		}
		means := map[mapping.Field]string{mapping.Lat: fmt.Sprint(lat), mapping.Lon: fmt.Sprint(lon)}
		return formatPosition(form, lat, lon, pair, isTurned), means
	})
	g.isGeometry = form == 6
	return []group{g}
}

func (d *drawer) namePositions(form int) []string {
	switch form {
	case 0, 1:
		return []string{d.drawName(mapping.Lat, ""), d.drawName(mapping.Lon, "")}
	case 2:
		return []string{d.drawName(mapping.Pair, "")}
	case 5:
		return pick(d, []string{"x_l93", "y_l93"}, []string{"X_Lambert93", "Y_Lambert93"}, []string{"coord_x_l93", "coord_y_l93"})
	}
	return []string{d.drawName(mapping.Shape, "")}
}

// formatPosition writes a position: in two columns, with points or commas; as a pair, which may begin with the longitude; as WKT or
// GeoJSON; in metres of Lambert-93.
func formatPosition(form int, lat, lon float64, pair string, isTurned bool) []string {
	switch form {
	case 0:
		return []string{fmt.Sprint(lat), fmt.Sprint(lon)}
	case 1:
		return []string{strings.Replace(fmt.Sprint(lat), ".", ",", 1), strings.Replace(fmt.Sprint(lon), ".", ",", 1)}
	case 2:
		if isTurned {
			lat, lon = lon, lat
		}
		return []string{fmt.Sprintf(pair, lat, lon)}
	case 3:
		return []string{fmt.Sprintf("POINT (%v %v)", lon, lat)}
	case 5:
		x, y := commune.Lambert93(lon, lat)
		return []string{fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", y)}
	}
	return []string{fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, lon, lat)}
}

func round(x, digits float64) float64 { return math.Round(x*digits) / digits }

// drawContacts draws telephones, e-mail addresses and web sites.
func (d *drawer) drawContacts() (groups []group) {
	if d.chance(0.7) {
		groups = append(groups, d.text(mapping.Phone, "", func(int) (string, string) { return d.drawPhone() }))
	}
	if d.chance(0.5) {
		groups = append(groups, d.text(mapping.Email, "", func(n int) (string, string) {
			address := fmt.Sprintf("%s%d@%s", pick(d, "contact", "accueil", "jean.dupont"), n, pick(d, "exemple.fr", "mairie-x.fr", "gmail.com"))
			return address, address
		}))
	}
	if d.chance(0.5) {
		groups = append(groups, d.text(mapping.Website, "", func(n int) (string, string) {
			rest := fmt.Sprintf("www.exemple-%d.fr%s", n, pick(d, "", "/", "/page?id=1"))
			if scheme := pick(d, "https://", "http://", ""); scheme != "" {
				return scheme + rest, scheme + rest
			}
			return rest, "https://" + rest
		}))
	}
	return groups
}

// drawPhone draws a telephone in one of the ways of writing, and its number.
func (d *drawer) drawPhone() (cell, number string) {
	p := fmt.Sprintf("%d%06d", pick(d, 142, 466, 556, 612, 784), d.IntN(1_000_000)) // of the mainland
	groups := func(sign string) string { return p[:1] + sign + p[1:3] + sign + p[3:5] + sign + p[5:7] + sign + p[7:] }
	return pick(d,
		"0"+groups(" "), "0"+groups("."), "0"+groups("-"), "0"+p, "+33 "+groups(" "), "+33 (0)"+groups(" "), "+33"+p, "0033"+p, p,
		"0"+groups(" ")+" / 06 12 34 56 78", "Tél. : 0"+groups(" "),
	), "+33" + p
}

// drawHours draws opening hours as one text, or in a column for each day.
func (d *drawer) drawHours() []group {
	if d.chance(0.6) {
		return nil
	}
	if d.chance(0.3) {
		return []group{d.drawWeekdays()}
	}
	all := [][2]string{
		{"Mo-Fr 09:00-12:00,14:00-18:00", hoursOf("09:00-12:00 14:00-18:00", "lu", "ma", "me", "je", "ve")},
		{"Mo-Sa 10:00-19:30; Su off", hoursOf("10:00-19:30", "lu", "ma", "me", "je", "ve", "sa")},
		{"Du lundi au vendredi de 9h à 12h et de 14h à 18h", hoursOf("09:00-12:00 14:00-18:00", "lu", "ma", "me", "je", "ve")},
		{"Lundi - Vendredi : 09h00 - 18h00", hoursOf("09:00-18:00", "lu", "ma", "me", "je", "ve")},
		{"24/7", hoursOf("00:00-24:00", "lu", "ma", "me", "je", "ve", "sa", "di")},
		{"sur rendez-vous", "sur rendez-vous"},
		{"mardi 9h-12h, jeudi 14h-17h30", "je 14:00-17:30, ma 09:00-12:00"},
	}
	return []group{d.text(mapping.Hours, "", func(int) (string, string) {
		c := pick(d, all...)
		return c[0], c[1]
	})}
}

// hoursOf is what describeHours says of the same spans on some days.
func hoursOf(spans string, days ...string) string {
	var all []string
	for _, day := range []string{"di", "je", "lu", "ma", "me", "sa", "ve"} { // in the order of letters
		for span := range strings.FieldsSeq(spans) {
			if strings.Contains(strings.Join(days, " "), day) {
				all = append(all, day+" "+span)
			}
		}
	}
	return strings.Join(all, ", ")
}

func (d *drawer) drawWeekdays() group {
	var names []string
	for n, f := range mapping.Weekdays {
		if names = append(names, []string{"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"}[n]); d.chance(0.3) {
			names[n] = d.drawName(f, "")
		}
	}
	days := []string{"lu", "ma", "me", "je", "ve", "sa", "di"}
	closed := pick(d, "Fermé", "fermé", "")
	spans := pick(d, "09:00-12:00 / 14:00-18:00", "9h-12h / 14h-18h", "09:00-12:00,14:00-18:00", "9h à 12h et 14h à 18h",
		"09h00 - 12h00 / 14h00 - 18h00")
	return d.newGroup(names, func(int) ([]string, map[mapping.Field]string) {
		cells, open := make([]string, len(names)), days[:5]
		for n := range cells {
			if cells[n] = closed; n < len(open) {
				cells[n] = spans
			}
		}
		return cells, map[mapping.Field]string{mapping.Hours: hoursOf("09:00-12:00 14:00-18:00", open...)}
	})
}

func (d *drawer) drawTags() []group {
	if d.chance(0.8) {
		return nil
	}
	return []group{d.text(mapping.Tags, "", func(int) (string, string) {
		c := pick(d, [2]string{"bio, drive", "bio|drive"}, [2]string{"bio", "bio"}, [2]string{"a|b", "a|b"})
		return c[0], c[1]
	})}
}

// drawExtras draws columns that mean no field, though some of their contents look so. Two may have one name.
func (d *drawer) drawExtras() (groups []group) {
	extras := []struct {
		name string
		cell func(n int) string
	}{
		{"Surface (m²)", func(int) string { return strconv.Itoa(50 + d.IntN(900)) }},
		{"fax", func(int) string { return fmt.Sprintf("04%08d", d.IntN(99_999_999)) }},
		{"date_maj", func(int) string { return fmt.Sprintf("2025-0%d-1%d", 1+d.IntN(9), d.IntN(10)) }},
		{"commentaire", func(n int) string {
			return pick(d, "à revoir", "ouvert l'été", "parking; accès PMR", "voir 12 rue Haute")
		}},
		{"page_facebook", func(n int) string { return fmt.Sprintf("https://www.facebook.com/x%d", n) }},
		{"siren", func(int) string { return strconv.Itoa(300_000_000 + d.IntN(600_000_000)) }},
		{"nb_places", func(int) string { return strconv.Itoa(d.IntN(50)) }},
		{"Code département", func(int) string { return fmt.Sprintf("%02d", 1+d.IntN(95)) }},
		{"Nom du gérant", func(int) string { return pick(d, "Mme Martin", "M. Durand", "Paul Petit") }},
		{"accessible_pmr", func(int) string { return pick(d, "oui", "non") }},
		{"type", func(int) string { return pick(d, "magasin", "dépôt") }},
		{"population", func(int) string { return strconv.Itoa(10_000 + d.IntN(80_000)) }},
		{"note", func(int) string { return pick(d, "4.5", "3", "") }},
	}
	for range d.IntN(5) {
		e := pick(d, extras...)
		g := d.newGroup([]string{e.name}, func(n int) ([]string, map[mapping.Field]string) { return []string{e.cell(n)}, nil })
		isTable := d.form.kind == "csv" || d.form.kind == "xlsx"
		if d.used[e.name] && !isTable {
			continue // members of one name are one member
		}
		d.used[e.name] = true
		groups = append(groups, d.damageTexts(g, ""))
	}
	return groups
}
