package customerarea

import (
	"context"
	"errors"
	"slices"
	"time"

	"lieudit/commands/areatoken"
	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/account"
	"lieudit/queries/audit"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/origin"
	"lieudit/schemas/plan"
)

// rowsAtOnce is how many rows of accounts, keys or tokens are read at once. A key is the largest of them, with some 3 KB at most.
const rowsAtOnce = 100

// pageReader reads a page of a list as an answer sends it, some rows at once.
type pageReader[T any] struct {
	page account.Page
	read func(context.Context, account.Page) (found []T, next string, err error)
}

func newPageReader[T any](in body.PageQuery, read func(context.Context, account.Page) ([]T, string, error)) *pageReader[T] {
	return &pageReader[T]{account.Page{Cursor: in.Cursor, Limit: in.Limit}, read}
}

// readRows implements kit.ListReader.
func (p *pageReader[T]) readRows(ctx context.Context) ([]T, bool, error) {
	found, next, err := p.read(ctx, account.Page{Cursor: p.page.Cursor, Limit: min(p.page.Limit, rowsAtOnce)})
	p.page.Cursor = next
	p.page.Limit -= len(found)
	return found, next != "" && p.page.Limit > 0, toListError(err)
}

// list answers with a list that is sent while it is read. It reserves the memory for that.
func list[T any](ctx context.Context, h *handler, c call, toBody func() any, read kit.ListReader[T]) (kit.Response, error) {
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	l := kit.List[T]{Log: h.Log, Member: "results", Body: toBody, Read: takeTurns(h, c.Principal, read)}
	return l.Respond(ctx)
}

// takeTurns makes a list wait for its turn before each chunk of it: a page of a thousand entries takes a processor a hundred times as
// long as the check of an address. The tokens of an account share its part; one of no account has its own.
func takeTurns[T any](h *handler, p grant.TokenGrant, read kit.ListReader[T]) kit.ListReader[T] {
	name := p.Account
	if name == "" {
		name = "token " + p.TokenID // no account has this id: ids have no spaces
	}
	return kit.TakeTurns(h.Lists, name, read)
}

// listAccounts lists all accounts to operators and billing, to an agency its sub-clients alone. The answer may be behind a command of another instance;
// a command of this instance was awaited.
func (h *handler) listAccounts(ctx context.Context, c call, in body.AccountsQuery) (kit.Response, error) {
	filter := account.Filter{Text: in.Text}
	if c.Principal.Role == grant.RoleAgency {
		filter.Agency = c.Principal.Account
	}
	if in.State != "tous" {
		filter.Open = new(in.State == "ouvert")
	}
	rows := newPageReader(in.PageQuery, func(ctx context.Context, page account.Page) ([]body.Account, string, error) {
		found, next, err := h.accounts.Queries.ListAccounts(ctx, filter, page)
		return mapSlice(found, h.toAccount), next, err
	})
	return list(ctx, h, c, func() any {
		return body.Accounts{Envelope: body.OKEnvelope, Results: []body.Account{}, Cursor: rows.page.Cursor}
	}, rows.readRows)
}

