package audit_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/audit"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

func TestEveryEventIsOneEntry(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, audit.Model)
		hash := token.HashOf("x")
		s.Append("account-a",
			event.AccountOpened{Account: "a", Name: "Ménard", Plan: plan.Starter, Quota: 100, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
			event.SecretKeyIssued{Key: "k", Label: `odd "hash":"label`, Hash: hash[:], Hint: "ld_sk_…aaaa"},
			event.AccountActionRefused{Action: "change-origins", Code: "cle_revoquee"},
			event.AccountActionRefused{Action: "change-plan", Code: "compte_ferme"})
		s.Append("token-t", event.TokenIssued{Token: "t", Role: "customer", Account: "a", Hash: hash[:], Hint: "ld_ct_…cccc"})
		got := projectortest.Rows(s, table.AuditModel, table.AuditEntries)
		whole := base64.StdEncoding.EncodeToString(hash[:])
		for i := range got {
			if got[i].Recorded == 0 || got[i].Position == 0 || got[i].Actor != projectortest.Actor {
				t.Errorf("got %+v, want its time, place and actor", got[i])
			}
			if strings.Contains(got[i].Data, "Ménard") || strings.Contains(got[i].Data, whole) {
				t.Errorf("%s shows what it must not", got[i].Data)
			}
			got[i] = table.AuditEntry{Account: got[i].Account, Kind: got[i].Kind, Subject: got[i].Subject, Sentence: got[i].Sentence, Data: got[i].Data}
		}
		short := whole[:16] + "…"
		want := []table.AuditEntry{
			{Account: "a", Kind: "account", Subject: "a", Sentence: "opened the account on plan STARTER", Data: `{"account":"a","name":"","plan":"STARTER","quota":100,"anchor":"2026-11-21"}`},
			{Account: "a", Kind: "keys", Subject: "k", Sentence: "issued secret key k (ld_sk_…aaaa)", Data: `{"key":"k","label":"","hash":"` + short + `","hint":"ld_sk_…aaaa"}`},
			{Account: "a", Kind: "keys", Subject: "a", Sentence: "was refused: change-origins (cle_revoquee)", Data: `{"action":"change-origins","code":"cle_revoquee"}`},
			{Account: "a", Kind: "account", Subject: "a", Sentence: "was refused: change-plan (compte_ferme)", Data: `{"action":"change-plan","code":"compte_ferme"}`},
			{Account: "a", Kind: "token", Subject: "t", Sentence: "issued customer token t (ld_ct_…cccc)", Data: `{"token":"t","role":"customer","account":"a","label":"","hash":"` + short + `","hint":"ld_ct_…cccc"}`},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatPeopleTypedIsApartFromTheEntriesAndGoesWithAnErasure(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, audit.Model)
		hash := token.HashOf("x")
		for _, account := range []string{"a", "b"} {
			s.Append("account-"+account,
				event.AccountOpened{Account: account, Name: "Ménard", Plan: plan.Starter, Quota: 100, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
				event.SecretKeyIssued{Key: "k", Label: `odd "hash":"label`, Hash: hash[:], Hint: "ld_sk_…aaaa"})
			s.Append("locations-"+account, event.ReferentialRenamed{Code: "m", Before: "Shops", Name: "Stores"})
			s.Append("token-of-"+account, event.TokenIssued{Token: "of-" + account, Role: "customer", Account: account, Label: "for Ménard", Hash: hash[:], Hint: "ld_ct_…cccc"})
		}
		s.Append("token-t", event.TokenIssued{Token: "t", Role: "operator", Label: "night shift", Hash: hash[:], Hint: "ld_ct_…dddd"})
		short := base64.StdEncoding.EncodeToString(hash[:])[:16] + "…"
		type text struct{ Owner, Account, Data string }
		texts := func(account string) []text {
			return []text{
				{account, account, ""},
				{account, account, `{"key":"k","label":"odd \"hash\":\"label","hash":"` + short + `","hint":"ld_sk_…aaaa"}`},
				{account, account, `{"code":"m","before":"Shops","name":"Stores"}`},
				{"/token-of-" + account, account, `{"token":"of-` + account + `","role":"customer","account":"` + account + `","label":"for Ménard","hash":"` + short + `","hint":"ld_ct_…cccc"}`},
			}
		}
		ofNobody := text{"/token-t", "", `{"token":"t","role":"operator","label":"night shift","hash":"` + short + `","hint":"ld_ct_…dddd"}`}
		check := func(when string, want []text) {
			t.Helper()
			var got []text
			for _, r := range projectortest.Rows(s, table.AuditModel, table.AuditTexts) {
				got = append(got, text{r.Owner, r.Account, r.Data})
				if r.Reason != projectortest.Reason {
					t.Errorf("%s: got %+v, want its reason", when, r)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		check("before", append(append(texts("a"), texts("b")...), ofNobody))
		s.Append("account-a", event.AccountClosed{}, event.AccountErased{})
		s.Append("account-a", event.KeyRevoked{Key: "k", Hash: hash[:]})
		check("after", append(texts("b"), ofNobody))
	})
}

func TestEverySiteChangeIsOneEntry(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, audit.Model)
		row := func(op, id string, version int64) event.SiteRow {
			return event.SiteRow{ExternalID: id, SiteID: "of-" + id, Operation: op, Version: version, Content: `{"content":{"nom":"Ménard"}}`, Digest: []byte("digest")}
		}
		by := func(action string) event.SiteWriteSummary {
			return event.SiteWriteSummary{Referential: "m", Action: action, Created: 2, IdempotencyKeyHash: "hash of the key", RequestHash: "hash of the request"}
		}
		s.Append("locations-a", event.ReferentialOpened{Code: "m", Name: "Magasins"})
		s.Sync("locations-a", by("sync"), []event.SiteRow{row("created", "p", 1), row("created", "q", 1)})
		s.Append("locations-a", event.SitesChanged{SiteWriteSummary: by("patch"), Rows: []event.SiteRow{row("updated", "p", 2)}})
		s.Append("locations-a", event.UnchangedWriteRecorded{SiteWriteSummary: by("upsert")})
		s.Append("locations-a", event.SitesChanged{SiteWriteSummary: by("archive"), Rows: []event.SiteRow{row("deactivated", "q", 2)}}, event.ReferentialArchived{Code: "m"})
		type line struct{ Subject, Sentence, Data string }
		var got []line
		for _, e := range projectortest.Rows(s, table.AuditModel, table.AuditEntries) {
			if e.Account != "a" || e.Kind != table.AuditKindSites || e.Recorded == 0 || e.Actor != projectortest.Actor {
				t.Errorf("got %+v", e)
			}
			got = append(got, line{e.Subject, e.Sentence, e.Data})
		}
		figures := func(action string) string {
			return `{"referential":"m","action":"` + action + `","created":2,"updated":0,"unchanged":0,"reactivated":0,"deactivated":0,"placed":0,"before":0,"after":0,"active":0,"capacity":0,"ceiling":0}`
		}
		did := ": 2 created, 0 updated, 0 reactivated, 0 deactivated"
		want := []line{
			{"m", "opened referential m", `{"code":"m"}`},
			{"m", got[1].Sentence, figures("sync")},
			{"m/p", "created site p of m (version 1)", `{"externalId":"p","site":"of-p","op":"created","version":1}`},
			{"m/q", "created site q of m (version 1)", `{"externalId":"q","site":"of-q","op":"created","version":1}`},
			{"m/p", "updated site p of m (version 2)", `{"externalId":"p","site":"of-p","op":"updated","version":2}`},
			{"m", "was asked to write sites of m (upsert) and had nothing to change", figures("upsert")},
			{"m", "wrote sites of m (archive)" + did, figures("archive")},
			{"m/q", "deactivated site q of m (version 2)", `{"externalId":"q","site":"of-q","op":"deactivated","version":2}`},
			{"m", "archived referential m", `{"code":"m"}`},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if s := got[1].Sentence; !strings.HasPrefix(s, "wrote sites of m (sync, as staged in ") || !strings.HasSuffix(s, did) {
			t.Errorf("got %q", s)
		}
	})
}
