package customerarea

import (
	"lieudit/http/router"
	"lieudit/schemas/access"
)

// route is a row of the table: what a method of a path does, who may, and on whose accounts.
type route struct {
	method, path string
	roles        []access.Role
	scope        scope
	endpoint     endpoint
}

var (
	operatorRoles = []access.Role{access.RoleOperator}
	agencyRoles   = []access.Role{access.RoleOperator, access.RoleAgency}
	accountRoles  = []access.Role{access.RoleOperator, access.RoleAgency, access.RoleCustomer}
	usageRoles    = []access.Role{access.RoleOperator, access.RoleBilling, access.RoleAgency, access.RoleCustomer}
	billingRoles  = []access.Role{access.RoleOperator, access.RoleBilling}
	auditRoles    = []access.Role{access.RoleOperator, access.RoleAuditor, access.RoleAgency, access.RoleCustomer}
)

const accountPath = "/accounts/{id:[a-z0-9-]+}"

// routes is the customer area's table.
func (h *handler) routes() []route {
	return []route{
		{"GET", "/tokens", operatorRoles, unscoped, queryEndpoint(h.listTokens)},
		{"POST", "/tokens", operatorRoles, unscoped, bodyEndpoint(h.issueToken)},
		{"POST", "/tokens/{token:[a-z0-9-]+}:revoke", operatorRoles, unscoped, bodyEndpoint(h.revokeToken)},

		{"GET", "/accounts", agencyRoles, unscoped, queryEndpoint(h.listAccounts)},
		{"POST", "/accounts", agencyRoles, unscoped, bodyEndpoint(h.openAccount)},
		{"GET", accountPath, accountRoles, ownAccounts, queryEndpoint(h.showAccount)},
		{"POST", accountPath + ":plan", agencyRoles, subClientsOnly, bodyEndpoint(h.changePlan)},
		{"POST", accountPath + ":close", agencyRoles, subClientsOnly, bodyEndpoint(h.closeAccount)},
		{"POST", accountPath + ":erase", operatorRoles, unscoped, bodyEndpoint(h.eraseAccount)},
		{"POST", accountPath + ":agency", agencyRoles, subClientsOnly, bodyEndpoint(h.changeAgency)},

		{"GET", accountPath + "/keys", accountRoles, ownAccounts, queryEndpoint(h.listKeys)},
		{"POST", accountPath + "/keys", accountRoles, ownAccounts, bodyEndpoint(h.issueKey)},
		{"POST", accountPath + "/keys/{key:[a-z0-9-]+}:revoke", accountRoles, ownAccounts, bodyEndpoint(h.revokeKey)},
		{"PUT", accountPath + "/keys/{key:[a-z0-9-]+}/origins", accountRoles, ownAccounts, bodyEndpoint(h.changeOrigins)},

		{"GET", accountPath + "/usage", usageRoles, ownAccounts, queryEndpoint(h.showUsage)},
		{"GET", "/usage", billingRoles, unscoped, queryEndpoint(h.exportUsage)},
		{"POST", "/usage:reconcile", billingRoles, unscoped, bodyEndpoint(h.reconcileUsage)},
		{"POST", "/usage:adjust", billingRoles, unscoped, bodyEndpoint(h.adjustUsage)},

		{"GET", accountPath + "/history", auditRoles, ownAccounts, queryEndpoint(h.listAudit)},
		{"GET", accountPath + "/state", auditRoles, ownAccounts, queryEndpoint(h.showState)},

		{"GET", "/projections", operatorRoles, unscoped, queryEndpoint(h.listProjections)},
		{"POST", "/projections/{name:[a-z0-9-]+}:rebuild", operatorRoles, unscoped, bodyEndpoint(h.rebuildProjection)},
		{"POST", "/projections:repair", operatorRoles, unscoped, bodyEndpoint(h.repairStream)},
		{"POST", "/projections:rebuild", operatorRoles, unscoped, bodyEndpoint(h.rebuildAllProjections)},
		{"POST", "/projections:prune", operatorRoles, unscoped, bodyEndpoint(h.pruneProjections)},
	}
}

func (r route) pattern() router.Pattern { return router.Pattern{Method: r.method, Path: r.path} }
