package area

import (
	"net/http"
	"slices"
	"time"

	"lieudit/commands/account"
	"lieudit/schemas/body"
	"lieudit/schemas/origin"
)

func (a *area) issueKey(r *http.Request, c call, in body.IssueKey) (reply, error) {
	made, err := a.Accounts.IssueKey(r.Context(), c.account(), c.intent(""),
		account.Issue{Kind: in.Kind, Label: in.Label, Origins: in.Origins})
	if err := a.shows(r.Context(), made.Position, err); err != nil {
		return reply{}, err
	}
	shown := shownKey(&made.Key)
	shown.Token = made.Clear
	return created(shown)
}

func (a *area) revokeKey(r *http.Request, c call, in body.RevokeKey) (reply, error) {
	ended, at, err := a.Accounts.RevokeKey(r.Context(), c.account(), c.intent(in.Reason), c.vars["key"])
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	return ok(shownKey(&ended))
}

func (a *area) changeOrigins(r *http.Request, c call, in body.ChangeOrigins) (reply, error) {
	changed, at, err := a.Accounts.ChangeOrigins(r.Context(), c.account(), c.intent(""), c.vars["key"], in.Origins)
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	return ok(shownKey(&changed))
}

// shownKey is a key as its stream tells it; a secret one's token is not in it.
func shownKey(k *account.Key) body.Key {
	return body.Key{
		ID: k.ID, Kind: k.Kind, Label: k.Label, Hint: k.Hint, Origins: k.Origins, Token: k.Token,
		Created: k.IssuedAt, CreatedBy: k.IssuedBy, Revoked: k.RevokedAt, RevokedBy: k.RevokedBy, Reason: k.Reason,
		Warnings: origin.Warnings(k.Origins),
	}
}

// state is the account at an instant, from the log itself.
func (a *area) state(r *http.Request, c call, in body.StateQuery) (reply, error) {
	s, last, err := a.Accounts.State(r.Context(), c.account(), in.AsOf)
	if err != nil {
		return reply{}, err
	}
	asOf := in.AsOf
	if asOf.IsZero() {
		asOf = a.Now().UTC().Truncate(time.Microsecond)
		if last.Time.After(asOf) { // the log's clock is ahead of this one
			asOf = last.Time
		}
	}
	terms := s.Terms.At(asOf)
	shown := body.State{
		Account: s.ID, AsOf: asOf.UTC(), Position: uint64(last.Position), Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota,
		Start: s.Anchor, Agency: s.Agency.At(asOf), IsAgency: s.AgencyMode, Next: nextTerms(&s, asOf),
		Created: s.OpenedAt, Closed: s.ClosedAt, Keys: validKeys(&s),
	}
	return ok(shown)
}

// validKeys are the keys that work, oldest first: none of a closed account.
func validKeys(s *account.State) []body.Key {
	valid := []body.Key{}
	for _, k := range s.Keys {
		if k.Active() && !s.Closed() {
			valid = append(valid, shownKey(k))
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
