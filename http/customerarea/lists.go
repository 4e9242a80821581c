package customerarea

import (
	"context"
	"errors"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/account"
	"lieudit/queries/audit"
	"lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
)

// toPage is the page of a list that a query selects.
func toPage(in body.PageQuery) account.Page { return account.Page{Cursor: in.Cursor, Limit: in.Limit} }

// listAccounts lists all accounts to operators and billing, to an agency its sub-clients alone. The answer may be behind a command of another instance;
// a command of this instance was awaited.
func (h *handler) listAccounts(ctx context.Context, c call, in body.PageQuery) (kit.Response, error) {
	agency := ""
	if c.Principal.Role == access.RoleAgency {
		agency = c.Principal.Account
	}
	found, next, err := h.accounts.Queries.ListAccounts(ctx, agency, toPage(in))
	if err != nil {
		return kit.Response{}, toListError(err)
	}
	shown := body.Accounts{Envelope: body.OKEnvelope, Results: make([]body.Account, len(found)), Cursor: next}
	for i, row := range found {
		shown.Results[i] = h.toAccount(row)
	}
	return kit.OK(shown)
}

// toAccount shows an account as the read model has it; loadAccount shows one as its stream has it.
func (h *handler) toAccount(row account.Account) body.Account {
	period := plan.PeriodAt(row.Anchor, h.Now())
	shown := body.Account{
		ID: row.ID, Name: row.Name, Plan: row.Plan, Quota: row.Quota, Anchor: row.Anchor,
		Period: body.Interval{Start: period.Start(), End: period.End()},
		Agency: row.Agency, IsAgency: row.IsAgency, Created: row.Opened, Closed: row.Closed,
	}
	if n := row.NextTerms; n != nil {
		shown.NextTerms = &body.NextTerms{Plan: n.Plan, Quota: n.Quota, Effective: n.From}
		// The agency's plan is shown for the next terms too, if the account is still its sub-client when they begin.
		if shown.Agency != "" && (row.AgencyChange == nil || row.AgencyChange.From.After(n.From)) {
			shown.NextTerms.Plan = shown.Plan
		}
	}
	return shown
}

// listKeys lists the keys of an account, revoked ones included, with when each was used last. Usage and history name keys by their
// ids; billing and auditors find their labels here.
func (h *handler) listKeys(ctx context.Context, c call, in body.PageQuery) (kit.Response, error) {
	if err := h.checkAccountExists(ctx, c.Vars["id"]); err != nil {
		return kit.Response{}, err
	}
	found, next, err := h.accounts.Queries.ListKeys(ctx, c.Vars["id"], toPage(in))
	if err != nil {
		return kit.Response{}, toListError(err)
	}
	used, err := h.loadLastUsed(ctx, found)
	if err != nil {
		return kit.Response{}, err
	}
	shown := body.Keys{Envelope: body.OKEnvelope, Results: make([]body.Key, len(found)), Cursor: next}
	for i, k := range found {
		shown.Results[i] = body.Key{
			ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
			Created: k.Created, CreatedBy: k.CreatedBy, LastUsed: used[k.ID], Revoked: k.Revoked, RevokedBy: k.RevokedBy, Reason: k.Reason,
			Warnings: origin.Warnings(k.Origins),
		}
	}
	return kit.OK(shown)
}

// listTokens lists the customer-area tokens, revoked ones included.
func (h *handler) listTokens(ctx context.Context, _ call, in body.PageQuery) (kit.Response, error) {
	found, next, err := h.accounts.Queries.ListTokens(ctx, toPage(in))
	if err != nil {
		return kit.Response{}, toListError(err)
	}
	shown := body.AreaTokens{Envelope: body.OKEnvelope, Results: make([]body.AreaToken, len(found)), Cursor: next}
	for i, t := range found {
		shown.Results[i] = body.AreaToken{
			ID: t.ID, Role: t.Role, Account: t.Account, Label: t.Label, Hint: t.Hint,
			Created: t.Created, CreatedBy: t.CreatedBy, Revoked: t.Revoked, RevokedBy: t.RevokedBy, Reason: t.Reason,
		}
	}
	return kit.OK(shown)
}

// listAudit lists what happened to an account, oldest first. The cursor names the last entry of a page: the next page begins
// after it.
func (h *handler) listAudit(ctx context.Context, c call, in body.HistoryQuery) (kit.Response, error) {
	if err := h.checkAccountExists(ctx, c.Vars["id"]); err != nil {
		return kit.Response{}, err
	}
	q := audit.Query{Account: c.Vars["id"], Kind: in.Kind, Subject: in.Subject, From: in.From, To: in.To, Summary: in.Summary, Limit: in.Limit}
	if in.Cursor != "" {
		after, err := audit.ParseCursor(in.Cursor)
		if err != nil {
			return kit.Response{}, problem.InvalidCursor()
		}
		q.After = after
	}
	found, more, err := h.accounts.Audit.ListEntries(ctx, q)
	if err != nil {
		return kit.Response{}, err
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
	return kit.OK(shown)
}

// checkAccountExists refuses an unknown account: its lists are not empty, they are not found. AgencyOf reads the account's
// stream and fails with refusal.NotFound where there is none.
func (h *handler) checkAccountExists(ctx context.Context, id string) error {
	_, err := h.accounts.Commands.AgencyOf(ctx, id)
	return err
}

// toListError turns the error of a list into its answer: a cursor that is not ours is a broken rule.
func toListError(err error) error {
	if errors.Is(err, account.ErrInvalidCursor) {
		return problem.InvalidCursor()
	}
	return err
}
