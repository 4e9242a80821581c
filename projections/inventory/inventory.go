// Package inventory fills the tables of referentials and sites as they stand, and of what a search engine outside is still to
// be told of. What the log says of a site is personal: an erasure of its account takes the row away, for good.
package inventory

import (
	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Model is the places. With outbox every change of a site is noted in the outbox too, in the same transaction.
func Model(outbox bool) projector.Model {
	f := filling{outbox}
	return projector.Model{
		Model:      table.Places,
		Categories: eventstore.Filter{"account", category},
		Personal:   true,
		States:     []projector.Stateful{standing},
		Rules: []projector.Rule{
			projector.On(opened),
			projector.On(renamed),
			projector.On(archived),
			projector.On(f.changed),
			projector.On(f.staged),
			projector.On(committed),
			projector.Ignore[event.RequestKept](),
			projector.On(f.erased),
			projector.Ignore[event.AccountOpened](),
			projector.Ignore[event.PlanChanged](),
			projector.Ignore[event.AgencyActivated](),
			projector.Ignore[event.AgencyJoined](),
			projector.Ignore[event.AgencyLeft](),
			projector.Ignore[event.AccountClosed](),
			projector.Ignore[event.SecretKeyIssued](),
			projector.Ignore[event.PublishableKeyIssued](),
			projector.Ignore[event.KeyRevoked](),
			projector.Ignore[event.KeyOriginsChanged](),
			projector.Ignore[event.AccountActionRefused](),
			projector.Ignore[event.AccountEventVoided](),
			projector.Ignore[event.LocationsEventVoided](),
		},
		Drop: f.drop,
	}
}

// drop takes the places of an account away. An index outside is told that they are gone, and then of those that are
// written again.
func (f filling) drop(b *projector.Batch, account string, at eventstore.Position) {
	projector.Erase(b)
	projector.Wipe(b, table.Referentials, "account", account)
	projector.Wipe(b, table.Sites, "account", account)
	projector.Wipe(b, table.Erasures, "stream", category+"-"+account)
	if f.outbox {
		projector.Put(b, table.Outbox, table.Outgoing{ID: account + "/", Position: int64(at)})
	}
}

const category = "locations"

// filling is how rows are written.
type filling struct{ outbox bool }

// account is the account whose stream an event is in.
func account(r projector.Record) string { return eventstore.Subject(r.Stream) }

func opened(b *projector.Batch, e event.ReferentialOpened, r projector.Record) {
	projector.Put(b, table.Referentials, table.Referential{
		ID: table.RefID(account(r), e.Code), Account: account(r), Code: e.Code, Name: e.Name,
		Created: table.At(r.Time), Position: int64(r.Position),
	})
}

func renamed(b *projector.Batch, e event.ReferentialRenamed, r projector.Record) {
	referential(b, e.Code, r, func(t *table.Referential) { t.Name = e.Name })
}

func archived(b *projector.Batch, e event.ReferentialArchived, r projector.Record) {
	referential(b, e.Code, r, func(t *table.Referential) { t.Archived = table.At(r.Time) })
}

// counted notes how many active sites a referential has after a change of them.
func counted(b *projector.Batch, e event.SitesWritten, r projector.Record) {
	referential(b, e.Referential, r, func(t *table.Referential) { t.Active = int64(e.After) })
}

func referential(b *projector.Batch, code string, r projector.Record, change func(*table.Referential)) {
	missing := func() table.Referential {
		return table.Referential{ID: table.RefID(account(r), code), Account: account(r), Code: code, Created: table.At(r.Time)}
	}
	projector.ChangeOr(b, table.Referentials, table.RefID(account(r), code), missing, func(t *table.Referential) {
		change(t)
		t.Position = int64(r.Position)
	})
}
