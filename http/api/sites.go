package api

import (
	"context"
	"crypto/sha256"
	"net/http"
	"regexp"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/http/sitefile"
	locationsqueries "lieudit/queries/locations"
	"lieudit/schemas/body"
	locationsschemas "lieudit/schemas/locations"
)

func (h *handler) listSites(ctx context.Context, c call, in body.SitesQuery) (any, error) {
	if _, err := h.LocationQueries.FindReferential(ctx, c.account(), c.code()); err != nil {
		return nil, err
	}
	found, next, err := h.LocationQueries.ListSites(ctx, c.account(), c.code(), locationsqueries.SiteStatus(in.Status), locationsqueries.Page{Cursor: in.Cursor, Limit: in.Limit})
	if err != nil {
		return nil, toListError(err, in.Cursor)
	}
	return body.Sites{Envelope: body.OKEnvelope, Results: append([]locationsschemas.Site{}, found...), Cursor: next}, nil
}

func (h *handler) showSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	return h.LocationQueries.FindSite(ctx, c.account(), c.code(), c.externalID())
}

// externalIDPattern is what external ids are.
var externalIDPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func (h *handler) putSite(ctx context.Context, c call, in body.PutSite) (any, error) {
	if err := checkExternalID(c, in.ExternalID); err != nil {
		return nil, err
	}
	s, isNew, at, err := h.LocationCommands.PutSite(ctx, c.account(), c.metadata(), c.code(), locations.Row{ExternalID: c.externalID(), Content: in.Content})
	if err := h.awaitLocations(ctx, at, err); err != nil {
		return nil, err
	}
	if isNew {
		return createdBody{s}, nil
	}
	return s, nil
}

func (h *handler) patchSite(ctx context.Context, c call, in body.PatchSite) (any, error) {
	if err := checkExternalID(c, in.ExternalID); err != nil {
		return nil, err
	}
	s, at, err := h.LocationCommands.PatchSite(ctx, c.account(), c.metadata(), c.code(), c.externalID(), sitePatch(in).apply)
	return h.awaitSite(ctx, s, at, err)
}

// checkExternalID holds the name of a site in the path to what names are, and that in the body to the one in the path.
func checkExternalID(c call, inBody string) error {
	if !externalIDPattern.MatchString(c.externalID()) {
		return problem.Violations(problem.Violation{
			Type: "string_pattern_mismatch", Loc: []any{"path", "external_id"}, Msg: "String should match pattern '" + externalIDPattern.String() + "'",
			Input: map[string]any{"external_id": c.externalID()},
		})
	}
	if inBody != "" && inBody != c.externalID() {
		return problem.Violations(problem.Violation{
			Type: "value_error", Loc: []any{"body", "external_id"}, Msg: "Value error, a site keeps the external_id of its path",
			Input: map[string]any{"external_id": inBody},
		})
	}
	return nil
}

func (h *handler) deactivateSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	s, at, err := h.LocationCommands.DeactivateSite(ctx, c.account(), c.metadata(), c.code(), c.externalID())
	return h.awaitSite(ctx, s, at, err)
}

func (h *handler) reactivateSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	s, at, err := h.LocationCommands.ReactivateSite(ctx, c.account(), c.metadata(), c.code(), c.externalID())
	return h.awaitSite(ctx, s, at, err)
}

// awaitSite is a site after a command.
func (h *handler) awaitSite(ctx context.Context, s locationsschemas.Site, at eventstore.Position, err error) (any, error) {
	if err := h.awaitLocations(ctx, at, err); err != nil {
		return nil, err
	}
	return s, nil
}

// syncSitesEndpoint makes the sites of a referential those of the request.
func (h *handler) syncSitesEndpoint() endpoint {
	return batchEndpoint(h, func(in body.SyncSites) locations.Batch {
		return locations.Batch{Rows: mapSlice(in.Sites, toRow), IsSync: true, Confirmed: in.ConfirmReduction, DryRun: in.DryRun}
	})
}

// upsertSitesEndpoint creates and changes the sites of the request.
func (h *handler) upsertSitesEndpoint() endpoint {
	return batchEndpoint(h, func(in body.UpsertSites) locations.Batch {
		return locations.Batch{Rows: mapSlice(in.Sites, toRow), DryRun: in.DryRun}
	})
}

func toRow(r body.SiteRow) locations.Row {
	return locations.Row{ExternalID: r.ExternalID, Content: r.Content}
}

// batchEndpoint is an endpoint that writes many sites, once for each Idempotency-Key.
func batchEndpoint[T any](h *handler, toBatch func(T) locations.Batch) endpoint {
	decoder := kit.NewDecoder[T]()
	return newEndpoint(func(r *http.Request) (locations.Batch, error) {
		key, keyErr := parseIdempotencyKey(r.Header)
		var digest []byte
		decoded, err := decoder.DecodeAndInspectBody(r, func(text []byte) {
			if key != "" {
				sum := sha256.Sum256(text)
				digest = sum[:]
			}
		})
		if err != nil {
			return locations.Batch{}, err
		}
		b := toBatch(decoded)
		b.IdempotencyKey, b.RequestDigest = key, digest
		return b, keyErr
	}, wrapWrite(h, h.writeSites))
}

const idempotencyHeader = "Idempotency-Key"

// parseIdempotencyKey is the key of a request, "" when it has none.
func parseIdempotencyKey(h http.Header) (string, error) {
	values := h[idempotencyHeader]
	if len(values) == 0 {
		return "", nil
	}
	key, isInvalid := values[0], len(values) > 1 || values[0] == "" || len(values[0]) > 255
	for _, c := range []byte(key) {
		isInvalid = isInvalid || c <= ' ' || c > '~'
	}
	if isInvalid {
		return "", problem.Violations(problem.Violation{
			Type: "string_pattern_mismatch", Loc: []any{"header", idempotencyHeader}, Msg: "String should match pattern '^[!-~]{1,255}$'",
			Input: map[string]any{idempotencyHeader: key[:min(len(key), 300)]},
		})
	}
	return key, nil
}

func (h *handler) writeSites(ctx context.Context, c call, b locations.Batch) (any, error) {
	o, at, err := h.LocationCommands.WriteBatch(ctx, c.account(), c.metadata(), c.code(), b)
	if err := h.awaitLocations(ctx, at, err); err != nil {
		return nil, err
	}
	return toSynced(o)
}

func toSynced(o locations.Outcome) (body.Synced, error) {
	s := body.Synced{
		Envelope: body.OKEnvelope,
		Created:  o.Created, Updated: o.Updated, Unchanged: o.Unchanged, Reactivated: o.Reactivated, Deactivated: o.Deactivated,
		Geocoded: o.Geocoded, Geocodings: mapSlice(o.GeocodedSites, toPlacement), Unlocated: append([]string{}, o.UnlocatedSites...),
		ActiveBefore: o.ActiveBefore, ActiveAfter: o.ActiveAfter, AccountActive: o.AccountActive, Capacity: o.Capacity, Ceiling: o.Ceiling,
	}
	if o.Refused == nil {
		return s, nil
	}
	p, known := problem.FromError(o.Refused)
	if !known {
		return s, o.Refused
	}
	refusal, err := p.MarshalDetail()
	s.Refusal = refusal
	return s, err
}

func toPlacement(p locations.GeocodedSite) body.Placement {
	return body.Placement{ExternalID: p.ExternalID, Score: p.Score}
}

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
