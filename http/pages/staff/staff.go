// Package staff has the pages of those who run the service: what works and what to do about the rest, the tables that lists are read from,
// the data that is served on every instance, and who has access; and the pages of billing: periods, exports and their comparison with
// the log.
//
//	/service       GET /readiness, /projections, /vintages, /networks, /upgrade   live
//	/acces         GET /tokens                                                    revoke
//	/facturation   GET /usage/periods, /accounts; GET /usage as a file            POST /usage:reconcile
//
// Operators see technical names where they must act on them, in small print next to the words for them.
package staff

import (
	"embed"
	"net/http"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
)

//go:embed *.html
var templates embed.FS

// Section is the pages.
func Section() page.Section {
	return page.Section{
		Templates: templates,
		Rows: []page.Row{
			{Method: http.MethodGet, Path: "/service", Serve: showService},
			{Method: http.MethodGet, Path: "/service/direct", Serve: followService},
			{Method: http.MethodGet, Path: "/service/reconstruction/{table}", Serve: showRebuild},
			{Method: http.MethodPost, Path: "/service/reconstruction/{table}", Serve: rebuild},
			{Method: http.MethodGet, Path: "/acces", Serve: showAccess},
			{Method: http.MethodGet, Path: "/acces/{token}/revocation", Serve: showRevocation},
			{Method: http.MethodPost, Path: "/acces/{token}/revocation", Serve: revoke},
			{Method: http.MethodGet, Path: "/facturation", Serve: showBilling},
			{Method: http.MethodGet, Path: "/facturation/export", Serve: export},
			{Method: http.MethodGet, Path: "/facturation/rapprochement", Serve: showReconciliation},
			{Method: http.MethodPost, Path: "/facturation/rapprochement", Serve: reconcile},
		},
		Flashes: map[string]i18n.Text{
			"reconstruction": {FR: "La reconstruction a commencé. L’ancienne copie sert jusqu’à ce que la nouvelle soit prête.", EN: "The rebuild has begun. The old copy serves until the new one is ready."},
			"acces-revoque":  {FR: "L’accès est révoqué, et ses sessions sont fermées.", EN: "The access is revoked, and its sessions are closed."},
		},
	}
}
