// Package pages is the customer area in a browser: the same operations as the JSON of package customerarea, with the same roles, on the
// same listener. Each section of pages is a package of its own; package page is what they are made of. New puts them together.
//
//	pages.New ─> page.Site ─┬─ entry: coming in and leaving, sessions, invitations
//	                        ├─ accounts: the accounts, opening and closing them, their plans
//	                        ├─ keys: issue, origins, rotation, revocation
//	                        ├─ overview: what an account is about
//	                        ├─ history: what happened to an account, and how it was at an instant
//	                        ├─ staff: what works, the data that is served, who has access, billing
//	                        ├─ usage: what was counted, day by day, and what each figure is made of
//	                        ├─ tryit: requests to the API with one's own key
//	                        ├─ docs: the documentation of the API
//	                        └─ guide: the operators' guide
package pages

import (
	"net/http"

	"lieudit/http/pages/accounts"
	"lieudit/http/pages/docs"
	"lieudit/http/pages/entry"
	"lieudit/http/pages/guide"
	"lieudit/http/pages/history"
	"lieudit/http/pages/keys"
	"lieudit/http/pages/overview"
	"lieudit/http/pages/page"
	"lieudit/http/pages/staff"
	"lieudit/http/pages/tryit"
	"lieudit/http/pages/usage"
)

// New is the handler of all pages. chapters are the operators' guide.
func New(area page.Area, env page.Env, chapters []guide.Chapter) http.Handler {
	return page.New(area, env,
		entry.Section(),
		accounts.Section(),
		keys.Section(),
		overview.Section(),
		history.Section(),
		usage.Section(),
		staff.Section(),
		tryit.Section(env.APIHandler),
		docs.Section(),
		guide.Section(chapters),
	)
}
