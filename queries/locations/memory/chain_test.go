package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/specimen"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// france are invented addresses all over the country.
var france = sync.OnceValues(func() ([]ban.Row, error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := specimen.Write(context.Background(), &file, communes, specimen.Order{Addresses: 150_000, Seed: 1}); err != nil {
		return nil, err
	}
	var rows []ban.Row
	var report ban.Report
	for row, err := range ban.Read(&file, "france.csv", &report) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
})

var (
	trades = []string{"Boulangerie", "Pharmacie", "Garage", "Opticien", "Librairie", "Boucherie", "Fleuriste", "Pressing", "Supermarché", "Station-service", "Salon de coiffure", "Banque"}
	owners = []string{"Dupont", "Martin", "de l'Église", "du Marché", "Saint-Michel", "des Halles", "Lefèvre", "& Fils", "du Centre", "Le Gall", "Au Bon Coin", "de la Gare", "Bœuf", "Château", "Müller"}
	traits = []string{"drive", "accès PMR", "wi-fi", "parking", "ouvert le dimanche", "click & collect", "livraison", "24/7", "retrait 1 h", "bio"}
)

const hours = `{"lundi":[["09:00","12:30"],["14:00","19:00"]],"mardi":[["09:00","12:30"],["14:00","19:00"]],"mercredi":[["09:00","19:00"]],"jeudi":[["09:00","19:00"]],"vendredi":[["09:00","19:30"]],"samedi":[["09:00","18:00"]]}`

// chainOfShops is the sites of a customer with shops all over the country.
func chainOfShops(t testing.TB, account string, n int) []table.Site {
	t.Helper()
	addresses, err := france()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(len(account)), uint64(n)))
	rows := make([]table.Site, n)
	for i := range rows {
		rows[i] = searchtest.NewSiteRow(account, fmt.Sprint("reseau-", i%3), fmt.Sprintf("MAG-%05d", i), shop(rng, addresses[rng.IntN(len(addresses))], i))
	}
	return rows
}

func shop(rng *rand.Rand, a ban.Row, i int) locations.StoredSite {
	line := strings.TrimSpace(fmt.Sprint(a.Numero, a.Rep, " ", a.Voie))
	c := locations.Content{
		Name:    fmt.Sprintf("%s %s %s", trades[rng.IntN(len(trades))], owners[rng.IntN(len(owners))], a.Commune),
		Address: &locations.SiteAddress{Line1: line, PostalCode: a.CodePostal, City: a.Commune, InseeCode: a.CodeInsee},
		Hours:   json.RawMessage(hours), Phone: fmt.Sprintf("04 66 %02d %02d %02d", i%100, i/100%100, i/10000),
		Email: fmt.Sprintf("magasin%05d@enseigne-exemple.fr", i), Website: fmt.Sprintf("https://www.enseigne-exemple.fr/magasins/%05d", i),
		Properties: json.RawMessage(fmt.Sprintf(`{"secteur":"S%02d","surface":%d}`, i%40, 80+i%900)),
	}
	for _, j := range rng.Perm(len(traits))[:rng.IntN(4)] {
		c.Tags = append(c.Tags, traits[j])
	}
	return locations.StoredSite{Content: c, Position: &locations.Position{Lat: a.Lat, Lon: a.Lon, Source: locations.SourceBAN, IDBan: a.ID, Score: 0.97}}
}
