package server

import (
	"context"
	"regexp"

	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/problem"
	"lieudit/queries/places"
	"lieudit/schemas/body"
	"lieudit/schemas/site"
)

func (a *api) listSites(ctx context.Context, c call, in body.SitesQuery) (any, error) {
	if _, err := a.Places.Referential(ctx, c.account(), c.code()); err != nil {
		return nil, err
	}
	found, next, err := a.Places.Sites(ctx, c.account(), c.code(), places.Status(in.Status), places.Page{Cursor: in.Cursor, Limit: in.Limit})
	if err != nil {
		return nil, unlisted(err, in.Cursor)
	}
	return body.Sites{Envelope: body.OK, Results: append([]site.Site{}, found...), Cursor: next}, nil
}

func (a *api) showSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	return a.Places.Site(ctx, c.account(), c.code(), c.externalID())
}

// externalID is what external ids are.
var externalID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func (a *api) putSite(ctx context.Context, c call, in body.PutSite) (any, error) {
	if err := named(c, in.ExternalID); err != nil {
		return nil, err
	}
	s, isNew, at, err := a.Locations.Put(ctx, c.account(), c.intent(), c.code(), locations.Row{ExternalID: c.externalID(), Content: in.Content})
	if err := a.shows(ctx, at, err); err != nil {
		return nil, err
	}
	if isNew {
		return created{s}, nil
	}
	return s, nil
}

func (a *api) patchSite(ctx context.Context, c call, in body.PatchSite) (any, error) {
	if err := named(c, in.ExternalID); err != nil {
		return nil, err
	}
	s, at, err := a.Locations.Patch(ctx, c.account(), c.intent(), c.code(), c.externalID(), patch(in).apply)
	return a.turned(ctx, s, at, err)
}

// named holds the name of a site in the path to what names are, and that in the body to the one in the path.
func named(c call, told string) error {
	if !externalID.MatchString(c.externalID()) {
		return problem.Violations(problem.Violation{
			Type: "string_pattern_mismatch", Loc: []any{"path", "external_id"}, Msg: "String should match pattern '" + externalID.String() + "'",
			Input: map[string]any{"external_id": c.externalID()},
		})
	}
	if told != "" && told != c.externalID() {
		return problem.Violations(problem.Violation{
			Type: "value_error", Loc: []any{"body", "external_id"}, Msg: "Value error, a site keeps the external_id of its path",
			Input: map[string]any{"external_id": told},
		})
	}
	return nil
}

func (a *api) deactivateSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	s, at, err := a.Locations.Deactivate(ctx, c.account(), c.intent(), c.code(), c.externalID())
	return a.turned(ctx, s, at, err)
}

func (a *api) reactivateSite(ctx context.Context, c call, _ body.Empty) (any, error) {
	s, at, err := a.Locations.Reactivate(ctx, c.account(), c.intent(), c.code(), c.externalID())
	return a.turned(ctx, s, at, err)
}

// turned is a site after a command.
func (a *api) turned(ctx context.Context, s site.Site, at eventstore.Position, err error) (any, error) {
	if err := a.shows(ctx, at, err); err != nil {
		return nil, err
	}
	return s, nil
}
