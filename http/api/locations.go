package api

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"lieudit/commands"
	"lieudit/commands/locations"
	"lieudit/eventstore"
	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	locationsqueries "lieudit/queries/locations"
	"lieudit/queries/locations/alert"
	"lieudit/queries/locations/search"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

// Locations is what the API needs for the customers' referentials and sites. Every part is required.
type Locations struct {
	Commands LocationCommands
	Queries  LocationQueries
	Search   search.Engine
	Alerts   *alert.Checker // of what is doubtful in the sites of a sync or an upsert
	// CursorSecret is the secret that encrypts the cursors of an account's searches and changes.
	CursorSecret func(ctx context.Context, account string) ([]byte, error)
	// LastChange is the position on the log of the last change of an account's locations, 0 where there was none since the
	// start.
	LastChange func(account string) eventstore.Position
	// Wait returns when the read models show what the log holds at a position, or when that takes too long.
	Wait func(context.Context, eventstore.Position)
	// AwaitOwn returns when the read model shows all that the log holds of an account's locations now. It fails with
	// refusal.ReadModelBehind if that takes too long.
	AwaitOwn func(ctx context.Context, account string) error
}

// LocationCommands is the part of commands/locations.Locations that the API calls. Its methods are documented there. It
// is an interface so that the API can be tested without a log.
type LocationCommands interface {
	OpenReferential(ctx context.Context, account string, meta commands.Metadata, code, name string) (locations.Referential, eventstore.Position, error)
	RenameReferential(ctx context.Context, account string, meta commands.Metadata, code, name string) (locations.Referential, eventstore.Position, error)
	ArchiveReferential(ctx context.Context, account string, meta commands.Metadata, code string) (locations.Referential, eventstore.Position, error)

	WriteBatch(ctx context.Context, account string, meta commands.Metadata, code string, b locations.Batch) (locations.Outcome, eventstore.Position, error)
	PutSite(ctx context.Context, account string, meta commands.Metadata, code string, r locations.Row) (s sites.Site, created bool, position eventstore.Position, err error)
	PatchSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string, edit func(sites.Content) (sites.Content, error)) (sites.Site, eventstore.Position, error)
	DeactivateSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string) (sites.Site, eventstore.Position, error)
	ReactivateSite(ctx context.Context, account string, meta commands.Metadata, code, externalID string) (sites.Site, eventstore.Position, error)

	CountLocations(ctx context.Context, account string) (locations.Counts, error)
}

// LocationQueries is the part of queries/locations.Reader that the API calls. It is an interface so that the API can be
// tested without a database.
type LocationQueries interface {
	ListReferentials(ctx context.Context, account, status string, page locationsqueries.Page) (found []locationsqueries.Referential, next string, err error)
	FindReferential(ctx context.Context, account, code string) (locationsqueries.Referential, error)
	ListSites(ctx context.Context, account, code string, status search.Status, page locationsqueries.Page) (found []sites.Site, next string, err error)
	FindSite(ctx context.Context, account, code, externalID string) (sites.Site, error)
	ActiveSites(ctx context.Context, account, code string, takeTurn locationsqueries.TakeTurn) iter.Seq2[sites.Site, error]
	ListChanges(ctx context.Context, account string, page locationsqueries.ChangesPage) (locationsqueries.Changes, error)
}

// metadata names who makes a command: the key, by its id.
func (c caller) metadata() commands.Metadata { return commands.Metadata{Actor: "key:" + c.KeyID} }

// openReferential opens a referential, a group of sites. Its code is taken for ever.
func (h *handler) openReferential(ctx context.Context, c call, in body.OpenReferential) (kit.Response, error) {
	r, at, err := h.locations.Commands.OpenReferential(ctx, c.Principal.Account, c.Principal.metadata(), in.Code, in.Name)
	if err := kit.Await(ctx, h.locations.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.Created(toReferential(locationsqueries.Referential(r)))
}

// renameReferential sets the name of a referential; null clears it.
func (h *handler) renameReferential(ctx context.Context, c call, in body.RenameReferential) (kit.Response, error) {
	name := ""
	if in.Name.Value != nil {
		name = *in.Name.Value
	}
	r, at, err := h.locations.Commands.RenameReferential(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"], name)
	return h.awaitReferential(ctx, r, at, err)
}

// archiveReferential archives a referential: its sites become inactive. A second time changes nothing.
func (h *handler) archiveReferential(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	r, at, err := h.locations.Commands.ArchiveReferential(ctx, c.Principal.Account, c.Principal.metadata(), c.Vars["code"])
	return h.awaitReferential(ctx, r, at, err)
}

// awaitReferential shows a referential after a command, once the read models show it too.
func (h *handler) awaitReferential(ctx context.Context, r locations.Referential, at eventstore.Position, err error) (kit.Response, error) {
	if err := kit.Await(ctx, h.locations.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(toReferential(locationsqueries.Referential(r)))
}

// referentialsAtOnce is how many referentials are read at once. Their codes are taken for ever, so an account may have many.
const referentialsAtOnce = 500

// listReferentials lists all referentials of the account that have a status.
func (h *handler) listReferentials(ctx context.Context, c call, in body.ReferentialsQuery) (kit.Response, error) {
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	page := locationsqueries.Page{Limit: referentialsAtOnce, MaxBytes: budget.AnswerChunk}
	list := kit.List[body.Referential]{Log: h.Log, Member: "results", Body: func() any {
		return body.Referentials{Envelope: body.OKEnvelope, Results: []body.Referential{}}
	}}
	list.Read = kit.TakeTurns(h.Lists, c.Principal.Account, func(ctx context.Context) ([]body.Referential, bool, error) {
		found, next, err := h.locations.Queries.ListReferentials(ctx, c.Principal.Account, in.Status, page)
		page.Cursor = next
		return mapSlice(found, toReferential), next != "", err
	})
	return list.Respond(ctx)
}

// showReferential shows a referential, active or archived.
func (h *handler) showReferential(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	r, err := h.locations.Queries.FindReferential(ctx, c.Principal.Account, c.Vars["code"])
	return kit.Response{Body: toReferential(r)}, err
}

// toReferential shows a referential of the read model. Commands return one with the same fields, which callers convert.
func toReferential(r locationsqueries.Referential) body.Referential {
	shown := body.Referential{
		Code: r.Code, Name: r.Name, Status: "active", Created: r.Created, Archived: r.Archived, ActiveSites: r.Active,
	}
	if r.Archived != (time.Time{}) {
		shown.Status = "archived"
	}
	return shown
}

// toListError turns the error of a list into its answer: a cursor that is not ours is a broken rule.
func toListError(err error) error {
	if errors.Is(err, locationsqueries.ErrInvalidCursor) {
		return problem.InvalidCursor()
	}
	return err
}

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
	text, _ := json.Marshal(next) // such a cursor always encodes
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
