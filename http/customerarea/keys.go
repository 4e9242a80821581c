package customerarea

import (
	"net/http"
	"slices"
	"time"

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/http/problem"
	accessschemas "lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/origin"
)

func (h *handler) issueKey(r *http.Request, c call, in body.IssueKey) (response, error) {
	made, err := h.AccountCommands.IssueKey(r.Context(), c.account(), c.metadata(""),
		account.KeyRequest{Kind: in.Kind, Label: in.Label, Origins: in.Origins})
	if err := h.awaitAccounts(r.Context(), made.Position, err); err != nil {
		return response{}, err
	}
	shown := toKey(&made.Key)
	shown.Token = made.Plaintext
	return createdResponse(shown)
}

func (h *handler) revokeKey(r *http.Request, c call, in body.RevokeKey) (response, error) {
	ended, at, err := h.AccountCommands.RevokeKey(r.Context(), c.account(), c.metadata(in.Reason), c.vars["key"])
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	return okResponse(toKey(&ended))
}

func (h *handler) changeOrigins(r *http.Request, c call, in body.ChangeOrigins) (response, error) {
	changed, at, err := h.AccountCommands.ChangeOrigins(r.Context(), c.account(), c.metadata(""), c.vars["key"], in.Origins)
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	return okResponse(toKey(&changed))
}

// toKey is a key as its stream tells it; a secret one's token is not in it.
func toKey(k *account.Key) body.Key {
	return body.Key{
		ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
		Created: k.IssuedAt, CreatedBy: k.IssuedBy, Revoked: k.RevokedAt, RevokedBy: k.RevokedBy, Reason: k.Reason,
		Warnings: origin.Warnings(k.Origins),
	}
}

// showState is the account at an instant, from the log itself.
func (h *handler) showState(r *http.Request, c call, in body.StateQuery) (response, error) {
	s, last, err := h.AccountCommands.StateAsOf(r.Context(), c.account(), in.AsOf)
	if err != nil {
		return response{}, err
	}
	asOf := in.AsOf
	if asOf.IsZero() {
		asOf = h.Now().UTC().Truncate(time.Microsecond)
		if last.Time.After(asOf) { // the log's clock is ahead of this one
			asOf = last.Time
		}
	}
	terms := s.Terms.At(asOf)
	shown := body.State{
		Account: s.ID, AsOf: asOf.UTC(), Position: uint64(last.Position), Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota,
		Anchor: s.Anchor, Agency: s.Agency.At(asOf), IsAgency: s.IsAgency, NextTerms: toNextTerms(&s, asOf),
		Created: s.OpenedAt, Closed: s.ClosedAt, Keys: toValidKeys(&s),
	}
	return okResponse(shown)
}

// toValidKeys are the keys that work, oldest first: none of a closed account.
func toValidKeys(s *account.State) []body.Key {
	valid := []body.Key{}
	for _, k := range s.Keys {
		if k.Active() && !s.Closed() {
			valid = append(valid, toKey(k))
		}
	}
	slices.SortFunc(valid, func(x, y body.Key) int {
		if d := x.Created.Compare(y.Created); d != 0 {
			return d
		}
		return slices.Compare([]byte(x.ID), []byte(y.ID))
	})
	return valid
}

func (h *handler) issueToken(r *http.Request, c call, in body.IssueToken) (response, error) {
	if err := h.checkTokenAccount(r, in); err != nil {
		return response{}, err
	}
	made, err := h.TokenCommands.Issue(r.Context(), c.metadata(""), access.TokenRequest{Role: in.Role, Account: in.Account, Label: in.Label})
	if err := h.awaitTokens(r.Context(), made.Position, err); err != nil {
		return response{}, err
	}
	return createdResponse(body.AreaToken{
		ID: made.Token, Role: in.Role, Account: in.Account, Label: in.Label, Hint: made.Hint, Token: made.Plaintext,
		Created: h.Now().UTC().Truncate(time.Microsecond), CreatedBy: c.metadata("").Actor,
	})
}

// checkTokenAccount checks that a token names the account it acts for when, and only when, its role has one.
func (h *handler) checkTokenAccount(r *http.Request, in body.IssueToken) error {
	needsAccount := in.Role == accessschemas.RoleCustomer || in.Role == accessschemas.RoleAgency
	switch {
	case needsAccount && in.Account == "":
		return accountRuleBroken(in, "missing", "Field required")
	case !needsAccount && in.Account != "":
		return accountRuleBroken(in, "extra_forbidden", "Extra inputs are not permitted")
	case !needsAccount:
		return nil
	}
	_, err := h.AccountCommands.CurrentState(r.Context(), in.Account)
	return err
}

func accountRuleBroken(in body.IssueToken, rule, text string) error {
	return problem.Violations(problem.Violation{Type: rule, Loc: []any{"body", "account"}, Msg: text, Input: in})
}

func (h *handler) revokeToken(r *http.Request, c call, in body.RevokeToken) (response, error) {
	ended, at, err := h.TokenCommands.Revoke(r.Context(), c.metadata(in.Reason), c.vars["token"])
	if err := h.awaitTokens(r.Context(), at, err); err != nil {
		return response{}, err
	}
	return okResponse(body.AreaToken{
		ID: ended.Issued.Token, Role: accessschemas.Role(ended.Issued.Role), Account: ended.Issued.Account, Label: ended.Issued.Label,
		Hint: ended.Issued.Hint, Created: ended.IssuedAt, CreatedBy: ended.IssuedBy,
		Revoked: ended.RevokedAt, RevokedBy: ended.RevokedBy, Reason: ended.Reason,
	})
}
