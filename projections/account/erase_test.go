package account_test

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/projections/account"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

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
