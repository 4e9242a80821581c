package locations

import (
	"context"
	"fmt"
	"strings"

	"lieudit/cmd/lieudit/service"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/schemas/locations"
)

// syntheticAddress is an address of the invented vintage that a new service serves until it gets a real one.
type syntheticAddress struct {
	address  locations.SiteAddress
	lat, lon float64
}

// readSyntheticAddresses returns the house numbers of that vintage. It generates the same rows again from the same order, instead of asking the
// service. So the service can geocode the address of every site.
func readSyntheticAddresses(ctx context.Context) ([]syntheticAddress, error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	var all []syntheticAddress
	for row, err := range synthetic.Rows(ctx, communes, service.DemoVintage()) {
		if err != nil {
			return nil, err
		}
		if row.Kind == ban.HouseNumber {
			all = append(all, syntheticAddress{locations.SiteAddress{
				Line1:      strings.TrimSpace(fmt.Sprintf("%d%s %s", row.Numero, row.Rep, row.Voie)),
				PostalCode: row.CodePostal, City: row.Commune,
			}, row.Lat, row.Lon})
		}
	}
	return all, nil
}

// siteRow is one site in the body of a sync. The external id is the customer's own id of the site.
type siteRow struct {
	ExternalID string `json:"external_id"`
	locations.Content
}

// syncRequest is the body of a sync.
type syncRequest struct {
	Rows []siteRow `json:"sites"`
}

// shopTypes are the first words of site names, which the text searches look for.
var shopTypes = []string{"Boulangerie", "Pharmacie", "Librairie", "Fromagerie", "Opticien", "Quincaillerie", "Fleuriste", "Épicerie"}

// makeSites returns n shops at the addresses from an offset on, starting over after the last address. Equal arguments give equal sites. Without
// positions the service has to geocode their addresses.
func (r *run) makeSites(n, offset int, withPositions bool) syncRequest {
	s := syncRequest{Rows: make([]siteRow, n)}
	for i := range s.Rows {
		p := r.addresses[(offset+i)%len(r.addresses)]
		shop := shopTypes[(offset+i)%len(shopTypes)]
		s.Rows[i] = siteRow{fmt.Sprintf("shop-%06d", i), locations.Content{
			Name: shop + " " + p.address.City + fmt.Sprintf(" n° %d", i), Address: &p.address,
			Phone: "04 66 00 00 00", Website: "https://www.exemple.fr/" + fmt.Sprint(i), Tags: []string{strings.ToLower(shop), "ouvert"},
			Hours: []byte(`{"hebdo":[{"jours":["lu","ma","me","je","ve","sa"],"de":"09:00","a":"19:00"}]}`),
		}}
		if withPositions {
			s.Rows[i].Lat, s.Rows[i].Lon = &p.lat, &p.lon
		}
	}
	return s
}
