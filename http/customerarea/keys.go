package customerarea

import (
	"net/http"
	"slices"
	"time"

	"lieudit/commands/account"
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
