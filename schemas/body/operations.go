package body

import "lieudit/schemas/body/openapi"

// API is the address and locations service.
func API() openapi.API {
	return openapi.API{
		Title:       "lieudit",
		Description: "French postal addresses on the national address base, and each customer's own places.",
		Base:        "/services/v1",
		Security:    "A secret key; for GET /locations/search also a publishable key, from an origin it declares.",
		Operations: append([]openapi.Operation{
			{Method: "GET", Path: "/version", Summary: "What is running; needs no key, is not counted", Open: true,
				Answer: Version{}, Failures: []openapi.Failure{internal}},
			{Method: "GET", Path: "/me", Summary: "Whose key it is, and what it gives", Query: Empty{}, Answer: Me{}, Failures: keyed()},
			{Method: "GET", Path: "/locations/search", Summary: "Search the account's sites",
				Query: SearchLocations{}, Answer: NoResults{}, Failures: keyed(originAbsent, originRefused)},
		}, routing("compute", "matrix", "isochrone", "nearest", "optimize")...),
	}
}

// routing is the route operations, which no engine serves yet.
func routing(names ...string) []openapi.Operation {
	var all []openapi.Operation
	for _, name := range names {
		for _, method := range []string{"GET", "POST"} {
			all = append(all, openapi.Operation{
				Method: method, Path: "/route/" + name, Summary: "Routes: " + name, Failures: keyed(noRouting),
			})
		}
	}
	return all
}
