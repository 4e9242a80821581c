package api

import (
	"context"
	"crypto/sha256"
	"net/http"
	"regexp"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/budget"
	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/http/sitefile"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/search"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	sites "lieudit/schemas/locations"
)

// rowsAtOnce is how many rows of a list are read at once. Those that do not fit into a chunk are read again for the next.
const rowsAtOnce = 200

// listSites lists one page of the sites of a referential, in the order of their external ids.
func (h *handler) listSites(ctx context.Context, c call, in body.SitesQuery) (kit.Response, error) {
	account, code := c.Principal.Account, c.Vars["code"]
	if _, err := h.locations.Queries.FindReferential(ctx, account, code); err != nil {
		return kit.Response{}, err
	}
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	shown := body.Sites{Envelope: body.OKEnvelope, Results: []sites.Site{}}
	cursor, left := in.Cursor, in.Limit
	list := kit.List[sites.Site]{Log: h.Log, Member: "results", Body: func() any { return shown }}
	list.Read = kit.TakeTurns(h.Lists, account, func(ctx context.Context) ([]sites.Site, bool, error) {
		page := locationsqueries.Page{Cursor: cursor, Limit: min(left, rowsAtOnce), MaxBytes: budget.AnswerChunk}
		found, next, err := h.locations.Queries.ListSites(ctx, account, code, search.Status(in.Status), page)
		shown.Cursor, cursor = next, next
		left -= len(found)
		return found, next != "" && left > 0, toListError(err)
	})
	return list.Respond(ctx)
}

// showSite shows a site, active or not.
func (h *handler) showSite(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	s, err := h.locations.Queries.FindSite(ctx, c.Principal.Account, c.Vars["code"], c.Vars["external_id"])
	return kit.Response{Body: s}, err
}

// putSite creates a site (201), or replaces its whole content (200). An inactive site becomes active.
func (h *handler) putSite(ctx context.Context, c call, in body.PutSite) (kit.Response, error) {
	if err := checkExternalID(c, in.ExternalID); err != nil {
		return kit.Response{}, err
	}
	row := locations.Row{ExternalID: c.Vars["external_id"], Content: in.Content}
	s, isNew, at, err := h.locations.Commands.PutSite(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], row)
	if err := kit.Await(ctx, h.locations.Wait, at, err); err != nil {
		return kit.Response{}, toSiteFailure(err)
	}
	if isNew {
		return kit.Created(s)
	}
	return kit.OK(s)
}

// patchSite changes some members of a site. An inactive site stays inactive.
func (h *handler) patchSite(ctx context.Context, c call, in body.PatchSite) (kit.Response, error) {
	if err := checkExternalID(c, in.ExternalID); err != nil {
		return kit.Response{}, err
	}
	s, at, err := h.locations.Commands.PatchSite(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], c.Vars["external_id"], sitePatch(in).apply)
	return h.awaitSite(ctx, s, at, toSiteFailure(err))
}

// deactivateSite makes a site inactive. A second time changes nothing.
func (h *handler) deactivateSite(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	s, at, err := h.locations.Commands.DeactivateSite(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], c.Vars["external_id"])
	return h.awaitSite(ctx, s, at, err)
}

// reactivateSite makes a site active again, which the account's capacity can refuse.
func (h *handler) reactivateSite(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	s, at, err := h.locations.Commands.ReactivateSite(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], c.Vars["external_id"])
	return h.awaitSite(ctx, s, at, err)
}

