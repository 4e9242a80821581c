package history_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/projections/history"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
	"lieudit/schemas/token"
)

func TestEveryEventIsOneEntry(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, history.Model)
		hash := token.HashOf("x")
		s.Append("account-a",
			event.AccountOpened{Account: "a", Name: "Ménard", Plan: plan.Starter, Quota: 100, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
			event.SecretKeyIssued{Key: "k", Label: `odd "hash":"label`, Hash: hash[:], Hint: "ld_sk_…aaaa"},
			event.AccountActionRefused{Action: "change-origins", Code: "cle_revoquee"},
			event.AccountActionRefused{Action: "change-plan", Code: "compte_ferme"})
		s.Append("token-t", event.TokenIssued{Token: "t", Role: "customer", Account: "a", Hash: hash[:], Hint: "ld_ct_…cccc"})
		got := projectortest.Rows(s, table.History, table.Entries)
		whole := base64.StdEncoding.EncodeToString(hash[:])
		for i := range got {
			if got[i].Recorded == 0 || got[i].Position == 0 || got[i].Actor != projectortest.Actor || got[i].Reason != projectortest.Reason {
				t.Errorf("got %+v, want its time, place, actor and reason", got[i])
			}
			if strings.Contains(got[i].Data, "Ménard") || strings.Contains(got[i].Data, whole) {
				t.Errorf("%s shows what it must not", got[i].Data)
			}
			got[i] = table.Entry{Account: got[i].Account, Kind: got[i].Kind, Subject: got[i].Subject, Sentence: got[i].Sentence, Data: got[i].Data}
		}
		short := whole[:16] + "…"
		want := []table.Entry{
			{Account: "a", Kind: "account", Subject: "a", Sentence: "opened the account on plan STARTER", Data: `{"account":"a","name":"","plan":"STARTER","quota":100,"anchor":"2026-11-21"}`},
			{Account: "a", Kind: "keys", Subject: "k", Sentence: "issued secret key k (ld_sk_…aaaa)", Data: `{"key":"k","label":"odd \"hash\":\"label","hash":"` + short + `","hint":"ld_sk_…aaaa"}`},
			{Account: "a", Kind: "keys", Subject: "a", Sentence: "was refused: change-origins (cle_revoquee)", Data: `{"action":"change-origins","code":"cle_revoquee"}`},
			{Account: "a", Kind: "account", Subject: "a", Sentence: "was refused: change-plan (compte_ferme)", Data: `{"action":"change-plan","code":"compte_ferme"}`},
			{Account: "a", Kind: "token", Subject: "t", Sentence: "issued customer token t (ld_ct_…cccc)", Data: `{"token":"t","role":"customer","account":"a","label":"","hash":"` + short + `","hint":"ld_ct_…cccc"}`},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
