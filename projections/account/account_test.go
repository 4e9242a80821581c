package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

var (
	accountOpened = event.AccountOpened{Account: "a", Name: "Ménard", Plan: plan.Starter, Quota: 100, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}
	past          = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	later         = time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)
	hash          = make([]byte, 32)
)

func planChanges(to plan.Name, quota int64, effective time.Time) event.PlanChanged {
	return event.PlanChanged{From: plan.Starter, To: to, Quota: quota, Effective: effective}
}

func TestAccountHasWhatItsEventsSay(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		events []event.Event
		want   func(*table.Account)
	}{
		"opened":       {nil, func(*table.Account) {}},
		"plan at once": {[]event.Event{planChanges(plan.Growth, 500, past)}, func(a *table.Account) { a.Plan, a.Quota = "GROWTH", 500 }},
		"plan later": {[]event.Event{planChanges(plan.Discovery, 50, later)}, func(a *table.Account) {
			a.NextPlan, a.NextQuota, a.NextFrom = "DISCOVERY", 50, table.InstantOf(later)
		}},
		"later plan replaced": {[]event.Event{planChanges(plan.Discovery, 50, later), planChanges(plan.Starter, 70, later)}, func(a *table.Account) {
			a.NextPlan, a.NextQuota, a.NextFrom = "STARTER", 70, table.InstantOf(later)
		}},
		"later plan given up for one at once": {[]event.Event{planChanges(plan.Discovery, 50, later), planChanges(plan.Growth, 500, past)}, func(a *table.Account) {
			a.Plan, a.Quota = "GROWTH", 500
		}},
		"agency mode": {[]event.Event{event.AgencyActivated{}}, func(a *table.Account) { a.AgencyMode = true }},
		"agency later": {[]event.Event{event.AgencyJoined{Agency: "g", Effective: later}}, func(a *table.Account) {
			a.NextAgency, a.NextAgencyFrom = "g", table.InstantOf(later)
		}},
		"agency left later": {[]event.Event{event.AgencyJoined{Agency: "g", Effective: past}, event.AgencyLeft{Agency: "g", Effective: later}}, func(a *table.Account) {
			a.Agency, a.NextAgencyFrom = "g", table.InstantOf(later)
		}},
		"agency left before it began": {[]event.Event{event.AgencyJoined{Agency: "g", Effective: later}, event.AgencyLeft{Agency: "g", Effective: past}}, func(*table.Account) {}},
		"refusals change nothing":     {[]event.Event{event.AccountActionRefused{Action: "x", Code: "y"}}, func(*table.Account) {}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				s := projectortest.Start(t, address, account.Model)
				s.Append("account-a", append([]event.Event{accountOpened}, c.events...)...)
				want := table.Account{ID: "a", Name: "Ménard", Plan: "STARTER", Quota: 100, Anchor: "2026-11-21"}
				c.want(&want)
				got := projectortest.Rows(s, table.AccountModel, table.Accounts)
				if len(got) != 1 || got[0].Opened.Time().Before(past) {
					t.Fatalf("got %v", got)
				}
				got[0].Opened = 0
				if diff := cmp.Diff(want, got[0]); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestKeysAndTokensHaveWhatTheirEventsSay(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, account.Model)
		s.Append("account-a", accountOpened,
			event.SecretKeyIssued{Key: "k1", Label: "server", Hash: hash, Hint: "ld_sk_…aaaa"},
			event.PublishableKeyIssued{Key: "k2", Label: "site", Hash: hash, Hint: "ld_pk_…bbbb", Token: "ld_pk_t", Origins: []string{"https://a.fr"}},
			event.KeyRotationStarted{Key: "k2", Replaces: "k1"})
		s.Append("account-a", event.KeyRevoked{Key: "k1", Hash: hash}, event.KeyOriginsChanged{Key: "k2", Hash: hash, Origins: []string{"https://b.fr", "https://*.c.fr"}})
		s.Append("token-t", event.TokenIssued{Token: "t", Role: "customer", Account: "a", Label: "area", Hash: hash, Hint: "ld_ct_…cccc"})
		s.Append("token-t", event.TokenRevoked{Token: "t", Role: "customer", Hash: hash})
		keys := projectortest.Rows(s, table.AccountModel, table.Keys)
		tokens := projectortest.Rows(s, table.AccountModel, table.Tokens)
		if len(keys) != 2 || len(tokens) != 1 || keys[0].Created == 0 || keys[0].Revoked == 0 || tokens[0].Created == 0 || tokens[0].Revoked == 0 {
			t.Fatalf("got %v and %v", keys, tokens)
		}
		keys[0].Created, keys[0].Revoked, keys[1].Created, tokens[0].Created, tokens[0].Revoked = 0, 0, 0, 0, 0
		by, why := projectortest.Actor, projectortest.Reason
		want := []table.Key{
			{ID: "k1", Account: "a", Kind: "secret", Label: "server", Hint: "ld_sk_…aaaa", Origins: "[]", CreatedBy: by, RevokedBy: by, Reason: why},
			{ID: "k2", Account: "a", Kind: "publishable", Label: "site", Hint: "ld_pk_…bbbb", Origins: `["https://b.fr","https://*.c.fr"]`, Token: "ld_pk_t", CreatedBy: by, Replaces: "k1"},
		}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Error(diff)
		}
		token := []table.Token{{ID: "t", Role: "customer", Account: "a", Label: "area", Hint: "ld_ct_…cccc", CreatedBy: by, RevokedBy: by, Reason: why}}
		if diff := cmp.Diff(token, tokens); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNameIsGoneFromARebuildOnceItsKeyIsDestroyed(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, account.Model)
		s.Append("account-a", accountOpened)
		if got := projectortest.Rows(s, table.AccountModel, table.Accounts); len(got) != 1 || got[0].Name != "Ménard" {
			t.Fatalf("got %v", got)
		}
		if err := s.Vault.DestroyKey(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		s.Rebuild(table.AccountModel)
		if got := projectortest.Rows(s, table.AccountModel, table.Accounts); len(got) != 1 || got[0].Name != "" {
			t.Errorf("got %v, want no name", got)
		}
	})
}

func TestErasedNameIsScrubbedFromEveryFile(t *testing.T) {
	t.Parallel()
	const accounts = 400
	folder := t.TempDir()
	s := projectortest.Start(t, folder, account.Model)
	name := func(i int) string { return fmt.Sprintf("Ménard no %d, %s", i, strings.Repeat("x", i%180)) }
	stream := func(i int) string { return fmt.Sprintf("account-a%d", i*7919%accounts) }
	for i := range accounts { // so that names lie in the middle of pages, which are split
		opened := accountOpened
		opened.Account, opened.Name = strings.TrimPrefix(stream(i), "account-"), event.Personal(name(i))
		s.Append(stream(i), opened)
	}
	projectortest.Rows(s, table.AccountModel, table.Accounts)
	if !projectortest.FolderContains(t, folder, name(1)) {
		t.Fatal("the name is in no file while it is in use")
	}
	for i := range accounts {
		if i%10 > 0 { // most, so that pages are given back
			s.Append(stream(i), event.AccountErased{})
		}
	}
	projectortest.Rows(s, table.AccountModel, table.Accounts)
	for i := range accounts {
		if got, want := projectortest.FolderContains(t, folder, name(i)), i%10 == 0; got != want {
			t.Fatalf("name %d in files: %v, want %v", i, got, want)
		}
	}
}
