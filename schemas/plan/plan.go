// Package plan is the plan table: what each plan includes, and when its monthly periods begin. Every
// limit of the service comes from here.
package plan

// Name is a plan's name as messages print it.
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
	Addresses   Service = iota // /address/*, /locality/search, /me
	Locations                  // /locations/*
	RouteTools                 // /route/matrix, isochrone, nearest, optimize
	RouteDirect                // /route/compute
)

// Plan is one column of the table.
type Plan struct {
	Name               Name
	DefaultQuota       int64 // a month, where the account has no volume of its own
	MaxQuota           int64 // what an account's own volume may not pass
	SiteCapacity       int   // capacity; see Ceiling
	MaxReferentials    int   // active ones
	MaxPublishableKeys int   // active ones
	services           []Service
}

// plans is ordered from the smallest plan to the largest.
var plans = []Plan{
	{Discovery, 20_000, 20_000, 0, 0, 0, []Service{Addresses}},
	{Starter, 100_000, unlimitedQuota, 200, 5, 1, []Service{Addresses, Locations}},
	{Growth, 500_000, unlimitedQuota, 2_000, 25, 5, []Service{Addresses, Locations, RouteTools}},
	{Business, 2_000_000, unlimitedQuota, 10_000, 100, 20, []Service{Addresses, Locations, RouteTools, RouteDirect}},
}

// unlimitedQuota is the highest volume an account can be given: sums of it stay far from overflowing.
const unlimitedQuota = 1_000_000_000_000

// All is the table, smallest plan first.
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

// SiteCeiling is the number of active sites no write may pass: the capacity and a tenth of it.
func (p Plan) SiteCeiling() int { return p.SiteCapacity + p.SiteCapacity/10 }

// Allows says whether the plan gives access to s.
func (p Plan) Allows(s Service) bool {
	for _, have := range p.services {
		if have == s {
			return true
		}
	}
	return false
}

// IsAbove says whether n is a larger plan than m.
func (n Name) IsAbove(m Name) bool { return n.rank() > m.rank() }

func (n Name) rank() int {
	for i, p := range plans {
		if p.Name == n {
			return i
		}
	}
	return -1
}
