package geocode_test

import (
	"fmt"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/locations/geocode"
	"lieudit/schemas/locations"
)

// spread are addresses of several departments. The latitude of each tells it apart.
func spread() []ban.Row {
	var rows []ban.Row
	add := func(lat float64, code, postcode, commune, street string, numbers ...uint32) {
		for i, n := range numbers {
			id := fmt.Sprintf("%s_%04d_%05d", code, len(rows), n)
			rows = append(rows, ban.Row{ID: id, Numero: n, Voie: street, CodePostal: postcode, CodeInsee: code, Commune: commune,
				Lon: 3.5, Lat: lat + float64(i)/1000})
		}
	}
	add(44.50, "48095", "48000", "Mende", "Rue Haute", 1, 10)
	add(44.51, "48095", "48000", "Mende", "Rue du Champ Grand", 1)
	add(44.52, "48095", "48000", "Mende", "Rue Simone Veil", 1, 3)
	add(44.53, "48095", "48000", "Mende", "Place de la Mairie", 1)
	add(44.60, "48080", "48300", "Langogne", "Boulevard Notre-Dame", 36)
	add(44.61, "48080", "48300", "Langogne", "Rue de Pierrefiche", 1, 2)
	add(44.62, "48112", "48300", "Pierrefiche", "Rue du Four", 5)
	add(44.80, "48140", "48200", "Saint-Chély-d'Apcher", "Rue Basse", 7)
	add(44.81, "48090", "48140", "Le Malzieu-Ville", "Rue Neuve", 7)
	add(45.57, "73031", "73000", "Bassens", "Rue du Four", 8)
	add(48.85, "75106", "75006", "Paris 6e Arrondissement", "Rue de Seine", 12)
	add(48.86, "75107", "75007", "Paris 7e Arrondissement", "Rue de Lille", 12)
	add(43.28, "13206", "13006", "Marseille 6e Arrondissement", "Rue Paradis", 20)
	add(41.92, "2A004", "20000", "Ajaccio", "Cours Napoléon", 10)
	add(42.70, "2B033", "20200", "Bastia", "Rue Droite", 10)
	add(-20.88, "97411", "97400", "Saint-Denis", "Rue de Paris", 30)
	rows = append(rows, ban.Row{ID: "48095_b001", Kind: ban.Locality, Voie: "Le Chapitre", CodePostal: "48000", CodeInsee: "48095",
		Commune: "Mende", Lon: 3.5, Lat: 44.58})
	return rows
}

// fields is an address with all fields: ligne_1, ligne_2, code_postal, commune, code_insee.
func fields(line1, line2, postcode, city, code string) locations.Content {
	return coded(at(line1, line2, postcode, city), code)
}

