// Package plan is the table of plans: what each includes, and when monthly periods begin. Every limit that depends on a plan
// comes from here. Lookup gives a Plan; PeriodAt gives the Period of an instant, in days of Europe/Paris (Date).
package plan

// Name is the name of a plan, in events and in messages.
type Name string

const (
	Discovery Name = "DISCOVERY"
	Starter   Name = "STARTER"
	Growth    Name = "GROWTH"
	Business  Name = "BUSINESS"
)

// Service is a group of endpoints that plans give access to as one.
type Service uint8

const (
	Addresses   Service = iota // /address/*, /search, /reverse, /locality/search, /me
	Locations                  // /locations/*
	RouteTools                 // /route/matrix, isochrone, nearest, optimize
	RouteDirect                // /route/compute
)

// Plan is what one plan includes.
type Plan struct {
	Name               Name
	DefaultQuota       int64 // requests a month, for an account without its own quota
	MaxQuota           int64 // the highest quota that an account can be given, in requests a month
	SiteCapacity       int   // active sites; SiteCeiling is a tenth higher
	MaxReferentials    int   // not archived
	MaxPublishableKeys int   // not revoked
	services           []Service
}

// plans is ordered from the smallest plan to the largest.
var plans = []Plan{
	{Discovery, 20_000, 20_000, 0, 0, 0, []Service{Addresses}},
	{Starter, 100_000, unlimitedQuota, 200, 5, 1, []Service{Addresses, Locations}},
	{Growth, 500_000, unlimitedQuota, 2_000, 25, 5, []Service{Addresses, Locations, RouteTools}},
	{Business, 2_000_000, unlimitedQuota, 10_000, 100, 20, []Service{Addresses, Locations, RouteTools, RouteDirect}},
}

// unlimitedQuota is the highest quota that any account can have. Sums of millions of them fit an int64.
const unlimitedQuota = 1_000_000_000_000

// All is the table, smallest plan first. The slice is shared and must not be changed.
func All() []Plan { return plans }

// Lookup finds a plan by its name.
func Lookup(n Name) (Plan, bool) {
	for _, p := range plans {
		if p.Name == n {
			return p, true
		}
	}
	return Plan{}, false
}

// SiteCeiling is the number of active sites that no write may exceed: the capacity and a tenth.
func (p Plan) SiteCeiling() int { return p.SiteCapacity + p.SiteCapacity/10 }

// Allows reports whether the plan gives access to s.
func (p Plan) Allows(s Service) bool {
	for _, have := range p.services {
		if have == s {
			return true
		}
	}
	return false
}

// IsAbove reports whether n is a larger plan than m. An unknown plan is smaller than all others.
func (n Name) IsAbove(m Name) bool { return n.rank() > m.rank() }

// rank is the index of a plan in the table, or -1 for an unknown plan.
func (n Name) rank() int {
	for i, p := range plans {
		if p.Name == n {
			return i
		}
	}
	return -1
}