// awaitSite shows a site after a command, once the read models show it too.
func (h *handler) awaitSite(ctx context.Context, s sites.Site, at eventstore.Position, err error) (kit.Response, error) {
	if err := kit.Await(ctx, h.locations.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(s)
}

var externalIDPattern = regexp.MustCompile(sites.ExternalIDPattern)

// checkExternalID checks the form of the external id in the path, and that a body which repeats it has the same.
func checkExternalID(c call, inBody string) error {
	inPath := c.Vars["external_id"]
	if !externalIDPattern.MatchString(inPath) {
		return problem.BrokenRule("path", "external_id", "string_pattern_mismatch", "String should match pattern '"+externalIDPattern.String()+"'")
	}
	if inBody != "" && inBody != inPath {
		return problem.BrokenRule("body", "external_id", "value_error", "Value error, a site keeps the external_id of its path")
	}
	return nil
}

// syncSitesEndpoint gives a referential exactly the sites of the request: sites that it leaves out are deactivated.
func (h *handler) syncSitesEndpoint() kit.Endpoint[caller] {
	return batchEndpoint(h, func(in body.SyncSites) locations.Batch {
		return locations.Batch{Rows: mapSlice(in.Sites, toRow), IsSync: true, Confirmed: in.ConfirmReduction, DryRun: in.DryRun}
	})
}

// upsertSitesEndpoint creates and changes the sites of the request, and leaves the others.
func (h *handler) upsertSitesEndpoint() kit.Endpoint[caller] {
	return batchEndpoint(h, func(in body.UpsertSites) locations.Batch {
		return locations.Batch{Rows: mapSlice(in.Sites, toRow), DryRun: in.DryRun}
	})
}

func toRow(r body.SiteRow) locations.Row {
	return locations.Row{ExternalID: r.ExternalID, Content: r.Content}
}

// batchEndpoint writes many sites, once for each Idempotency-Key. The digest of the body as it was sent distinguishes a repeated
// request from another one with the same key. Where header and body are both wrong, the answer is about the body.
func batchEndpoint[T any](h *handler, toBatch func(T) locations.Batch) kit.Endpoint[caller] {
	decoder := kit.NewDecoder[T]()
	return kit.NewEndpoint(func(r *http.Request) (locations.Batch, error) {
		key, keyErr := kit.ParseIdempotencyKey(r.Header)
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
	}, h.writeSites)
}

// writeSites writes a batch: all of it, or nothing. A dry run writes nothing and shows what would be written or refused.
func (h *handler) writeSites(ctx context.Context, c call, b locations.Batch) (kit.Response, error) {
	o, at, err := h.locations.Commands.WriteBatch(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], b)
	if err := kit.Await(ctx, h.locations.Wait, at, err); err != nil {
		return kit.Response{}, toRowFailure(err, b.Rows)
	}
	shown, err := toSynced(o)
	shown.Alerts, shown.AlertCounts = h.findAlerts(b.Rows, o)
	shown.Unplaced = h.explainUnplaced(ctx, b.Rows, o.UnlocatedSites)
	return kit.Response{Body: shown}, err
}

// toSynced shows the outcome of a batch. A dry run that would be refused shows the detail of that refusal.
func toSynced(o locations.Outcome) (body.Synced, error) {
	s := body.Synced{
		Envelope: body.OKEnvelope,
		Created:  o.Created, Updated: o.Updated, Unchanged: o.Unchanged, Reactivated: o.Reactivated, Deactivated: o.Deactivated,
		Changes:  mapSlice(o.Changes, toSiteChange),
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
	detail, err := p.MarshalDetail()
	s.Refusal = detail
	return s, err
}

// changeEffects are the operations of a row as answers call them.
var changeEffects = map[string]string{
	event.SiteCreated: "cree", event.SiteUpdated: "modifie", event.SiteReactivated: "reactive", event.SiteDeactivated: "desactive",
}

func toSiteChange(c locations.SiteChange) body.SiteChange {
	return body.SiteChange{ExternalID: c.ExternalID, Effect: changeEffects[c.Operation], Fields: c.Fields}
}

func toPlacement(p locations.GeocodedSite) body.Placement {
	return body.Placement{ExternalID: p.ExternalID, Score: p.Score, Precision: p.Precision}
}

// exportSitesEndpoint streams the file of a referential's active sites. One page of them is in memory at a time.
func (h *handler) exportSitesEndpoint() kit.Endpoint[caller] {
	decoder := kit.NewDecoder[body.ExportSites]()
	return kit.NewEndpoint(func(r *http.Request) (sitefile.Format, error) {
		in, err := decoder.DecodeQuery(r)
		return chooseFormat(in, r.Header), err
	}, h.exportSites)
}

// exportSites reads the first site before the answer begins, so that a file that cannot be read at all is an error, which is
// not counted. It waits for what was written before: a file without the last import would be taken for the whole.
func (h *handler) exportSites(ctx context.Context, c call, f sitefile.Format) (kit.Response, error) {
	if err := h.locations.AwaitOwn(ctx, c.Principal.Account); err != nil {
		return kit.Response{}, err
	}
	if _, err := h.locations.Queries.FindReferential(ctx, c.Principal.Account, c.Vars["code"]); err != nil {
		return kit.Response{}, err
	}
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	takeTurn := func(ctx context.Context) (func(), error) { return kit.AcquireTurn(ctx, h.Lists, c.Principal.Account) }
	file, err := kit.NewExport(f, h.locations.Queries.ActiveSites(ctx, c.Principal.Account, c.Vars["code"], takeTurn))
	if err != nil {
		return kit.Response{}, err
	}
	return kit.Response{Discard: file.Stop, Stream: func(ctx context.Context, w http.ResponseWriter) error {
		file.Stream(ctx, w, h.Log)
		return nil
	}}, nil
}

// chooseFormat is the format that a request names; CSV in the dialect of its language where it names none.
func chooseFormat(in body.ExportSites, h http.Header) sitefile.Format {
	switch in.Format {
	case "geojson":
		return sitefile.GeoJSON
	case "ndjson":
		return sitefile.NDJSON
	}
	return sitefile.CSV(csvfile.ChooseDialect(in.CSVDialect, h))
}
