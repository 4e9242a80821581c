package account_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/account"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

var (
	opened = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	now    = opened.AddDate(0, 0, 10)
	soon   = now.AddDate(0, 0, 10)
	anchor = plan.Date{Year: 2026, Month: 11, Day: 21}
)

// openReader makes a Reader of the rows that insert writes.
func openReader(t *testing.T, address string, insert func(tx *sqldb.Tx) error) *account.Reader {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	c, err := registry.BuildGeneration(t.Context(), table.AccountModel, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := registry.OpenGeneration(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := db.RunInTx(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	if err := registry.PromoteGeneration(t.Context(), table.AccountModel, c); err != nil {
		t.Fatal(err)
	}
	return account.New(registry, func() time.Time { return now })
}

func accountRow(id string, change func(*table.Account)) table.Account {
	a := table.Account{ID: id, Name: "Société " + id, Plan: "GROWTH", Quota: 1000, Anchor: "2026-11-21", Opened: table.InstantOf(opened)}
	change(&a)
	return a
}

// termsCases are accounts before, on and after the instant at which what is scheduled begins.
var termsCases = map[string]struct {
	row  func(*table.Account)
	want func(*account.Account)
}{
	"its own": {func(*table.Account) {}, func(*account.Account) {}},
	"with those to come": {
		func(a *table.Account) { a.NextPlan, a.NextQuota, a.NextFrom = "STARTER", 500, table.InstantOf(soon) },
		func(a *account.Account) { a.NextTerms = &account.NextTerms{Plan: plan.Starter, Quota: 500, From: soon} },
	},
	"those that have begun": {
		func(a *table.Account) { a.NextPlan, a.NextQuota, a.NextFrom = "STARTER", 500, table.InstantOf(now) },
		func(a *account.Account) { a.Plan, a.Quota = plan.Starter, 500 },
	},
	"of its agency": {
		func(a *table.Account) { a.Agency = "agency" },
		func(a *account.Account) {
			a.Agency, a.Plan, a.Anchor = "agency", plan.Business, plan.Date{Year: 2026, Month: 1, Day: 5}
		},
	},
	"of an agency to come": {
		func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "agency", table.InstantOf(soon) },
		func(a *account.Account) { a.AgencyChange = &account.AgencyChange{Agency: "agency", From: soon} },
	},
	"of an agency to come that is closed": {
		func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "gone", table.InstantOf(soon) },
		func(*account.Account) {},
	},
	"of an agency that was closed before it began": {
		func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "gone", table.InstantOf(now) },
		func(*account.Account) {},
	},
	"of an agency that was closed before it began, and then of another": {
		func(a *table.Account) {
			a.Agency, a.AgencyBegan, a.NextAgency, a.NextAgencyFrom = "gone", table.InstantOf(now), "agency", table.InstantOf(soon)
		},
		func(a *account.Account) { a.AgencyChange = &account.AgencyChange{Agency: "agency", From: soon} },
	},
	"of an agency that was closed after it began": {
		func(a *table.Account) { a.Agency, a.AgencyBegan = "gone", table.InstantOf(opened) },
		func(a *account.Account) { a.Agency = "gone" },
	},
	"of an agency it has left": {
		func(a *table.Account) { a.Agency, a.NextAgencyFrom = "agency", table.InstantOf(now) },
		func(*account.Account) {},
	},
	"of no agency, after a join withdrawn by an instance whose clock is ahead": {
		func(a *table.Account) { a.NextAgencyFrom = table.InstantOf(soon) },
		func(*account.Account) {},
	},
	"of an agency it leaves": {
		func(a *table.Account) { a.Agency, a.NextAgencyFrom = "agency", table.InstantOf(soon) },
		func(a *account.Account) {
			a.Agency, a.Plan, a.Anchor = "agency", plan.Business, plan.Date{Year: 2026, Month: 1, Day: 5}
			a.AgencyChange = &account.AgencyChange{From: soon}
		},
	},
	"of an account that is closed": {
		func(a *table.Account) { a.Closed = table.InstantOf(now) },
		func(a *account.Account) { a.Closed = now },
	},
}

