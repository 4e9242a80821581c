package area

import (
	"net/http"
	"time"

	"lieudit/commands/access"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
)

func (a *area) issueToken(r *http.Request, c call, in body.IssueToken) (reply, error) {
	if err := a.tokenAccount(r, in); err != nil {
		return reply{}, err
	}
	made, err := a.Tokens.Issue(r.Context(), c.intent(""), access.Issue{Role: in.Role, Account: in.Account, Label: in.Label})
	if err := a.showsToken(r.Context(), made.Position, err); err != nil {
		return reply{}, err
	}
	return created(body.AreaToken{
		ID: made.Token, Role: in.Role, Account: in.Account, Label: in.Label, Hint: made.Hint, Token: made.Clear,
		Created: a.Now().UTC().Truncate(time.Microsecond), CreatedBy: c.intent("").Actor,
	})
}

// tokenAccount checks that a token names the account it acts for when, and only when, its role has one.
func (a *area) tokenAccount(r *http.Request, in body.IssueToken) error {
	bound := in.Role == grant.Customer || in.Role == grant.Agency
	switch {
	case bound && in.Account == "":
		return broken(in, "missing", "Field required")
	case !bound && in.Account != "":
		return broken(in, "extra_forbidden", "Extra inputs are not permitted")
	case !bound:
		return nil
	}
	_, err := a.Accounts.Current(r.Context(), in.Account)
	return err
}

func broken(in body.IssueToken, rule, text string) error {
	return problem.Violations(problem.Violation{Type: rule, Loc: []any{"body", "account"}, Msg: text, Input: in})
}

func (a *area) revokeToken(r *http.Request, c call, in body.RevokeToken) (reply, error) {
	ended, at, err := a.Tokens.Revoke(r.Context(), c.intent(in.Reason), c.vars["token"])
	if err := a.showsToken(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	return ok(body.AreaToken{
		ID: ended.Issued.Token, Role: grant.Role(ended.Issued.Role), Account: ended.Issued.Account, Label: ended.Issued.Label,
		Hint: ended.Issued.Hint, Created: ended.IssuedAt, CreatedBy: ended.IssuedBy,
		Revoked: ended.RevokedAt, RevokedBy: ended.RevokedBy, Reason: ended.Reason,
	})
}
