package api

import (
	"context"
	"net/http"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/sitefile"
	"lieudit/schemas/body"
)

// exportSitesEndpoint is the file of a referential's active sites. A page of them is held at a time.
func (h *handler) exportSitesEndpoint() endpoint {
	type exportRequest struct{ format sitefile.Format }
	decoder := kit.NewDecoder[body.ExportSites]()
	return newEndpoint(func(r *http.Request) (exportRequest, error) {
		asked, err := decoder.DecodeQuery(r)
		return exportRequest{chooseFormat(asked, r.Header)}, err
	}, wrapRead(h, func(ctx context.Context, c call, req exportRequest) (any, error) {
		if _, err := h.LocationQueries.FindReferential(ctx, c.account(), c.code()); err != nil {
			return nil, err
		}
		f, err := newSiteExport(req.format, h.LocationQueries.ActiveSites(ctx, c.account(), c.code()))
		if err != nil {
			return nil, err
		}
		return f, nil
	}))
}

func chooseFormat(in body.ExportSites, h http.Header) sitefile.Format {
	switch {
	case in.Format == "geojson":
		return sitefile.GeoJSON
	case in.Format == "ndjson":
		return sitefile.NDJSON
	case in.CSVDialect == "standard":
		return sitefile.CSV(csvfile.RFC4180)
	case in.CSVDialect == "excel":
		return sitefile.CSV(csvfile.FrenchExcel)
	}
	return sitefile.CSV(csvfile.PreferredDialect(h))
}
