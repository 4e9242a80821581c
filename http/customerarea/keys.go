package customerarea

import (
	"context"
	"errors"
	"net/http"
	"time"

	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/origin"
	"lieudit/schemas/refusal"
)

// issueRequest is a request to issue a key, with the client's name for it.
type issueRequest struct {
	body.IssueKey
	idempotencyKey string
}

// issueKeyEndpoint issues a key, once for each Idempotency-Key. Where header and body are both wrong, the answer is about the body.
func (h *handler) issueKeyEndpoint() kit.Endpoint[principal] {
	decoder := kit.NewDecoder[body.IssueKey]()
	return kit.NewEndpoint(func(r *http.Request) (issueRequest, error) {
		in, err := decoder.DecodeBody(r)
		if err != nil {
			return issueRequest{}, err
		}
		key, err := kit.ParseIdempotencyKey(r.Header)
		return issueRequest{in, key}, err
	}, h.issueKey)
}

// issueKey issues a key. The token of a secret key is in this answer alone; only its hash is kept. That of a publishable key is
// public anyway, and every answer shows it.
func (h *handler) issueKey(ctx context.Context, c call, in issueRequest) (kit.Response, error) {
	made, err := h.accounts.Commands.IssueKey(ctx, c.Vars["id"], metadata(c, ""), account.KeyRequest{
		Kind: in.Kind, Label: in.Label, Origins: in.Origins, Replaces: in.Replaces, IdempotencyKey: in.idempotencyKey,
	})
	if err := kit.Await(ctx, h.accounts.Wait, made.Position, toReplacesRule(err)); err != nil {
		return kit.Response{}, err
	}
	shown := toKey(&made.Key)
	shown.Token = made.Plaintext
	return kit.Created(shown)
}

// toReplacesRule turns the error of a rotation of no key, or of one of the other kind, into a validation error of the request.
func toReplacesRule(err error) error {
	switch {
	case errors.Is(err, account.ErrReplacesUnknownKey):
		return problem.BrokenRule("body", "remplace", "value_error", "Value error, the account has no such key")
	case errors.Is(err, account.ErrReplacesOtherKind):
		return problem.BrokenRule("body", "remplace", "value_error", "Value error, a key takes the place of one of its own kind")
	}
	return err
}

// showKey shows a key as its stream has it, with its last use by now.
func (h *handler) showKey(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	found, replacedBy, err := h.accounts.Commands.FindKey(ctx, c.Vars["id"], c.Vars["key"])
	if err != nil {
		return kit.Response{}, err
	}
	h.usage.Wait(ctx)
	used, err := h.usage.Queries.LastUsed(ctx, []string{found.ID})
	shown := toKey(&found)
	shown.LastUsed, shown.ReplacedBy = used[found.ID], replacedBy
	return kit.Response{Body: shown}, err
}

