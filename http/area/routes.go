package area

import (
	"lieudit/http/lookup"
	"lieudit/schemas/grant"
)

// route is a row of the table: what a method of a path does, who may, and on whose accounts.
type route struct {
	method, path string
	roles        []grant.Role
	reach        reach
	endpoint     endpoint
}

var (
	operators = []grant.Role{grant.Operator}
	sellers   = []grant.Role{grant.Operator, grant.Agency}
	customers = []grant.Role{grant.Operator, grant.Agency, grant.Customer}
	payers    = []grant.Role{grant.Operator, grant.Billing, grant.Agency, grant.Customer}
	billers   = []grant.Role{grant.Operator, grant.Billing}
	readers   = []grant.Role{grant.Operator, grant.Auditor, grant.Agency, grant.Customer}
)

const oneAccount = "/accounts/{id:[a-z0-9-]+}"

// routes is the customer area's table.
func (a *area) routes() []route {
	return []route{
		{"GET", "/tokens", operators, everything, asks(a.listTokens)},
		{"POST", "/tokens", operators, everything, takes(a.issueToken)},
		{"POST", "/tokens/{token:[a-z0-9-]+}:revoke", operators, everything, takes(a.revokeToken)},

		{"GET", "/accounts", sellers, everything, asks(a.listAccounts)},
		{"POST", "/accounts", sellers, everything, takes(a.openAccount)},
		{"GET", oneAccount, customers, own, asks(a.showAccount)},
		{"POST", oneAccount + ":plan", sellers, subClients, takes(a.changePlan)},
		{"POST", oneAccount + ":close", sellers, subClients, takes(a.closeAccount)},
		{"POST", oneAccount + ":erase", operators, everything, takes(a.eraseAccount)},
		{"POST", oneAccount + ":agency", sellers, subClients, takes(a.changeAgency)},

		{"GET", oneAccount + "/keys", customers, own, asks(a.listKeys)},
		{"POST", oneAccount + "/keys", customers, own, takes(a.issueKey)},
		{"POST", oneAccount + "/keys/{key:[a-z0-9-]+}:revoke", customers, own, takes(a.revokeKey)},
		{"PUT", oneAccount + "/keys/{key:[a-z0-9-]+}/origins", customers, own, takes(a.changeOrigins)},

		{"GET", oneAccount + "/usage", payers, own, asks(a.usage)},
		{"GET", "/usage", billers, everything, asks(a.exportUsage)},
		{"POST", "/usage:reconcile", billers, everything, takes(a.reconcile)},
		{"POST", "/usage:adjust", billers, everything, takes(a.adjust)},

		{"GET", oneAccount + "/history", readers, own, asks(a.history)},
		{"GET", oneAccount + "/state", readers, own, asks(a.state)},

		{"GET", "/projections", operators, everything, asks(a.projections)},
		{"POST", "/projections/{name:[a-z0-9-]+}:rebuild", operators, everything, takes(a.rebuild)},
		{"POST", "/projections:repair", operators, everything, takes(a.repair)},
		{"POST", "/projections:rebuild", operators, everything, takes(a.rebuildAll)},
		{"POST", "/projections:prune", operators, everything, takes(a.prune)},
	}
}

func (r route) place() lookup.Place { return lookup.Place{Method: r.method, Path: r.path} }
