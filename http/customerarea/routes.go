package customerarea

import (
	"regexp"
	"slices"

	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/schemas/grant"
)

// route is a row of the table: what a method of a path does, who may, and on whose accounts. A path with a scope other than
// unscoped has the variable id, the account.
type route struct {
	method, path string
	roles        []grant.Role
	scope        scope
	endpoint     kit.Endpoint[principal]
}

// The roles that may use an operation. What an agency or a customer may do is limited to its accounts by the scope.
var (
	allRoles      = []grant.Role{grant.RoleOperator, grant.RoleAgency, grant.RoleCustomer, grant.RoleBilling, grant.RoleAuditor}
	operatorRoles = []grant.Role{grant.RoleOperator}
	agencyRoles   = []grant.Role{grant.RoleOperator, grant.RoleAgency}
	listRoles     = []grant.Role{grant.RoleOperator, grant.RoleBilling, grant.RoleAgency}
	accountRoles  = []grant.Role{grant.RoleOperator, grant.RoleAgency, grant.RoleCustomer}
	keyRoles      = []grant.Role{grant.RoleOperator, grant.RoleBilling, grant.RoleAuditor, grant.RoleAgency, grant.RoleCustomer}
	usageRoles    = []grant.Role{grant.RoleOperator, grant.RoleBilling, grant.RoleAgency, grant.RoleCustomer}
	countRoles    = []grant.Role{grant.RoleOperator, grant.RoleBilling, grant.RoleAuditor, grant.RoleAgency, grant.RoleCustomer}
	billingRoles  = []grant.Role{grant.RoleOperator, grant.RoleBilling}
	auditRoles    = []grant.Role{grant.RoleOperator, grant.RoleAuditor, grant.RoleAgency, grant.RoleCustomer}
)

// accountPath is the path of one account. The pattern after a variable's name is what its text must match.
const accountPath = "/accounts/{id:[a-z0-9-]+}"

