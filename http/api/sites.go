package api

import (
	"context"
	"regexp"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/problem"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/search"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

func (h *handler) listSites(ctx context.Context, c call, in body.SitesQuery) (any, error) {
	if _, err := h.LocationQueries.FindReferential(ctx, c.account(), c.code()); err != nil {
		return nil, err
	}
	found, next, err := h.LocationQueries.ListSites(ctx, c.account(), c.code(), search.Status(in.Status), locationsqueries.Page{Cursor: in.Cursor, Limit: in.Limit})
	if err != nil {
		return nil, toListError(err, in.Cursor)
	}
	return body.Sites{Envelope: body.OKEnvelope, Results: append([]sites.Site{}, found...), Cursor: next}, nil
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
func (h *handler) awaitSite(ctx context.Context, s sites.Site, at eventstore.Position, err error) (any, error) {
	if err := h.awaitLocations(ctx, at, err); err != nil {
		return nil, err
	}
	return s, nil
}
