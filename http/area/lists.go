package area

import (
	"context"
	"errors"
	"net/http"

	"lieudit/http/problem"
	"lieudit/queries/keys"
	"lieudit/queries/trail"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
)

// pageOf is the page a query asks for.
func pageOf(in body.PageQuery) keys.Page { return keys.Page{Cursor: in.Cursor, Limit: in.Limit} }

func (a *area) listAccounts(r *http.Request, c call, in body.PageQuery) (reply, error) {
	agency := ""
	if c.pass.Role == grant.Agency {
		agency = c.pass.Account
	}
	found, next, err := a.Register.Accounts(r.Context(), agency, pageOf(in))
	if err != nil {
		return reply{}, unlisted(err)
	}
	shown := body.Accounts{Envelope: body.OK, Results: make([]body.Account, len(found)), Cursor: next}
	for i, account := range found {
		shown.Results[i] = a.listed(account)
	}
	return ok(shown)
}

func (a *area) listed(account keys.Account) body.Account {
	period := plan.PeriodAt(account.Anchor, a.Now())
	shown := body.Account{
		ID: account.ID, Name: account.Name, Plan: account.Plan, Quota: account.Quota, Start: account.Anchor,
		Period: body.Interval{Start: period.Start(), End: period.End()},
		Agency: account.Agency, IsAgency: account.AgencyMode, Created: account.Opened, Closed: account.Closed,
	}
	if n := account.Next; n != nil {
		shown.Next = &body.NextTerms{Plan: n.Plan, Quota: n.Quota, Effective: n.From}
		if shown.Agency != "" && (account.Joining == nil || account.Joining.From.After(n.From)) { // then it is a sub-client still
			shown.Next.Plan = shown.Plan
		}
	}
	return shown
}

func (a *area) listKeys(r *http.Request, c call, in body.PageQuery) (reply, error) {
	if err := a.known(r.Context(), c.account()); err != nil {
		return reply{}, err
	}
	found, next, err := a.Register.Keys(r.Context(), c.account(), pageOf(in))
	if err != nil {
		return reply{}, unlisted(err)
	}
	used, err := a.lastUsed(r.Context(), found)
	if err != nil {
		return reply{}, err
	}
	shown := body.Keys{Envelope: body.OK, Results: make([]body.Key, len(found)), Cursor: next}
	for i, k := range found {
		shown.Results[i] = body.Key{
			ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
			Created: k.Created, CreatedBy: k.CreatedBy, Used: used[k.ID], Revoked: k.Revoked, RevokedBy: k.RevokedBy, Reason: k.Reason,
			Warnings: origin.Warnings(k.Origins),
		}
	}
	return ok(shown)
}

func (a *area) listTokens(r *http.Request, _ call, in body.PageQuery) (reply, error) {
	found, next, err := a.Register.Tokens(r.Context(), pageOf(in))
	if err != nil {
		return reply{}, unlisted(err)
	}
	shown := body.AreaTokens{Envelope: body.OK, Results: make([]body.AreaToken, len(found)), Cursor: next}
	for i, t := range found {
		shown.Results[i] = body.AreaToken{
			ID: t.ID, Role: t.Role, Account: t.Account, Label: t.Label, Hint: t.Hint,
			Created: t.Created, CreatedBy: t.CreatedBy, Revoked: t.Revoked, RevokedBy: t.RevokedBy, Reason: t.Reason,
		}
	}
	return ok(shown)
}

func (a *area) history(r *http.Request, c call, in body.HistoryQuery) (reply, error) {
	if err := a.known(r.Context(), c.account()); err != nil {
		return reply{}, err
	}
	q := trail.Question{Account: c.account(), Kind: in.Kind, Subject: in.Subject, From: in.From, To: in.To, Limit: in.Limit}
	if in.Cursor != "" {
		after, err := trail.PlaceOf(in.Cursor)
		if err != nil {
			return reply{}, noCursor()
		}
		q.After = after
	}
	found, more, err := a.Trail.History(r.Context(), q)
	if err != nil {
		return reply{}, err
	}
	shown := body.History{Envelope: body.OK, Results: make([]body.Incident, len(found))}
	for i, e := range found {
		shown.Results[i] = body.Incident{
			Position: e.Position, At: e.Time, Type: e.Type, Subject: e.Subject, Author: e.Actor, For: e.OnBehalfOf, Reason: e.Reason,
			Sentence: e.Sentence, Data: e.Data,
		}
	}
	if more {
		shown.Cursor = found[len(found)-1].Cursor()
	}
	return ok(shown)
}

// known is nil for an account that exists: lists of others are not empty, they are not found.
func (a *area) known(ctx context.Context, id string) error {
	_, err := a.Accounts.AgencyOf(ctx, id)
	return err
}

// unlisted is the answer to a list that could not be made.
func unlisted(err error) error {
	if errors.Is(err, keys.ErrCursor) {
		return noCursor()
	}
	return err
}

func noCursor() error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "curseur"}, Msg: "Value error, not a cursor that was given",
		Input: map[string]any{},
	})
}
