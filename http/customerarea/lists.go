package customerarea

import (
	"context"
	"errors"
	"net/http"

	"lieudit/http/problem"
	"lieudit/queries/account"
	"lieudit/queries/audit"
	"lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
)

// toPage is the page a query asks for.
func toPage(in body.PageQuery) account.Page { return account.Page{Cursor: in.Cursor, Limit: in.Limit} }

func (h *handler) listAccounts(r *http.Request, c call, in body.PageQuery) (response, error) {
	agency := ""
	if c.principal.Role == access.RoleAgency {
		agency = c.principal.Account
	}
	found, next, err := h.AccountQueries.ListAccounts(r.Context(), agency, toPage(in))
	if err != nil {
		return response{}, toListError(err)
	}
	shown := body.Accounts{Envelope: body.OKEnvelope, Results: make([]body.Account, len(found)), Cursor: next}
	for i, row := range found {
		shown.Results[i] = h.toAccount(row)
	}
	return okResponse(shown)
}

func (h *handler) toAccount(row account.Account) body.Account {
	period := plan.PeriodAt(row.Anchor, h.Now())
	shown := body.Account{
		ID: row.ID, Name: row.Name, Plan: row.Plan, Quota: row.Quota, Anchor: row.Anchor,
		Period: body.Interval{Start: period.Start(), End: period.End()},
		Agency: row.Agency, IsAgency: row.IsAgency, Created: row.Opened, Closed: row.Closed,
	}
	if n := row.NextTerms; n != nil {
		shown.NextTerms = &body.NextTerms{Plan: n.Plan, Quota: n.Quota, Effective: n.From}
		if shown.Agency != "" && (row.AgencyChange == nil || row.AgencyChange.From.After(n.From)) { // then it is a sub-client still
			shown.NextTerms.Plan = shown.Plan
		}
	}
	return shown
}

func (h *handler) listKeys(r *http.Request, c call, in body.PageQuery) (response, error) {
	if err := h.checkAccountExists(r.Context(), c.account()); err != nil {
		return response{}, err
	}
	found, next, err := h.AccountQueries.ListKeys(r.Context(), c.account(), toPage(in))
	if err != nil {
		return response{}, toListError(err)
	}
	used, err := h.loadLastUsed(r.Context(), found)
	if err != nil {
		return response{}, err
	}
	shown := body.Keys{Envelope: body.OKEnvelope, Results: make([]body.Key, len(found)), Cursor: next}
	for i, k := range found {
		shown.Results[i] = body.Key{
			ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
			Created: k.Created, CreatedBy: k.CreatedBy, LastUsed: used[k.ID], Revoked: k.Revoked, RevokedBy: k.RevokedBy, Reason: k.Reason,
			Warnings: origin.Warnings(k.Origins),
		}
	}
	return okResponse(shown)
}

func (h *handler) listTokens(r *http.Request, _ call, in body.PageQuery) (response, error) {
	found, next, err := h.AccountQueries.ListTokens(r.Context(), toPage(in))
	if err != nil {
		return response{}, toListError(err)
	}
	shown := body.AreaTokens{Envelope: body.OKEnvelope, Results: make([]body.AreaToken, len(found)), Cursor: next}
	for i, t := range found {
		shown.Results[i] = body.AreaToken{
			ID: t.ID, Role: t.Role, Account: t.Account, Label: t.Label, Hint: t.Hint,
			Created: t.Created, CreatedBy: t.CreatedBy, Revoked: t.Revoked, RevokedBy: t.RevokedBy, Reason: t.Reason,
		}
	}
	return okResponse(shown)
}

func (h *handler) listAudit(r *http.Request, c call, in body.HistoryQuery) (response, error) {
	if err := h.checkAccountExists(r.Context(), c.account()); err != nil {
		return response{}, err
	}
	q := audit.Query{Account: c.account(), Kind: in.Kind, Subject: in.Subject, From: in.From, To: in.To, Limit: in.Limit}
	if in.Cursor != "" {
		after, err := audit.ParseCursor(in.Cursor)
		if err != nil {
			return response{}, invalidCursor()
		}
		q.After = after
	}
	found, more, err := h.AuditQueries.ListEntries(r.Context(), q)
	if err != nil {
		return response{}, err
	}
	shown := body.History{Envelope: body.OKEnvelope, Results: make([]body.Incident, len(found))}
	for i, e := range found {
		shown.Results[i] = body.Incident{
			Position: e.Position, Time: e.Time, Type: e.Type, Subject: e.Subject, Author: e.Actor, OnBehalfOf: e.OnBehalfOf, Reason: e.Reason,
			Sentence: e.Sentence, Data: e.Data,
		}
	}
	if more {
		shown.Cursor = found[len(found)-1].Cursor()
	}
	return okResponse(shown)
}

// checkAccountExists is nil for an account that exists: lists of others are not empty, they are not found.
func (h *handler) checkAccountExists(ctx context.Context, id string) error {
	_, err := h.AccountCommands.AgencyOf(ctx, id)
	return err
}

// toListError is the answer to a list that could not be made.
func toListError(err error) error {
	if errors.Is(err, account.ErrInvalidCursor) {
		return invalidCursor()
	}
	return err
}

func invalidCursor() error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "curseur"}, Msg: "Value error, not a cursor that was given",
		Input: map[string]any{},
	})
}
