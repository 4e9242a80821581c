package customerarea

import (
	"net/http"
	"time"

	"lieudit/commands/access"
	"lieudit/http/problem"
	accessschemas "lieudit/schemas/access"
	"lieudit/schemas/body"
)

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
