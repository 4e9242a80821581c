package api

import (
	"context"
	"crypto/sha256"
	"net/http"

	"lieudit/commands/locations"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
)

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
