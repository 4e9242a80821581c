// Package register fills the tables of accounts, keys and customer-area tokens that lists are read from. It keeps
// what is true now and what is scheduled; what was true before is the history's business.
package register

import (
	"encoding/json"
	"strings"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Model is the register. Names of accounts are personal: an erasure empties them.
var Model = projector.Model{
	Model:      table.Register,
	Categories: eventstore.Filter{"account", "token"},
	Personal:   true,
	Rules: []projector.Rule{
		projector.On(opened),
		projector.On(planChanged),
		projector.On(agencyActivated),
		projector.On(agencyJoined),
		projector.On(agencyLeft),
		projector.On(closed),
		projector.On(erased),
		projector.On(secretKeyIssued),
		projector.On(publishableKeyIssued),
		projector.On(keyRevoked),
		projector.On(originsChanged),
		projector.Ignore[event.AccountActionRefused](),
		projector.Ignore[event.AccountEventVoided](),
		projector.On(tokenIssued),
		projector.On(tokenRevoked),
		projector.Ignore[event.TokenEventVoided](),
	},
	Drop: drop,
}

// drop takes an account and its keys away, or the token of a stream.
func drop(b *projector.Batch, owner string, _ eventstore.Position) {
	if token, ok := strings.CutPrefix(owner, "/token-"); ok {
		projector.Wipe(b, table.Tokens, "id", token)
		return
	}
	projector.Erase(b)
	projector.Wipe(b, table.Accounts, "id", owner)
	projector.Wipe(b, table.Keys, "account", owner)
}

// account is the account whose stream an event is in.
func account(r projector.Record) string { return eventstore.Subject(r.Stream) }

func opened(b *projector.Batch, e event.AccountOpened, r projector.Record) {
	projector.Put(b, table.Accounts, table.Account{
		ID: account(r), Name: string(e.Name), Plan: string(e.Plan), Quota: e.Quota, Anchor: e.Anchor.String(),
		Agency: e.Agency, Opened: table.At(r.Time),
	})
}

// planChanged sets new terms. Earlier ones that were scheduled hold by now, or never will.
func planChanged(b *projector.Batch, e event.PlanChanged, r projector.Record) {
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) {
		if a.NextFrom != 0 && a.NextFrom <= table.At(r.Time) {
			a.Plan, a.Quota = a.NextPlan, a.NextQuota
		}
		a.NextPlan, a.NextQuota, a.NextFrom = string(e.To), e.Quota, table.At(e.Effective)
		if !e.Effective.After(r.Time) {
			a.Plan, a.Quota = string(e.To), e.Quota
			a.NextPlan, a.NextQuota, a.NextFrom = "", 0, 0
		}
	})
}

func agencyActivated(b *projector.Batch, _ event.AgencyActivated, r projector.Record) {
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) { a.AgencyMode = true })
}

func agencyJoined(b *projector.Batch, e event.AgencyJoined, r projector.Record) {
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) { move(a, e.Agency, table.At(e.Effective), r) })
}

func agencyLeft(b *projector.Batch, e event.AgencyLeft, r projector.Record) {
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) { move(a, "", table.At(e.Effective), r) })
}

// move makes an account belong to another agency, or to none, from an instant on.
func move(a *table.Account, agency string, from table.Instant, r projector.Record) {
	now := table.At(r.Time)
	if a.NextAgencyFrom != 0 && a.NextAgencyFrom <= now {
		a.Agency = a.NextAgency
	}
	a.NextAgency, a.NextAgencyFrom = agency, from
	if from <= now {
		a.Agency, a.NextAgency, a.NextAgencyFrom = agency, "", 0
	}
}

func closed(b *projector.Batch, _ event.AccountClosed, r projector.Record) {
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) { a.Closed = table.At(r.Time) })
}

func erased(b *projector.Batch, _ event.AccountErased, r projector.Record) {
	projector.Erase(b)
	projector.Change(b, table.Accounts, account(r), func(a *table.Account) { a.Name = "" })
}

func secretKeyIssued(b *projector.Batch, e event.SecretKeyIssued, r projector.Record) {
	projector.Put(b, table.Keys, table.Key{
		ID: e.Key, Account: account(r), Kind: string(token.Secret), Label: e.Label, Hint: e.Hint, Origins: "[]",
		Created: table.At(r.Time), CreatedBy: r.Meta.Actor,
	})
}

func publishableKeyIssued(b *projector.Batch, e event.PublishableKeyIssued, r projector.Record) {
	projector.Put(b, table.Keys, table.Key{
		ID: e.Key, Account: account(r), Kind: string(token.Publishable), Label: e.Label, Hint: e.Hint, Origins: array(e.Origins),
		Token: e.Token, Created: table.At(r.Time), CreatedBy: r.Meta.Actor,
	})
}

func keyRevoked(b *projector.Batch, e event.KeyRevoked, r projector.Record) {
	projector.Change(b, table.Keys, e.Key, func(k *table.Key) {
		k.Revoked, k.RevokedBy, k.Reason = table.At(r.Time), r.Meta.Actor, r.Meta.Reason
	})
}

func originsChanged(b *projector.Batch, e event.KeyOriginsChanged, _ projector.Record) {
	projector.Change(b, table.Keys, e.Key, func(k *table.Key) { k.Origins = array(e.Origins) })
}

func tokenIssued(b *projector.Batch, e event.TokenIssued, r projector.Record) {
	projector.Put(b, table.Tokens, table.Token{
		ID: e.Token, Role: e.Role, Account: e.Account, Label: e.Label, Hint: e.Hint,
		Created: table.At(r.Time), CreatedBy: r.Meta.Actor,
	})
}

func tokenRevoked(b *projector.Batch, e event.TokenRevoked, r projector.Record) {
	projector.Change(b, table.Tokens, e.Token, func(t *table.Token) {
		t.Revoked, t.RevokedBy, t.Reason = table.At(r.Time), r.Meta.Actor, r.Meta.Reason
	})
}

// array is a list as JSON. A list of texts always has a JSON form.
func array(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(list)
	return string(text)
}
