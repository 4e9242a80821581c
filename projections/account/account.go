// Package account fills the tables of accounts, keys and customer-area tokens that lists are read from. It keeps what is true
// now and what is scheduled; the past is in the audit trail.
//
// The projector calls the handlers of Model with each decoded event. A handler puts a new row into the changeset, or updates
// the row of the id that the event names.
package account

import (
	"encoding/json"
	"strings"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Model is the read model of accounts. Their names, the labels of their keys and tokens and the reasons of revocations are
// personal: an erasure empties them.
var Model = projector.Model{
	ReadModel:         table.AccountModel,
	IsExhaustive:      true,
	NeedsPersonalData: true,
	NeedsReasons:      true,
	Handlers: []projector.EventHandler{
		projector.On(onAccountOpened),
		projector.On(onPlanChanged),
		projector.On(onAgencyActivated),
		projector.On(onAgencyJoined),
		projector.On(onAgencyLeft),
		projector.On(onAccountClosed),
		projector.On(onAccountErased),
		projector.On(onSecretKeyIssued),
		projector.On(onPublishableKeyIssued),
		projector.On(onKeyRotationStarted),
		projector.On(onKeyRevoked),
		projector.On(onKeyOriginsChanged),
		projector.On(onTokenIssued),
		projector.On(onTokenRevoked),
		projector.On(ignoreSession[event.SessionLinkIssued]),
		projector.On(ignoreSession[event.SessionLinkEnded]),
		projector.On(ignoreSession[event.SessionOpened]),
		projector.On(ignoreSession[event.SessionClosed]),
	},
	DropRows:  dropRows,
	EraseRows: eraseTokenTexts,
}

// dropRows deletes an account and its keys, or the token whose stream the owner is.
func dropRows(b *projector.Changeset, owner string, _ eventstore.Position) {
	if token, ok := strings.CutPrefix(owner, "/token-"); ok {
		projector.DeleteRows(b, table.Tokens, "id", token)
		return
	}
	projector.RequireScrub(b)
	projector.DeleteRows(b, table.Accounts, "id", owner)
	projector.DeleteRows(b, table.Keys, "account", owner)
}

// ignoreSession writes nothing: links and sessions end by themselves, so lists of them are read from the stream of their token.
func ignoreSession[E event.Event](*projector.Changeset, E, projector.Record) {}

// onAccountOpened puts the account with its first terms.
func onAccountOpened(b *projector.Changeset, e event.AccountOpened, r projector.Record) {
	projector.PutRow(b, table.Accounts, table.Account{
		ID: r.Account(), Name: string(e.Name), Plan: string(e.Plan), Quota: e.Quota, Anchor: e.Anchor.String(),
		Agency: e.Agency, Opened: table.InstantOf(r.Time),
	})
}

// onPlanChanged sets new terms at once or schedules them. Terms scheduled earlier have either begun by the event's time,
// or are replaced and never begin.
func onPlanChanged(b *projector.Changeset, e event.PlanChanged, r projector.Record) {
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) {
		if a.NextFrom != 0 && a.NextFrom <= table.InstantOf(r.Time) {
			a.Plan, a.Quota = a.NextPlan, a.NextQuota
		}
		a.NextPlan, a.NextQuota, a.NextFrom = string(e.To), e.Quota, table.InstantOf(e.Effective)
		if a.NextFrom <= table.InstantOf(r.Time) {
			a.Plan, a.Quota = string(e.To), e.Quota
			a.NextPlan, a.NextQuota, a.NextFrom = "", 0, 0
		}
	})
}

// onAgencyActivated makes the account an agency, permanently.
func onAgencyActivated(b *projector.Changeset, _ event.AgencyActivated, r projector.Record) {
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) { a.AgencyMode = true })
}

// onAgencyJoined and onAgencyLeft take effect at the start of the next period, which the event names.
func onAgencyJoined(b *projector.Changeset, e event.AgencyJoined, r projector.Record) {
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) { changeAgency(a, e.Agency, table.InstantOf(e.Effective), r) })
}

func onAgencyLeft(b *projector.Changeset, e event.AgencyLeft, r projector.Record) {
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) { changeAgency(a, "", table.InstantOf(e.Effective), r) })
}

