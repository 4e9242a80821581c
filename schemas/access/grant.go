// Package access is what a valid credential gives its bearer: the facts that authentication, plan checks and
// quotas work with. The key ring makes them, the API reads them.
package access

import (
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Grant is what an API key gives at one instant. It is read-only.
type Grant struct {
	KeyID   string
	Kind    token.Kind // Secret or Publishable
	Hint    string
	Origins []string // of a publishable key, in canonical form
	Account string
	Terms
	Stopped bool // an event of the account, or of its agency, cannot be used: nothing else here is to be relied on
}

// Terms are the conditions of an account at one instant. A sub-client has its agency's plan and anchor.
type Terms struct {
	Plan   plan.Name
	Quota  int64
	Anchor plan.Date
	Agency string // the account this one is a sub-client of, or ""
}

// Role is what a customer-area token may do.
type Role string

const (
	RoleOperator Role = "operator" // everything
	RoleCustomer Role = "customer" // one account
	RoleAgency   Role = "agency"   // an agency's sub-clients
	RoleBilling  Role = "billing"  // usage of all accounts
	RoleAuditor  Role = "auditor"  // history of all accounts
)

// TokenGrant is what a customer-area token gives.
type TokenGrant struct {
	TokenID string // its id
	Hint    string
	Role    Role
	Account string // whose, for Customer and Agency
}
