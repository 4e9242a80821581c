package server

import (
	"context"
	"net/http"

	"lieudit/http/grid"
	"lieudit/http/input"
	"lieudit/http/roster"
	"lieudit/schemas/body"
)

// exportSites is the file of a referential's active sites. A page of them is held at a time.
func (a *api) exportSites() endpoint {
	type order struct{ format roster.Format }
	in := input.For[body.ExportSites]()
	return reads(func(r *http.Request) (order, error) {
		asked, err := in.Query(r)
		return order{formatOf(asked, r.Header)}, err
	}, reading(a, func(ctx context.Context, c call, o order) (any, error) {
		if _, err := a.Places.Referential(ctx, c.account(), c.code()); err != nil {
			return nil, err
		}
		f, err := newFile(o.format, a.Places.Active(ctx, c.account(), c.code()))
		if err != nil {
			return nil, err
		}
		return f, nil
	}))
}

func formatOf(in body.ExportSites, h http.Header) roster.Format {
	switch {
	case in.Format == "geojson":
		return roster.GeoJSON
	case in.Format == "ndjson":
		return roster.NDJSON
	case in.Sheet == "standard":
		return roster.CSV(grid.Standard)
	case in.Sheet == "excel":
		return roster.CSV(grid.Excel)
	}
	return roster.CSV(grid.Preferred(h))
}
