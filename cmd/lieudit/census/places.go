package census

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
	"lieudit/schemas/site"
)

// place is an address of the vintage that a fresh service invents.
type place struct {
	address  site.Address
	lat, lon float64
}

// invented are the house numbers of that vintage.
func invented(ctx context.Context) ([]place, error) {
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
	var all []place
	for row, err := range ban.Read(r, "specimen", &ban.Report{}) {
		if err != nil {
			return nil, errors.Join(err, r.CloseWithError(io.ErrClosedPipe), <-written)
		}
		if row.Kind == ban.HouseNumber {
			all = append(all, place{site.Address{
				Line1:      strings.TrimSpace(fmt.Sprintf("%d%s %s", row.Numero, row.Rep, row.Voie)),
				PostalCode: row.CodePostal, City: row.Commune,
			}, row.Lat, row.Lon})
		}
	}
	return all, <-written
}

// row is one site of a body.
type row struct {
	ExternalID string `json:"external_id"`
	site.Content
}

// set is the body of a sync.
type set struct {
	Rows []row `json:"sites"`
}

var trades = []string{"Boulangerie", "Pharmacie", "Librairie", "Fromagerie", "Opticien", "Quincaillerie", "Fleuriste", "Épicerie"}

// sites are so many shops at the places from an offset on; with positions, unless their addresses are to place them.
func (r *run) sites(n, offset int, placed bool) set {
	s := set{Rows: make([]row, n)}
	for i := range s.Rows {
		p := r.places[(offset+i)%len(r.places)]
		trade := trades[(offset+i)%len(trades)]
		s.Rows[i] = row{fmt.Sprintf("shop-%06d", i), site.Content{
			Name: trade + " " + p.address.City + fmt.Sprintf(" n° %d", i), Address: &p.address,
			Phone: "04 66 00 00 00", Website: "https://www.exemple.fr/" + fmt.Sprint(i), Tags: []string{strings.ToLower(trade), "ouvert"},
			Hours: []byte(`{"usual":{"default":[{"start":"09:00","end":"19:00"}]}}`),
		}}
		if placed {
			s.Rows[i].Lat, s.Rows[i].Lon = &p.lat, &p.lon
		}
	}
	return s
}
