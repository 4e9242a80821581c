// Package history fills the trail: one row for every event of accounts, tokens and places, as an auditor reads it, and one for
// every site that an event changed. It never sees a personal field, and shows hashes only by their first characters.
package history

import (
	"strings"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the history. An event of its categories needs nothing here to be in it.
var Model = projector.Model{
	Model:      table.History,
	Categories: eventstore.Filter{"account", "token", "locations"},
	Rules: []projector.Rule{
		projector.Each(record),
		projector.On(changed),
		projector.On(staged),
		projector.On(committed),
		projector.On(kept),
	},
	Drop: drop,
}

// drop takes the entries of an account away, or those of the one stream of a token. Entries about tokens stand in the
// history of the account that they act for, and do not come from its streams.
func drop(b *projector.Batch, owner string, _ eventstore.Position) {
	if token, ok := strings.CutPrefix(owner, "/token-"); ok {
		projector.WipeWhere(b, table.Entries, "kind = ? and subject = ?", table.KindToken, token)
		return
	}
	projector.WipeWhere(b, table.Entries, "account = ? and kind <> ?", owner, table.KindToken)
}

func record(b *projector.Batch, e event.Event, r projector.Record) {
	entry := entryOf(r)
	entry.Kind, entry.Subject = about(e, r)
	entry.Account, entry.Sentence, entry.Data = owner(e, r), event.Sentence(e), told(e)
	projector.Put(b, table.Entries, entry)
}

// entryOf is what an entry has from its event's place and envelope.
func entryOf(r projector.Record) table.Entry {
	return table.Entry{
		Position: int64(r.Position), Account: eventstore.Subject(r.Stream), Recorded: table.At(r.Time), Type: r.Type,
		Actor: r.Meta.Actor, OnBehalfOf: r.Meta.OnBehalfOf, Reason: r.Meta.Reason,
	}
}

// about says what an event is about.
func about(e event.Event, r projector.Record) (kind, subject string) {
	switch e := e.(type) {
	case event.SecretKeyIssued:
		return table.KindKeys, e.Key
	case event.PublishableKeyIssued:
		return table.KindKeys, e.Key
	case event.KeyRevoked:
		return table.KindKeys, e.Key
	case event.KeyOriginsChanged:
		return table.KindKeys, e.Key
	case event.ReferentialOpened:
		return table.KindSites, e.Code
	case event.ReferentialRenamed:
		return table.KindSites, e.Code
	case event.ReferentialArchived:
		return table.KindSites, e.Code
	case event.TokenIssued:
		return table.KindToken, e.Token
	case event.TokenRevoked:
		return table.KindToken, e.Token
	case event.TokenEventVoided:
		return table.KindToken, eventstore.Subject(r.Stream)
	case event.LocationsEventVoided:
		return table.KindSites, eventstore.Subject(r.Stream)
	case event.AccountActionRefused:
		if strings.Contains(e.Action, "key") || strings.Contains(e.Action, "origins") {
			return table.KindKeys, eventstore.Subject(r.Stream)
		}
	}
	return table.KindAccount, eventstore.Subject(r.Stream)
}

// owner is the account in whose history an event stands.
func owner(e event.Event, r projector.Record) string {
	switch e := e.(type) {
	case event.TokenIssued:
		return e.Account
	case event.TokenRevoked:
		return e.Account
	case event.TokenEventVoided:
		return ""
	}
	return eventstore.Subject(r.Stream)
}

const (
	hashField   = `"hash":"` // as the name of a field only: inside a text the quotes are escaped
	fingerprint = 16         // characters of a hash that are shown: enough to tell keys apart, too few to be one
)

// told is the event as JSON, with its hash cut short. Its personal fields are empty already.
func told(e event.Event) string {
	before, rest, found := strings.Cut(text(e), hashField)
	if !found {
		return before
	}
	hash, after, _ := strings.Cut(rest, `"`)
	return before + hashField + hash[:min(len(hash), fingerprint)] + `…"` + after
}