func TestAnAccountShowsTheTermsThatHoldNow(t *testing.T) {
	t.Parallel()
	agency := accountRow("agency", func(a *table.Account) { a.Plan, a.Anchor, a.AgencyMode = "BUSINESS", "2026-01-05", true })
	gone := accountRow("gone", func(a *table.Account) { a.AgencyMode, a.Closed = true, table.InstantOf(now.Add(-time.Minute)) })
	plain := account.Account{Name: "Société a", Plan: plan.Growth, Quota: 1000, Anchor: anchor, Opened: opened}
	for rule, c := range termsCases {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				k := openReader(t, address, func(tx *sqldb.Tx) error {
					return sqldb.Upsert(t.Context(), tx, table.Accounts, []table.Account{agency, gone, accountRow("a", c.row)})
				})
				want := plain
				want.ID = "a"
				c.want(&want)
				got, err := k.FindAccount(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestSubClientOfAStoppedAgencyIsNotShownWithAPlanOfItsOwn(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		k := openReader(t, address, func(tx *sqldb.Tx) error { // the agency's rows are gone, or of before it stopped
			stopped := table.AccountStatus{Account: "agency", Kind: table.AccountRefolding}
			if err := sqldb.Upsert(t.Context(), tx, table.AccountStatuses, []table.AccountStatus{stopped}); err != nil {
				return err
			}
			return sqldb.Upsert(t.Context(), tx, table.Accounts, []table.Account{
				accountRow("child", func(a *table.Account) { a.Agency = "agency" }), accountRow("other", func(*table.Account) {}),
			})
		})
		var stopped *table.StoppedError
		if got, err := k.FindAccount(t.Context(), "child"); !errors.As(err, &stopped) || stopped.Account != "agency" {
			t.Errorf("got %+v, %v", got, err)
		}
		all, _, err := k.ListAccounts(t.Context(), account.Filter{}, account.Page{Limit: 10})
		if err != nil || len(all) != 1 || all[0].ID != "other" {
			t.Errorf("got %+v, %v, want the other account alone", all, err)
		}
	})
}

func TestAnUnknownAccountIsNotFound(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		k := openReader(t, address, func(*sqldb.Tx) error { return nil })
		if _, err := k.FindAccount(t.Context(), "a"); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("got %v, want %v", err, account.ErrNotFound)
		}
	})
}

func TestListsComeInPagesWithoutGap(t *testing.T) {
	t.Parallel()
	const n = 7
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var accounts []table.Account
		var issued []table.Key
		var tokens []table.Token
		for i := range n {
			id := fmt.Sprintf("id-%d.%d", i, i)
			at := table.InstantOf(opened.Add(time.Duration(i/2) * time.Second)) // two at a time at the same instant
			accounts = append(accounts, accountRow(id, func(a *table.Account) { a.Agency = []string{"x", "y"}[i%2] }))
			issued = append(issued, table.Key{ID: id, Account: "a", Kind: "secret", Origins: "[]", Created: at}, table.Key{ID: "other" + id, Account: "b", Origins: "[]"})
			tokens = append(tokens, table.Token{ID: id, Role: "operator", Created: at})
		}
		k := openReader(t, address, func(tx *sqldb.Tx) error {
			return errors.Join(sqldb.Upsert(t.Context(), tx, table.Accounts, accounts),
				sqldb.Upsert(t.Context(), tx, table.Keys, issued), sqldb.Upsert(t.Context(), tx, table.Tokens, tokens))
		})
		for name, list := range map[string]func(account.Page) ([]string, string, error){
			"accounts": func(p account.Page) ([]string, string, error) {
				found, next, err := k.ListAccounts(t.Context(), account.Filter{}, p)
				return ids(found, func(a account.Account) string { return a.ID }), next, err
			},
			"keys": func(p account.Page) ([]string, string, error) {
				found, next, err := k.ListKeys(t.Context(), "a", p)
				return ids(found, func(k account.Key) string { return k.ID }), next, err
			},
			"tokens": func(p account.Page) ([]string, string, error) {
				found, next, err := k.ListTokens(t.Context(), p)
				return ids(found, func(k account.Token) string { return k.ID }), next, err
			},
		} {
			for limit := 1; limit <= n+1; limit++ {
				if got := readAllPages(t, limit, list); len(got) != n || got[0] != "id-0.0" || got[n-1] != "id-6.6" {
					t.Errorf("%s by %d: got %v", name, limit, got)
				}
			}
		}
		if of, _, err := k.ListAccounts(t.Context(), account.Filter{Agency: "x"}, account.Page{Limit: 10}); err != nil || len(of) != 4 {
			t.Errorf("got %d sub-clients, %v, want 4", len(of), err)
		}
		if _, _, err := k.ListKeys(t.Context(), "a", account.Page{Cursor: "nonsense", Limit: 1}); !errors.Is(err, account.ErrInvalidCursor) {
			t.Errorf("got %v, want %v", err, account.ErrInvalidCursor)
		}
	})
}

func TestAnAgencyListsItsSubClientsUntilTheyHaveLeft(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		rows := []table.Account{
			accountRow("stays", func(a *table.Account) { a.Agency = "x" }),
			accountRow("leaves", func(a *table.Account) { a.Agency, a.NextAgencyFrom = "x", table.InstantOf(soon) }),
			accountRow("left", func(a *table.Account) { a.Agency, a.NextAgencyFrom = "x", table.InstantOf(now) }),
			accountRow("joins", func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "x", table.InstantOf(soon) }),
			accountRow("joined", func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "x", table.InstantOf(now) }),
			accountRow("elsewhere", func(a *table.Account) { a.Agency = "y" }),
			accountRow("gone", func(a *table.Account) { a.AgencyMode, a.Closed = true, table.InstantOf(now.Add(-time.Minute)) }),
			accountRow("never joins", func(a *table.Account) { a.NextAgency, a.NextAgencyFrom = "gone", table.InstantOf(soon) }),
			accountRow("was to join", func(a *table.Account) { a.Agency, a.AgencyBegan = "gone", table.InstantOf(now) }),
		}
		k := openReader(t, address, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Accounts, rows) })
		found, _, err := k.ListAccounts(t.Context(), account.Filter{Agency: "x"}, account.Page{Limit: 10})
		got := ids(found, func(a account.Account) string { return a.ID })
		if want := []string{"joined", "joins", "leaves", "stays"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		if found, _, err := k.ListAccounts(t.Context(), account.Filter{Agency: "gone"}, account.Page{Limit: 10}); err != nil || len(found) != 0 {
			t.Errorf("got %v, %v, want no sub-client of an agency that was closed before any had begun", found, err)
		}
	})
}