// changeAgency makes an account belong to another agency, or to none for "", from an instant on. As with terms, a change
// scheduled earlier has either begun by the event's time, or is replaced.
func changeAgency(a *table.Account, agency string, from table.Instant, r projector.Record) {
	now := table.InstantOf(r.Time)
	if a.NextAgencyFrom != 0 && a.NextAgencyFrom <= now {
		a.Agency, a.AgencyBegan = a.NextAgency, a.NextAgencyFrom
	}
	a.NextAgency, a.NextAgencyFrom = agency, from
	if from <= now {
		a.Agency, a.AgencyBegan, a.NextAgency, a.NextAgencyFrom = agency, 0, "", 0
	}
}

// onAccountClosed keeps the account and its keys: lists show them, the key ring refuses them.
func onAccountClosed(b *projector.Changeset, _ event.AccountClosed, r projector.Record) {
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) { a.Closed = table.InstantOf(r.Time) })
}

// onAccountErased empties the personal fields and has them scrubbed from the database's files.
func onAccountErased(b *projector.Changeset, _ event.AccountErased, r projector.Record) {
	projector.RequireScrub(b)
	projector.UpdateRow(b, table.Accounts, r.Account(), func(a *table.Account) { a.Name = "" })
	projector.BlankColumns(b, table.Keys, []string{"label", "reason"}, "account", r.Account())
	eraseTokenTexts(b, r.Account())
}

// eraseTokenTexts empties the personal fields of the tokens that act for an account.
func eraseTokenTexts(b *projector.Changeset, account string) {
	projector.RequireScrub(b)
	projector.BlankColumns(b, table.Tokens, []string{"label", "reason"}, "account", account)
}

// onSecretKeyIssued puts the key. Its hash stays out of the tables: only the key ring needs it.
func onSecretKeyIssued(b *projector.Changeset, e event.SecretKeyIssued, r projector.Record) {
	projector.PutRow(b, table.Keys, table.Key{
		ID: e.Key, Account: r.Account(), Kind: string(token.Secret), Label: string(e.Label), Hint: e.Hint, Origins: "[]",
		Created: table.InstantOf(r.Time), CreatedBy: r.Meta.Actor,
	})
}

// onPublishableKeyIssued puts the key with its token, which is public by nature and shown again.
func onPublishableKeyIssued(b *projector.Changeset, e event.PublishableKeyIssued, r projector.Record) {
	projector.PutRow(b, table.Keys, table.Key{
		ID: e.Key, Account: r.Account(), Kind: string(token.Publishable), Label: string(e.Label), Hint: e.Hint, Origins: jsonArray(e.Origins),
		Token: e.Token, Created: table.InstantOf(r.Time), CreatedBy: r.Meta.Actor,
	})
}

func onKeyRotationStarted(b *projector.Changeset, e event.KeyRotationStarted, _ projector.Record) {
	projector.UpdateRow(b, table.Keys, e.Key, func(k *table.Key) { k.Replaces = e.Replaces })
}

// onKeyRevoked keeps the row: lists show revoked keys too.
func onKeyRevoked(b *projector.Changeset, e event.KeyRevoked, r projector.Record) {
	projector.UpdateRow(b, table.Keys, e.Key, func(k *table.Key) {
		k.Revoked, k.RevokedBy, k.Reason = table.InstantOf(r.Time), r.Meta.Actor, r.Meta.Reason
	})
}

func onKeyOriginsChanged(b *projector.Changeset, e event.KeyOriginsChanged, _ projector.Record) {
	projector.UpdateRow(b, table.Keys, e.Key, func(k *table.Key) { k.Origins = jsonArray(e.Origins) })
}

// onTokenIssued puts the token under its own id: it may act for no account.
func onTokenIssued(b *projector.Changeset, e event.TokenIssued, r projector.Record) {
	projector.PutRow(b, table.Tokens, table.Token{
		ID: e.Token, Role: e.Role, Account: e.Account, Label: string(e.Label), Hint: e.Hint,
		Created: table.InstantOf(r.Time), CreatedBy: r.Meta.Actor,
	})
}

func onTokenRevoked(b *projector.Changeset, e event.TokenRevoked, r projector.Record) {
	projector.UpdateRow(b, table.Tokens, e.Token, func(t *table.Token) {
		t.Revoked, t.RevokedBy, t.Reason = table.InstantOf(r.Time), r.Meta.Actor, r.Meta.Reason
	})
}

// jsonArray is a list as JSON, "[]" for an empty one. A list of texts always has a JSON form.
func jsonArray(list []string) string {
	if len(list) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(list)
	return string(text)
}
