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
	Name            Name
	Requests        int64 // a month, where the account has no volume of its own
	MaxRequests     int64 // what an account's own volume may not pass
	Sites           int   // capacity; see Ceiling
	Referentials    int   // active ones
	PublishableKeys int   // active ones
	services        []Service
}

// table is ordered from the smallest plan to the largest.
var table = []Plan{
	{Discovery, 20_000, 20_000, 0, 0, 0, []Service{Addresses}},
	{Starter, 100_000, unlimited, 200, 5, 1, []Service{Addresses, Locations}},
	{Growth, 500_000, unlimited, 2_000, 25, 5, []Service{Addresses, Locations, RouteTools}},
	{Business, 2_000_000, unlimited, 10_000, 100, 20, []Service{Addresses, Locations, RouteTools, RouteDirect}},
}

// unlimited is the highest volume an account can be given: sums of it stay far from overflowing.
const unlimited = 1_000_000_000_000

// All is the table, smallest plan first.
func All() []Plan { return table }

// Lookup finds a plan by its name.
func Lookup(n Name) (Plan, bool) {
	for _, p := range table {
		if p.Name == n {
			return p, true
		}
	}
	return Plan{}, false
}

// Ceiling is the number of active sites no write may pass: the capacity and a tenth of it.
func (p Plan) Ceiling() int { return p.Sites + p.Sites/10 }

// Allows says whether the plan gives access to s.
func (p Plan) Allows(s Service) bool {
	for _, have := range p.services {
		if have == s {
			return true
		}
	}
	return false
}

// Above says whether n is a larger plan than m.
func (n Name) Above(m Name) bool { return n.rank() > m.rank() }

func (n Name) rank() int {
	for i, p := range table {
		if p.Name == n {
			return i
		}
	}
	return -1
}
