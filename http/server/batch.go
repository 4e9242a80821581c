package server

import (
	"context"
	"crypto/sha256"
	"net/http"

	"lieudit/commands/locations"
	"lieudit/http/input"
	"lieudit/http/problem"
	"lieudit/schemas/body"
)

// syncSites makes the sites of a referential those of the request.
func (a *api) syncSites() endpoint {
	return batch(a, func(in body.SyncSites) locations.Batch {
		return locations.Batch{Rows: each(in.Sites, row), Whole: true, Confirmed: in.Confirm, DryRun: in.DryRun}
	})
}

// upsertSites creates and changes the sites of the request.
func (a *api) upsertSites() endpoint {
	return batch(a, func(in body.UpsertSites) locations.Batch {
		return locations.Batch{Rows: each(in.Sites, row), DryRun: in.DryRun}
	})
}

func row(r body.SiteRow) locations.Row {
	return locations.Row{ExternalID: r.ExternalID, Content: r.Content}
}

// batch is an endpoint that writes many sites, once for each Idempotency-Key.
func batch[T any](a *api, of func(T) locations.Batch) endpoint {
	in := input.For[T]()
	return reads(func(r *http.Request) (locations.Batch, error) {
		key, wrong := idempotencyKey(r.Header)
		var digest []byte
		told, err := in.Examine(r, func(text []byte) {
			if key != "" {
				sum := sha256.Sum256(text)
				digest = sum[:]
			}
		})
		if err != nil {
			return locations.Batch{}, err
		}
		b := of(told)
		b.Key, b.Request = key, digest
		return b, wrong
	}, writing(a, a.writeSites))
}

const idempotencyHeader = "Idempotency-Key"

// idempotencyKey is the key of a request, "" when it has none.
func idempotencyKey(h http.Header) (string, error) {
	sent := h[idempotencyHeader]
	if len(sent) == 0 {
		return "", nil
	}
	key, wrong := sent[0], len(sent) > 1 || sent[0] == "" || len(sent[0]) > 255
	for _, c := range []byte(key) {
		wrong = wrong || c <= ' ' || c > '~'
	}
	if wrong {
		return "", problem.Violations(problem.Violation{
			Type: "string_pattern_mismatch", Loc: []any{"header", idempotencyHeader}, Msg: "String should match pattern '^[!-~]{1,255}$'",
			Input: map[string]any{idempotencyHeader: key[:min(len(key), 300)]},
		})
	}
	return key, nil
}

func (a *api) writeSites(ctx context.Context, c call, b locations.Batch) (any, error) {
	o, at, err := a.Locations.Write(ctx, c.account(), c.intent(), c.code(), b)
	if err := a.shows(ctx, at, err); err != nil {
		return nil, err
	}
	return synced(o)
}

func synced(o locations.Outcome) (body.Synced, error) {
	s := body.Synced{
		Envelope: body.OK,
		Created:  o.Created, Updated: o.Updated, Unchanged: o.Unchanged, Reactivated: o.Reactivated, Deactivated: o.Deactivated,
		Placed: o.Placed, Placements: each(o.Placements, placement), NotPlaced: append([]string{}, o.NotPlaced...),
		Before: o.Before, After: o.After, Active: o.Active, Capacity: o.Capacity, Ceiling: o.Ceiling,
	}
	if o.Refused == nil {
		return s, nil
	}
	p, known := problem.Of(o.Refused)
	if !known {
		return s, o.Refused
	}
	refusal, err := p.Detail()
	s.Refusal = refusal
	return s, err
}

func placement(p locations.Placement) body.Placement {
	return body.Placement{ExternalID: p.ExternalID, Score: p.Score}
}
