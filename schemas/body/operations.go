package body

import (
	"slices"

	"lieudit/schemas/body/openapi"
)

// API is the address and locations service.
func API() openapi.API {
	return openapi.API{
		Title:       "lieudit",
		Description: "French postal addresses on the national address base, and each customer's own places.",
		Base:        "/services/v1",
		Variables: map[string]openapi.Variable{
			"id":          {Doc: "Of a commune, a street, a locality or a house number; or an id_ban"},
			"code":        {Pattern: "^[a-z0-9_-]{1,64}$", Doc: "Of the referential"},
			"external_id": {Pattern: "^[A-Za-z0-9._~-]{1,128}$", Doc: "The caller's own, of the site"},
		},
		Security: "A secret key; for GET /locations/search also a publishable key, from an origin it declares.",
		Operations: slices.Concat([]openapi.Operation{
			{Method: "GET", Path: "/version", Summary: "What is running; needs no key, is not counted", Open: true,
				Answer: Version{}, Failures: []openapi.Failure{internal}},
			{Method: "GET", Path: "/me", Summary: "Whose key it is, and what it gives", Query: Empty{}, Answer: Me{}, Failures: keyed()},
			{Method: "GET", Path: "/address/autocomplete", Summary: "Complete an address while it is typed; format=geojson: a FeatureCollection",
				Query: CompleteAddress{}, Answer: Suggestions{}, Failures: keyed(unparsable)},
			{Method: "GET", Path: "/address/verify", Summary: "Verify an address; format=geojson: a FeatureCollection",
				Query: VerifyAddress{}, Answer: Matches{}, Failures: keyed(unparsable)},
			{Method: "POST", Path: "/address/verify", Summary: "Verify an address; format=geojson: a FeatureCollection",
				Body: VerifyAddress{}, Answer: Matches{}, Failures: keyed(unparsable, bodyTooLarge)},
			{Method: "GET", Path: "/address/view/{id}", Summary: "The record an id names: of this vintage or an earlier one, or an id_ban",
				Query: Empty{}, Answer: Address{}, Failures: keyed(unknown)},
			{Method: "GET", Path: "/address/proximity", Summary: "What lies near an address or a position; format=geojson: a FeatureCollection",
				Query: NearAddress{}, Answer: Neighbours{}, Failures: keyed(unresolved)},
			{Method: "POST", Path: "/address/proximity", Summary: "What lies near an address or a position; format=geojson: a FeatureCollection",
				Body: NearAddress{}, Answer: Neighbours{}, Failures: keyed(unresolved, bodyTooLarge)},
			{Method: "GET", Path: "/locality/search", Summary: "Communes by name, postcode, department, region, population",
				Query: SearchLocality{}, Answer: Localities{}, Failures: keyed()},
		}, referentialOperations(), batchOperations(), siteOperations(), searchOperations(),
			routing("compute", "matrix", "isochrone", "nearest", "optimize")),
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