func TestAccountsAreFoundByAPartOfTheirIDOrName(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		named := func(id, name string, closed table.Instant) table.Account {
			return accountRow(id, func(a *table.Account) { a.Name, a.Closed = name, closed })
		}
		rows := []table.Account{
			named("ales", "Mairie d’Alès", 0), named("florac", "Mairie de Florac", table.InstantOf(opened)), named("mende", "MÉNARD & Fils_100%", 0), named("x-ales", "", table.InstantOf(opened)),
		}
		k := openReader(t, address, func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Accounts, rows) })
		for _, c := range []struct {
			filter account.Filter
			want   []string
		}{
			{account.Filter{}, []string{"ales", "florac", "mende", "x-ales"}},
			{account.Filter{Text: "ALES"}, []string{"ales", "x-ales"}},
			{account.Filter{Text: "alès"}, []string{"ales", "x-ales"}},
			{account.Filter{Text: "mairie d"}, []string{"ales", "florac"}},
			{account.Filter{Text: "menard"}, []string{"mende"}},
			{account.Filter{Text: "%"}, []string{"mende"}},
			{account.Filter{Text: "_"}, []string{"mende"}},
			{account.Filter{Text: "nobody"}, nil},
			{account.Filter{Open: new(true)}, []string{"ales", "mende"}},
			{account.Filter{Open: new(false)}, []string{"florac", "x-ales"}},
			{account.Filter{Text: "ales", Open: new(false)}, []string{"x-ales"}},
		} {
			for limit := 1; limit <= 5; limit++ {
				got := readAllPages(t, limit, func(p account.Page) ([]string, string, error) {
					found, next, err := k.ListAccounts(t.Context(), c.filter, p)
					return ids(found, func(a account.Account) string { return a.ID }), next, err
				})
				if !slices.Equal(got, c.want) {
					t.Errorf("%+v by %d: got %v, want %v", c.filter, limit, got, c.want)
				}
			}
		}
	})
}

func TestActorsAreFoundByTheirTokensAndKeys(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		k := openReader(t, address, func(tx *sqldb.Tx) error {
			return errors.Join(
				sqldb.Upsert(t.Context(), tx, table.Tokens, []table.Token{{ID: "one", Role: "agency", Label: "desk", Revoked: table.InstantOf(opened)}, {ID: "erased", Role: "customer"}}),
				sqldb.Upsert(t.Context(), tx, table.Keys, []table.Key{{ID: "one", Label: "backend", Origins: "[]"}}))
		})
		got, err := k.FindActors(t.Context(), []string{"token:one", "key:one", "token:erased", "token:unknown", "system", ""})
		want := map[string]account.Actor{"token:one": {Name: "desk", Role: "agency"}, "key:one": {Name: "backend"}, "token:erased": {Role: "customer"}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

func readAllPages(t *testing.T, limit int, list func(account.Page) ([]string, string, error)) (all []string) {
	t.Helper()
	for p := (account.Page{Limit: limit}); ; {
		found, next, err := list(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > limit {
			t.Fatalf("got %d on a page of %d", len(found), limit)
		}
		all = append(all, found...)
		if next == "" {
			return all
		}
		p.Cursor = next
	}
}

func ids[T any](list []T, id func(T) string) []string {
	found := make([]string, len(list))
	for i, x := range list {
		found[i] = id(x)
	}
	return found
}

func TestAKeyHasAllColumnsOfItsRow(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		k := openReader(t, address, func(tx *sqldb.Tx) error {
			return sqldb.Upsert(t.Context(), tx, table.Keys, []table.Key{{
				ID: "k", Account: "a", Kind: "publishable", Label: "site", Hint: "ld_pk_…abcd", Origins: `["https://a.fr"]`, Token: "ld_pk_x",
				Created: table.InstantOf(opened), CreatedBy: "token:1", Revoked: table.InstantOf(now), RevokedBy: "token:2", Reason: "leak",
			}})
		})
		want := []account.Key{{
			ID: "k", Account: "a", Kind: token.Publishable, Label: "site", Hint: "ld_pk_…abcd", Origins: []string{"https://a.fr"}, Token: "ld_pk_x",
			Created: opened, CreatedBy: "token:1", Revoked: now, RevokedBy: "token:2", Reason: "leak",
		}}
		got, _, err := k.ListKeys(t.Context(), "a", account.Page{Limit: 10})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}
