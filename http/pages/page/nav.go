package page

import (
	"net/http"
	"strings"

	"lieudit/http/pages/i18n"
	"lieudit/schemas/grant"
)

// NavEntry is an entry of the navigation above a page.
type NavEntry struct {
	Label     string
	Path      string
	IsCurrent bool
}

// navRow is an entry before it is known who reads it. row is the operation that the page asks for; an entry is shown to whoever may use
// it. %s is the account.
type navRow struct {
	label     i18n.Text
	path, row string
}

// accountNav are the pages of an account, and staffNav those of the service.
var (
	accountNav = []navRow{
		{i18n.Text{FR: "Aperçu", EN: "Overview"}, "/comptes/%s", "/accounts/%s"},
		{i18n.Text{FR: "Clés", EN: "Keys"}, "/comptes/%s/cles", "/accounts/%s/keys"},
		{i18n.Text{FR: "Usage", EN: "Usage"}, "/comptes/%s/usage", "/accounts/%s/usage"},
		{i18n.Text{FR: "Historique", EN: "History"}, "/comptes/%s/historique", "/accounts/%s/history"},
	}
	staffNav = []navRow{
		{i18n.Text{FR: "Comptes", EN: "Accounts"}, "/comptes", "/accounts"},
		{i18n.Text{FR: "Service", EN: "Service"}, "/service", "/projections"},
		{i18n.Text{FR: "Accès", EN: "Access"}, "/acces", "/tokens"},
		{i18n.Text{FR: "Facturation", EN: "Billing"}, "/facturation", "/usage"},
		{i18n.Text{FR: "Audit", EN: "Audit"}, "/audit", "/accounts/x/history"}, // of any account
	}
)

// navigation lists the pages of the account of the path, or of the service for those who work for it.
func (q *Request) navigation(current string) (entries []NavEntry) {
	rows, account := staffNav, q.Vars["account"]
	if account != "" {
		rows = accountNav
	}
	if account == "" && q.Principal.Role == grant.RoleCustomer {
		return nil
	}
	for _, r := range rows {
		path, row := r.path, r.row
		if strings.Contains(path, "%s") {
			path, row = Path(path, account), Path(row, account)
		}
		if q.Site.paths[strings.Replace(r.path, "%s", "{account}", 1)] && q.May(http.MethodGet, row) {
			entries = append(entries, NavEntry{r.label.In(q.Print.Lang), path, path == current})
		}
	}
	return entries
}
