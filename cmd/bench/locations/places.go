package locations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"lieudit/cmd/lieudit/service"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/specimen"
	"lieudit/schemas/locations"
)

// syntheticAddress is an address of the vintage that a fresh service invents.
type syntheticAddress struct {
	address  locations.SiteAddress
	lat, lon float64
}

// readSyntheticAddresses are the house numbers of that vintage.
func readSyntheticAddresses(ctx context.Context) ([]syntheticAddress, error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := specimen.Write(ctx, w, communes, service.DemoVintage())
		w.CloseWithError(err)
		written <- err
	}()
	var all []syntheticAddress
	for row, err := range ban.Read(r, "specimen", &ban.Report{}) {
		if err != nil {
			return nil, errors.Join(err, r.CloseWithError(io.ErrClosedPipe), <-written)
		}
		if row.Kind == ban.HouseNumber {
			all = append(all, syntheticAddress{locations.SiteAddress{
				Line1:      strings.TrimSpace(fmt.Sprintf("%d%s %s", row.Numero, row.Rep, row.Voie)),
				PostalCode: row.CodePostal, City: row.Commune,
			}, row.Lat, row.Lon})
		}
	}
	return all, <-written
}

// siteRow is one site of a body.
type siteRow struct {
	ExternalID string `json:"external_id"`
	locations.Content
}

// syncRequest is the body of a sync.
type syncRequest struct {
	Rows []siteRow `json:"sites"`
}

var trades = []string{"Boulangerie", "Pharmacie", "Librairie", "Fromagerie", "Opticien", "Quincaillerie", "Fleuriste", "Épicerie"}

// makeSites are so many shops at the places from an offset on; with positions, unless their addresses are to place them.
func (r *run) makeSites(n, offset int, withPositions bool) syncRequest {
	s := syncRequest{Rows: make([]siteRow, n)}
	for i := range s.Rows {
		p := r.addresses[(offset+i)%len(r.addresses)]
		trade := trades[(offset+i)%len(trades)]
		s.Rows[i] = siteRow{fmt.Sprintf("shop-%06d", i), locations.Content{
			Name: trade + " " + p.address.City + fmt.Sprintf(" n° %d", i), Address: &p.address,
			Phone: "04 66 00 00 00", Website: "https://www.exemple.fr/" + fmt.Sprint(i), Tags: []string{strings.ToLower(trade), "ouvert"},
			Hours: []byte(`{"usual":{"default":[{"start":"09:00","end":"19:00"}]}}`),
		}}
		if withPositions {
			s.Rows[i].Lat, s.Rows[i].Lon = &p.lat, &p.lon
		}
	}
	return s
}