func TestAnAddressIsReadInEachWayThatPeopleWriteIt(t *testing.T) {
	t.Parallel()
	checkPlaces(t, spread(), map[string]place{
		"in fields":                            {fields("10 rue Haute", "", "48000", "Mende", ""), 44.501},
		"in one line":                          {fields("10 rue Haute 48000 Mende", "", "", "", ""), 44.501},
		"in one line and in fields":            {fields("10 rue Haute, 48000 MENDE", "", "48000", "Mende", ""), 44.501},
		"in one line, the commune in a field":  {fields("10 rue Haute, 48 000", "", "", "Mende", ""), 44.501},
		"in one line, the postcode in a field": {fields("10 rue Haute - 48000 Mende", "", "48000", "", ""), 44.501},
		"in one line, the town in the next":    {fields("10 rue Haute", "48000 MENDE CEDEX", "", "", ""), 44.501},
		"the town before the street":           {fields("48000 Mende, 10 rue Haute", "", "48000", "Mende", ""), 44.501},
		"the town behind the street":           {fields("10 rue Haute Mende", "", "48000", "Mende", ""), 44.501},
		"without the commune":                  {fields("10 rue Haute", "", "48000", "", ""), 44.501},
		"without the postcode":                 {fields("10 rue Haute", "", "", "Mende", ""), 44.501},
		"with the code alone":                  {fields("10 rue Haute", "", "", "", "48095"), 44.501},
		"the postcode beside the commune":      {fields("10 rue Haute", "", "", "48000 MENDE", ""), 44.501},
		"in capitals with CEDEX":               {fields("10 RUE HAUTE", "", "48000", "MENDE CEDEX 9", ""), 44.501},
		"a CEDEX postcode":                     {fields("10 RUE HAUTE", "BP 12345", "48909", "MENDE CEDEX 9", ""), 44.501},
		"two postcodes of one place":           {fields("10 RUE HAUTE 48909 MENDE CEDEX 9", "", "48000", "Mende", "48095"), 44.501},
		"the country before the postcode":      {fields("10 rue Haute", "", "F-48000", "Mende", ""), 44.501},
		"a blank in the postcode":              {fields("10 rue Haute", "", "48 000", "Mende", ""), 44.501},
		"the street in the second line":        {fields("Espace Simone Veil", "10 rue Haute", "48000", "Mende", ""), 44.501},
		"a number before a street":             {fields("rue Simone Veil", "10 rue Haute", "48000", "Mende", ""), 44.501},
		"a building":                           {fields("10 rue Haute", "Bâtiment C, 2e étage", "48000", "Mende", ""), 44.501},
		"the code for the postcode":            {fields("10 rue Haute", "", "48095", "Mende", ""), 44.501},
		"a code that is another's postcode":    {fields("7 rue Basse", "", "48140", "Saint-Chély-d'Apcher", ""), 44.80},
		"that code in one line":                {fields("7 rue Basse, 48140 Saint-Chély-d'Apcher", "", "", "", ""), 44.80},
		"that postcode in one line":            {fields("7 rue Neuve, 48140 Le Malzieu-Ville", "", "", "", ""), 44.81},
		"that postcode by itself":              {fields("7 rue Neuve", "", "48140", "Le Malzieu-Ville", ""), 44.81},
		"the department for the postcode":      {fields("10 rue Haute", "", "48", "Mende", ""), 44.501},
		"an arrondissement by postcode":        {fields("12 rue de Seine", "", "75006", "Paris", ""), 48.85},
		"an arrondissement by code":            {fields("12 rue de Seine", "", "75006", "PARIS 06", "75106"), 48.85},
		"the city's code":                      {fields("12 rue de Seine", "", "75006", "Paris", "75056"), 48.85},
		"Marseille with its number":            {fields("20 rue Paradis", "", "13006", "MARSEILLE 06", ""), 43.28},
		"Marseille CEDEX":                      {fields("20 rue Paradis", "", "13286", "MARSEILLE CEDEX 06", ""), 43.28},
		"South Corsica":                        {fields("10 cours Napoléon", "", "20000", "Ajaccio", "2A004"), 41.92},
		"the code in small letters":            {fields("10 cours Napoléon", "", "20000", "Ajaccio", "2a004"), 41.92},
		"Corsica, CEDEX":                       {fields("10 rue Droite", "", "20920", "BASTIA CEDEX", ""), 42.70},
		"overseas":                             {fields("30 rue de Paris", "", "97400", "Saint-Denis", "97411"), -20.88},
		"overseas by country":                  {abroad(fields("30 rue de Paris", "", "97400", "Saint-Denis", ""), "RE"), -20.88},
		"a lieu-dit":                           {fields("Le Chapitre", "", "48000", "Mende", ""), 44.58},
		"a street behind other words":          {fields("bar, place de la Mairie", "", "48000", "Mende", ""), 44.53},
		"the town alone":                       {fields("", "", "48300", "Pierrefiche", ""), 44.62},
		"the town alone in the line":           {fields("48300 PIERREFICHE", "", "", "", ""), 44.62},
		"the town alone, twice":                {fields("48300 PIERREFICHE", "", "48300", "Pierrefiche", ""), 44.62},
		"the town alone without postcode":      {fields("PIERREFICHE", "", "48300", "Pierrefiche", ""), 44.62},
	})
}

func TestWhatACarefulPersonWouldNotPlaceIsNotPlaced(t *testing.T) {
	t.Parallel()
	checkPlaces(t, spread(), map[string]place{
		"a town that the vintage does not have":    {fields("56390 GRAND-CHAMP", "", "", "", ""), 0},
		"that town in fields":                      {fields("", "", "56390", "GRAND-CHAMP", ""), 0},
		"a street of a town that is not there":     {fields("36 boulevard Notre-Dame - 13006", "", "", "", ""), 0},
		"a town that is named like a street":       {fields("Rue de Grandchamp", "", "48000", "Mende", ""), 0},
		"a building that is named like a street":   {fields("Espace Simone Veil", "", "48000", "Mende", ""), 0},
		"a street that is merely alike":            {fields("rue Simone Weill", "", "48000", "Mende", ""), 0},
		"a commune that shares one word":           {fields("7 rue Basse", "", "48200", "Saint-Parres", ""), 0},
		"the centre for a street":                  {fields("14 rue du Nulle Part", "", "48300", "Pierrefiche", ""), 0},
		"the centre for a building":                {fields("Salle des fêtes", "", "48300", "Pierrefiche", ""), 0},
		"an address without a place":               {fields("36 boulevard Notre-Dame", "", "", "", ""), 0},
		"a commune that another is named like":     {fields("", "", "", "Bassens", ""), 0},
		"a street of such a commune":               {fields("8 rue du Four", "", "", "Bassens", ""), 0},
		"a commune without a code, merely alike":   {fields("", "", "", "Langonne", ""), 0},
		"a number of another arrondissement":       {fields("12 rue de Lille", "", "75006", "Paris", ""), 0},
		"a postcode that several communes have":    {fields("", "", "48300", "", ""), 0},
		"a country without that department":        {abroad(fields("10 rue Haute", "", "", "Mende", ""), "RE"), 0},
		"a line of a postcode of another place":    {fields("10 rue Haute, 48300 Langogne", "", "48000", "Mende", ""), 0},
		"a second line of a postcode of another":   {fields("10 rue Haute", "48300 Langogne", "48000", "Mende", ""), 0},
		"a commune field with another postcode":    {fields("10 rue Haute", "", "48000", "48300 Mende", ""), 0},
		"a postcode of no commune, another prefix": {fields("10 rue Haute", "", "75999", "Mende CEDEX", ""), 0},
		"a code of another commune":                {fields("10 rue Haute", "", "48000", "Mende", "48080"), 0},
		"a code of another department":             {fields("10 rue Haute", "", "48000", "Mende", "63113"), 0},
		"the other Corsica":                        {fields("10 cours Napoléon", "", "20000", "Ajaccio", "2B033"), 0},
		"a postcode that lost its nought":          {fields("10 rue Haute", "", "1000", "Mende", ""), 0},
		"a department for the postcode":            {fields("10 rue Haute", "", "75", "Mende", ""), 0},
	})
}

