package api

import (
	"context"
	"encoding/json"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	locationsqueries "lieudit/queries/locations"
	"lieudit/schemas/body"
)

// listChanges lists one page of what changed in the account's sites and referentials after a cursor; without one, of all of them.
func (h *handler) listChanges(ctx context.Context, c call, in body.ChangesQuery) (kit.Response, error) {
	sealer := cursorSealer{secret: h.locations.CursorSecret, account: c.Principal.Account, kind: c.Principal.Kind, question: "changes"}
	after, err := sealer.openChanges(ctx, in.Cursor)
	if err != nil {
		return kit.Response{}, err
	}
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	shown := body.Changes{Envelope: body.OKEnvelope, Results: []body.Change{}}
	left, page := in.Limit, locationsqueries.ChangesPage{After: after, MaxBytes: budget.AnswerChunk}
	list := kit.List[body.Change]{Log: h.Log, Member: "results", Body: func() any { return shown }}
	list.Read = kit.TakeTurns(h.Lists, c.Principal.Account, func(ctx context.Context) ([]body.Change, bool, error) {
		page.Limit = min(left, rowsAtOnce)
		listed, err := h.locations.Queries.ListChanges(ctx, c.Principal.Account, page)
		if err != nil {
			return nil, false, err
		}
		page.After, page.Until = listed.Next, listed.Until
		left -= len(listed.Found)
		if listed.More && left > 0 {
			return mapSlice(listed.Found, toChange), true, nil
		}
		shown.Cursor, err = sealer.sealChanges(ctx, listed.Next)
		return mapSlice(listed.Found, toChange), false, err
	})
	return list.Respond(ctx)
}

func (s cursorSealer) sealChanges(ctx context.Context, next locationsqueries.ChangesCursor) (string, error) {
	text, _ := json.Marshal(next) // numbers and texts always encode
	return s.seal(ctx, string(text))
}

// openChanges is the place that a cursor names.
func (s cursorSealer) openChanges(ctx context.Context, cursor string) (after locationsqueries.ChangesCursor, err error) {
	text, err := s.open(ctx, cursor)
	if err != nil || text == "" {
		return after, err
	}
	if json.Unmarshal([]byte(text), &after) != nil { // of a release that wrote another form
		return after, problem.InvalidCursor()
	}
	return after, nil
}

// toChange shows a change. What a site or a referential was before is not known, so its type says what it is now.
func toChange(c locationsqueries.Change) body.Change {
	if r := c.Referential; r != nil {
		shown := body.Change{Type: body.ReferentialChanged, Referential: r.Code, At: c.At}
		if !r.Archived.IsZero() {
			shown.Type = body.ReferentialArchived
		}
		return shown
	}
	s := c.Site
	shown := body.Change{Type: body.SiteChanged, Referential: s.Referential, ExternalID: s.ExternalID, Version: s.Version, At: c.At, Site: s}
	if !s.Active {
		shown.Type = body.SiteDeactivated
	}
	return shown
}