// toAccount shows an account as the read model has it; loadAccount shows one as its stream has it.
func (h *handler) toAccount(row account.Account) body.Account {
	period := plan.PeriodAt(row.Anchor, h.Now())
	shown := body.Account{
		ID: row.ID, Name: row.Name, Plan: row.Plan, Quota: row.Quota, Anchor: row.Anchor,
		Period: body.Interval{Start: period.Start(), End: period.End()},
		Agency: row.Agency, IsAgency: row.IsAgency, Created: row.Opened, Closed: row.Closed,
	}
	if n := row.AgencyChange; n != nil {
		shown.NextAgency = &body.NextAgency{Agency: n.Agency, Effective: n.From.In(plan.Paris)}
	}
	if n := row.NextTerms; n != nil {
		shown.NextTerms = &body.NextTerms{Plan: n.Plan, Quota: n.Quota, Effective: n.From.In(plan.Paris)}
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
	rows := newPageReader(in, func(ctx context.Context, page account.Page) ([]body.Key, string, error) {
		found, next, err := h.accounts.Queries.ListKeys(ctx, c.Vars["id"], page)
		if err != nil {
			return nil, "", err
		}
		used, err := h.loadLastUsed(ctx, found)
		return mapSlice(found, func(k account.Key) body.Key { return toListedKey(k, used[k.ID]) }), next, err
	})
	return list(ctx, h, c, func() any {
		return body.Keys{Envelope: body.OKEnvelope, Results: []body.Key{}, Cursor: rows.page.Cursor}
	}, rows.readRows)
}

// toListedKey shows a key as the read model has it; toKey shows one as its stream has it.
func toListedKey(k account.Key, used time.Time) body.Key {
	return body.Key{
		ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
		Created: k.Created, CreatedBy: k.CreatedBy, LastUsed: used, Revoked: k.Revoked, RevokedBy: k.RevokedBy, Reason: k.Reason, Replaces: k.Replaces,
		Warnings: origin.Warnings(k.Origins),
	}
}

// listTokens lists the customer-area tokens, revoked ones included.
func (h *handler) listTokens(ctx context.Context, c call, in body.PageQuery) (kit.Response, error) {
	rows := newPageReader(in, func(ctx context.Context, page account.Page) ([]body.AreaToken, string, error) {
		found, next, err := h.accounts.Queries.ListTokens(ctx, page)
		if err != nil {
			return nil, "", err
		}
		shown := mapSlice(found, toListedToken)
		for i, t := range shown {
			if t.Revoked.IsZero() && h.Now().Sub(t.Created) < areatoken.InvitationLifetime { // no other can have an invitation that is open
				if shown[i].Invited, err = h.accounts.Tokens.InvitationUntil(ctx, t.ID); err != nil {
					return nil, "", err
				}
			}
		}
		return shown, next, nil
	})
	return list(ctx, h, c, func() any {
		return body.AreaTokens{Envelope: body.OKEnvelope, Results: []body.AreaToken{}, Cursor: rows.page.Cursor}
	}, rows.readRows)
}

func toListedToken(t account.Token) body.AreaToken {
	return body.AreaToken{
		ID: t.ID, Role: t.Role, Account: t.Account, Label: t.Label, Hint: t.Hint,
		Created: t.Created, CreatedBy: t.CreatedBy, Revoked: t.Revoked, RevokedBy: t.RevokedBy, Reason: t.Reason,
	}
}

// listAudit lists what happened to an account. The cursor names the last entry of a page: the next page begins
// after it.
func (h *handler) listAudit(ctx context.Context, c call, in body.HistoryQuery) (kit.Response, error) {
	if err := h.checkAccountExists(ctx, c.Vars["id"]); err != nil {
		return kit.Response{}, err
	}
	q := audit.Query{
		Account: c.Vars["id"], Kind: in.Kind, Subject: in.Subject, From: in.From, To: in.To, Summary: in.Summary, Limit: in.Limit,
		Newest: in.Order == "recent", MaxBytes: budget.AnswerChunk,
	}
	if in.Cursor != "" {
		after, err := audit.ParseCursor(in.Cursor)
		if err != nil {
			return kit.Response{}, problem.InvalidCursor()
		}
		q.After = after
	}
	shown := body.History{Envelope: body.OKEnvelope, Results: []body.Incident{}}
	return list(ctx, h, c, func() any { return shown }, func(ctx context.Context) ([]body.Incident, bool, error) {
		found, more, err := h.accounts.Audit.ListEntries(ctx, q)
		if err != nil {
			return nil, false, err
		}
		actors, err := h.findActors(ctx, found)
		if err != nil {
			return nil, false, err
		}
		shown.Cursor = ""
		if more {
			q.After = found[len(found)-1].EntryKey
			shown.Cursor = q.After.Cursor()
		}
		q.Limit -= len(found)
		return mapSlice(found, func(e audit.Entry) body.Incident { return toIncident(e, actors[e.Actor], in.Language) }), more && q.Limit > 0, nil
	})
}

// findActors returns who is behind the actors of entries.
func (h *handler) findActors(ctx context.Context, entries []audit.Entry) (map[string]account.Actor, error) {
	var actors []string
	for _, e := range entries {
		if !slices.Contains(actors, e.Actor) {
			actors = append(actors, e.Actor)
		}
	}
	return h.accounts.Queries.FindActors(ctx, actors)
}

func toIncident(e audit.Entry, by account.Actor, language string) body.Incident {
	shown := body.Incident{
		Position: e.Position, Time: e.Time, Type: e.Type, Subject: e.Subject, Author: e.Actor, AuthorName: by.Name, AuthorRole: by.Role,
		OnBehalfOf: e.OnBehalfOf, Reason: e.Reason, Sentence: e.Sentence, Data: e.Data,
	}
	if language == "fr" {
		shown.Sentence = e.FrenchSentence()
	}
	return shown
}

// mapSlice is a list with each item shown.
func mapSlice[T, S any](all []T, show func(T) S) []S {
	shown := make([]S, len(all))
	for i, x := range all {
		shown[i] = show(x)
	}
	return shown
}

// checkAccountExists refuses an unknown account: its lists are not empty, they are not found.
func (h *handler) checkAccountExists(ctx context.Context, id string) error {
	return h.accounts.Commands.CheckExists(ctx, id)
}

// toListError turns the error of a list into its answer: a cursor that is not ours is a broken rule.
func toListError(err error) error {
	if errors.Is(err, account.ErrInvalidCursor) {
		return problem.InvalidCursor()
	}
	return err
}