// routes is the table of operations. A name after a colon, outside braces, is what is done to the thing before it.
func (h *handler) routes() []route {
	return []route{
		{"GET", "/tokens", operatorRoles, unscoped, kit.QueryEndpoint(h.listTokens)},
		{"POST", "/tokens", operatorRoles, unscoped, kit.BodyEndpoint(h.issueToken)},
		{"POST", "/tokens/{token:[a-z0-9-]+}:revoke", operatorRoles, unscoped, kit.BodyEndpoint(h.revokeToken)},

		{"POST", "/sessions", nil, unscoped, kit.BodyEndpoint(h.refuseSession)}, // openSession answers it, before any token is asked for
		{"GET", "/sessions", allRoles, unscoped, kit.QueryEndpoint(h.listSessions)},
		{"DELETE", "/sessions", allRoles, unscoped, kit.QueryEndpoint(h.closeSessions)},
		{"DELETE", "/sessions/{session:[a-z0-9-]+}", allRoles, unscoped, kit.QueryEndpoint(h.closeSession)},
		{"POST", "/sessions:link", allRoles, unscoped, kit.BodyEndpoint(h.issueLink)},
		{"POST", "/invitations", agencyRoles, unscoped, kit.BodyEndpoint(h.invite)},

		{"GET", "/accounts", listRoles, unscoped, kit.QueryEndpoint(h.listAccounts)},
		{"POST", "/accounts", agencyRoles, unscoped, kit.BodyEndpoint(h.openAccount)},
		{"GET", accountPath, accountRoles, ownAccounts, kit.QueryEndpoint(h.showAccount)},
		{"POST", accountPath + ":plan", agencyRoles, subClientsOnly, kit.BodyEndpoint(h.changePlan)},
		{"POST", accountPath + ":close", agencyRoles, subClientsOnly, kit.BodyEndpoint(h.closeAccount)},
		{"POST", accountPath + ":erase", operatorRoles, unscoped, kit.BodyEndpoint(h.eraseAccount)},
		{"POST", accountPath + ":agency", agencyRoles, subClientsOnly, kit.BodyEndpoint(h.changeAgency)},

		{"GET", accountPath + "/keys", keyRoles, ownAccounts, kit.QueryEndpoint(h.listKeys)},
		{"POST", accountPath + "/keys", accountRoles, ownAccounts, h.issueKeyEndpoint()},
		{"GET", accountPath + "/keys/{key:[a-z0-9-]+}", keyRoles, ownAccounts, kit.QueryEndpoint(h.showKey)},
		{"POST", accountPath + "/keys/{key:[a-z0-9-]+}:revoke", accountRoles, ownAccounts, kit.BodyEndpoint(h.revokeKey)},
		{"PUT", accountPath + "/keys/{key:[a-z0-9-]+}/origins", accountRoles, ownAccounts, kit.BodyEndpoint(h.changeOrigins)},
		{"POST", accountPath + "/origins:check", accountRoles, ownAccounts, kit.BodyEndpoint(h.checkOrigins)},
		{"POST", accountPath + "/keys/{key:[a-z0-9-]+}/origins:test", accountRoles, ownAccounts, kit.BodyEndpoint(h.testOrigin)},

		{"GET", accountPath + "/usage", usageRoles, ownAccounts, h.showUsageEndpoint()},
		{"GET", accountPath + "/usage/periods", usageRoles, ownAccounts, kit.QueryEndpoint(h.listAccountPeriods)},
		{"GET", accountPath + "/usage/lines", countRoles, ownAccounts, kit.QueryEndpoint(h.listCounts)},
		{"GET", "/usage", billingRoles, unscoped, h.exportUsageEndpoint()},
		{"GET", "/usage/periods", billingRoles, unscoped, kit.QueryEndpoint(h.listPeriods)},
		{"POST", "/usage:reconcile", billingRoles, unscoped, kit.BodyEndpoint(h.reconcileUsage)},
		{"POST", "/usage:adjust", billingRoles, unscoped, kit.BodyEndpoint(h.adjustUsage)},

		{"GET", accountPath + "/history", auditRoles, ownAccounts, kit.QueryEndpoint(h.listAudit)},
		{"GET", accountPath + "/state", auditRoles, ownAccounts, kit.QueryEndpoint(h.showState)},

		{"GET", "/vintages", operatorRoles, unscoped, kit.QueryEndpoint(h.listVintages)},
		{"GET", "/networks", operatorRoles, unscoped, kit.QueryEndpoint(h.listNetworks)},
		{"GET", "/readiness", operatorRoles, unscoped, kit.QueryEndpoint(h.showReadiness)},

		{"GET", "/upgrade", operatorRoles, unscoped, kit.QueryEndpoint(h.showUpgrade)},
		{"POST", "/upgrade:finish", operatorRoles, unscoped, kit.BodyEndpoint(h.finishUpgrade)},

		{"GET", "/projections", operatorRoles, unscoped, kit.QueryEndpoint(h.listProjections)},
		{"POST", "/projections/{name:[a-z0-9-]+}:rebuild", operatorRoles, unscoped, kit.BodyEndpoint(h.rebuildProjection)},
		{"POST", "/projections:repair", operatorRoles, unscoped, kit.BodyEndpoint(h.repairStream)},
		{"POST", "/projections:rebuild", operatorRoles, unscoped, kit.BodyEndpoint(h.rebuildAllProjections)},
		{"POST", "/projections:prune", operatorRoles, unscoped, kit.BodyEndpoint(h.pruneProjections)},
	}
}

func (r route) pattern() router.Pattern { return router.Pattern{Method: r.method, Path: r.path} }

// variablePattern is what a variable of a path must match.
var variablePattern = regexp.MustCompile(`:[^{}/]*}`)

// RolesOf returns the roles that may use an operation, by its method and its path as the OpenAPI document writes it. An operation that
// needs no token has none.
func RolesOf(method, path string) []grant.Role {
	for _, rt := range (&handler{}).routes() {
		if rt.method == method && variablePattern.ReplaceAllString(rt.path, "}") == path {
			return slices.Clone(rt.roles)
		}
	}
	return nil
}