// An id_ban is believed where no code next to it says that the address is elsewhere.
func TestAnIDIsBelievedUnlessACodeContradictsIt(t *testing.T) {
	t.Parallel()
	rows := spread()
	rows[0].IDBan = banID
	checkPlaces(t, rows, map[string]place{
		"alone":                              {locations.Content{IDBan: banID}, 44.50},
		"with its codes":                     {with(fields("", "", "48000", "", "48095"), banID), 44.50},
		"with another street of its commune": {with(fields("zzyx", "", "48000", "Mende", ""), banID), 44.50},
		"with another postcode":              {with(fields("", "", "63000", "", ""), banID), 0},
		"with another code":                  {with(fields("", "", "", "", "63113"), banID), 0},
		"with another address":               {with(fields("20 rue Paradis", "", "13006", "Marseille", ""), banID), 43.28},
		"with another postcode in the line":  {with(fields("zzyx 63000 Clermont-Ferrand", "", "", "", ""), banID), 0},
	})
}

func TestTheCountriesOfTheBANAreThoseOfFrance(t *testing.T) {
	t.Parallel()
	for country, want := range map[string]bool{
		"": true, "FR": true, "France": true, "RE": true, "La Réunion": true, "Saint-Martin": true, "-": true,
		"BE": false, "Monaco": false, "48": false,
	} {
		if got := geocode.IsFrenchCountry(country); got != want {
			t.Errorf("%q: %v", country, got)
		}
	}
}

// Whatever stands in the lines, what is placed lies where the fields say.
func FuzzWhatIsPlacedLiesWhereItsCodesSay(f *testing.F) {
	s := geocode.New(serve(f, spread()))
	for _, seed := range [][4]string{
		{"10 rue Haute", "", "48000", "48095"}, {"10 rue Haute, 48300 Langogne", "", "48000", ""}, {"48 000", "F-48000 MENDE", "", ""},
		{"12 rue de Lille 75007", "", "75006", "75056"}, {"12345 rue Haute", "48", "48", "2a004"}, {"\xff48000\x00", "(48000", "4800 0", "é"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, line1, line2, postcode, code string) {
		m, ok, err := s.Resolve(t.Context(), fields(line1, line2, postcode, "", code))
		if err != nil {
			t.Fatal(err)
		}
		if ok && postcode == "48000" && m.CityCode != "48095" || ok && code == "75106" && m.CityCode != code {
			t.Errorf("%q, %q, %s, %s is placed at %s", line1, line2, postcode, code, m.Label)
		}
	})
}

// place is a site and the latitude at which it is placed, 0 where it is not.
type place struct {
	content locations.Content
	lat     float64
}

// checkPlaces places sites in a vintage of a few rows. Centres of communes lie within a thousandth of a degree of their rows.
func checkPlaces(t *testing.T, rows []ban.Row, cases map[string]place) {
	t.Helper()
	s := geocode.New(serve(t, rows))
	for name, c := range cases {
		p, ok, err := s.Geocode(t.Context(), c.content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ok != (c.lat != 0) || ok && (p.Lat < c.lat-0.0005 || p.Lat > c.lat+0.0005) {
			m, _, _ := s.Resolve(t.Context(), c.content)
			t.Errorf("%s: %v, %v (%s), want %v", name, ok, p.Lat, m.Label, c.lat)
		}
	}
}