// revokeKey revokes a key permanently. A second time changes nothing, and the answer shows the first revocation.
func (h *handler) revokeKey(ctx context.Context, c call, in body.RevokeKey) (kit.Response, error) {
	ended, at, err := h.accounts.Commands.RevokeKey(ctx, c.Vars["id"], metadata(c, in.Reason), c.Vars["key"])
	if err := kit.Await(ctx, h.accounts.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(toKey(&ended))
}

// changeOrigins replaces the origins of a publishable key.
func (h *handler) changeOrigins(ctx context.Context, c call, in body.ChangeOrigins) (kit.Response, error) {
	changed, at, err := h.accounts.Commands.ChangeOrigins(ctx, c.Vars["id"], metadata(c, ""), c.Vars["key"], in.Origins)
	if err := kit.Await(ctx, h.accounts.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(toKey(&changed))
}

// checkOrigins judges origins as issuing a key and changing its origins do.
func (h *handler) checkOrigins(ctx context.Context, c call, in body.CheckOrigins) (kit.Response, error) {
	if err := h.checkAccountExists(ctx, c.Vars["id"]); err != nil {
		return kit.Response{}, err
	}
	verdicts, refused := origin.JudgeList(in.Origins)
	return kit.OK(body.OriginVerdicts{
		Envelope: body.OKEnvelope, IsValid: refused == nil, Refusal: toOriginRefusal(refused), Results: mapSlice(verdicts, toVerdict),
	})
}

func toVerdict(v origin.Verdict) body.OriginVerdict {
	shown := body.OriginVerdict{
		Typed: v.Typed, IsValid: v.Fault == "", Kept: v.Kept, Fault: string(v.Fault), Repeated: v.Repeated, Warning: v.Warning,
	}
	if refused := toOriginRefusal(v.Refusal); refused != nil {
		shown.Message = refused.Message
	}
	return shown
}

// toOriginRefusal shows a refusal as its own answer shows it, or nil for nil.
func toOriginRefusal(err error) *body.OriginRefusal {
	r, ok := refusal.FromError(err)
	if !ok {
		return nil
	}
	return &body.OriginRefusal{Code: string(r.Code), Message: r.Error()}
}

// testOrigin tells what a request with a key is answered from a page. The rule is the one by which package auth admits requests.
func (h *handler) testOrigin(ctx context.Context, c call, in body.TestOrigin) (kit.Response, error) {
	declared, err := h.accounts.Commands.OriginsOf(ctx, c.Vars["id"], c.Vars["key"])
	if err != nil {
		return kit.Response{}, err
	}
	sent := origin.OfPage(in.Origin)
	entry, err := origin.Admit([]string{sent}, declared)
	return kit.OK(body.OriginTest{Origin: sent, IsAdmitted: err == nil, Entry: entry, Refusal: toOriginRefusal(err)})
}

// toKey is a key as its stream has it. The token of a secret key is not there.
func toKey(k *account.Key) body.Key {
	return body.Key{
		ID: k.ID, Kind: k.Kind, Label: string(k.Label), Hint: k.Hint, Origins: k.Origins, Token: k.Token,
		Created: k.IssuedAt, CreatedBy: k.IssuedBy, Revoked: k.RevokedAt, RevokedBy: k.RevokedBy, Reason: string(k.Reason), Replaces: k.Replaces,
		Omitted: omittedMembers(k.OmitsLabel, k.OmitsReason), Warnings: origin.Warnings(k.Origins),
	}
}

// The members that an answer names as omitted.
const (
	omittedLabel  = "label"
	omittedReason = "raison"
)

// omittedMembers names the members that an answer leaves out because the vault gave no data key.
func omittedMembers(label, reason bool) (omitted []string) {
	if label {
		omitted = append(omitted, omittedLabel)
	}
	if reason {
		omitted = append(omitted, omittedReason)
	}
	return omitted
}

// issueToken issues a customer-area token, whose text is in this answer alone.
func (h *handler) issueToken(ctx context.Context, c call, in body.IssueToken) (kit.Response, error) {
	if err := h.checkTokenAccount(ctx, in); err != nil {
		return kit.Response{}, err
	}
	made, err := h.accounts.Tokens.Issue(ctx, metadata(c, ""), areatoken.TokenRequest{Role: in.Role, Account: in.Account, Label: in.Label})
	if err := kit.Await(ctx, h.accounts.WaitTokens, made.Position, err); err != nil {
		return kit.Response{}, err
	}
	return kit.Created(body.AreaToken{
		ID: made.Token, Role: in.Role, Account: in.Account, Label: in.Label, Hint: made.Hint, Token: made.Plaintext,
		Created: h.Now().UTC().Truncate(time.Microsecond), CreatedBy: metadata(c, "").Actor,
	})
}

// checkTokenAccount checks that a token names the account that it acts for if, and only if, its role has one, and that this
// account exists.
func (h *handler) checkTokenAccount(ctx context.Context, in body.IssueToken) error {
	needsAccount := in.Role == grant.RoleCustomer || in.Role == grant.RoleAgency
	switch {
	case needsAccount && in.Account == "":
		return accountRuleBroken("missing", "Field required")
	case !needsAccount && in.Account != "":
		return accountRuleBroken("extra_forbidden", "Extra inputs are not permitted")
	case !needsAccount:
		return nil
	}
	s, err := h.accounts.Commands.CurrentState(ctx, in.Account)
	if err == nil && s.Erased {
		err = refusal.AccountClosed
	}
	return err
}

// accountRuleBroken is a broken rule of the member account.
func accountRuleBroken(rule, text string) error {
	return problem.BrokenRule("body", "account", rule, text)
}

// revokeToken revokes a customer-area token permanently. A second time changes nothing.
func (h *handler) revokeToken(ctx context.Context, c call, in body.RevokeToken) (kit.Response, error) {
	ended, at, err := h.accounts.Tokens.Revoke(ctx, metadata(c, in.Reason), c.Vars["token"])
	if err := kit.Await(ctx, h.accounts.WaitTokens, at, err); err != nil {
		return kit.Response{}, err
	}
	return kit.OK(body.AreaToken{
		ID: ended.Issued.Token, Role: grant.Role(ended.Issued.Role), Account: ended.Issued.Account, Label: string(ended.Issued.Label),
		Hint: ended.Issued.Hint, Created: ended.IssuedAt, CreatedBy: ended.IssuedBy,
		Revoked: ended.RevokedAt, RevokedBy: ended.RevokedBy, Reason: string(ended.Reason),
		Omitted: omittedMembers(ended.OmitsLabel, ended.OmitsReason),
	})
}
