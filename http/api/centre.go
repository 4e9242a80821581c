package api

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"lieudit/http/problem"
	"lieudit/queries/address"
	"lieudit/schemas/body"
)

// addressIDPattern is what an id or an id_ban looks like. A postcode looks like a commune's id and is tried as one first.
var addressIDPattern = regexp.MustCompile(`^([0-9][0-9AB][0-9]{3}(_\S+)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`)

// resolveCenter resolves where a search begins. A text leads to one verified address or nowhere: a number the base does not
// have, or several addresses that fit as well, resolve to nothing.
func resolveCenter(ctx context.Context, e *address.Engine, q body.NearAddress) (*body.Center, error) {
	if q.Center == "" {
		return &body.Center{Lon: *q.Lon, Lat: *q.Lat}, nil
	}
	if id := strings.TrimSpace(q.Center); addressIDPattern.MatchString(id) {
		if r, ok := e.View(id); ok {
			return newCenter(q.Center, &r, 1), nil
		}
	}
	found, err := e.Verify(ctx, address.Query{Text: q.Center, Limit: 1})
	if err != nil && !errors.Is(err, address.ErrUnparsable) {
		return nil, err
	}
	if len(found) == 0 || found[0].NumberTyped && !found[0].NumberFound || found[0].Next >= found[0].Score {
		return nil, problem.AddressUnresolved(q.Center)
	}
	return newCenter(q.Center, &found[0].Record, found[0].Score), nil
}

func newCenter(typed string, r *address.Record, score float64) *body.Center {
	resolved := toAddress(r)
	return &body.Center{Input: typed, Score: score, Address: &resolved, Lon: r.Lon, Lat: r.Lat}
}
