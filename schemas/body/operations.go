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
		BasePath:    "/services/v1",
		Variables: map[string]openapi.Variable{
			"id":          {Doc: "Of a commune, a street, a locality or a house number; or an id_ban"},
			"code":        {Pattern: "^[a-z0-9_-]{1,64}$", Doc: "Of the referential"},
			"external_id": {Pattern: "^[A-Za-z0-9._~-]{1,128}$", Doc: "The caller's own, of the site"},
		},
		Security: "A secret key; for GET /locations/search also a publishable key, from an origin it declares.",
		Operations: slices.Concat([]openapi.Operation{
			{Method: "GET", Path: "/version", Summary: "What is running; needs no key, is not counted", IsPublic: true,
				Answer: Version{}, Failures: []openapi.Failure{internalError}},
			{Method: "GET", Path: "/me", Summary: "Whose key it is, and what it gives", Query: Empty{}, Answer: Me{}, Failures: apiFailures()},
			{Method: "GET", Path: "/address/autocomplete", Summary: "Complete an address while it is typed; format=geojson: a FeatureCollection",
				Query: CompleteAddress{}, Answer: Suggestions{}, Failures: apiFailures(addressUnparsable)},
			{Method: "GET", Path: "/address/verify", Summary: "Verify an address; format=geojson: a FeatureCollection",
				Query: VerifyAddress{}, Answer: Matches{}, Failures: apiFailures(addressUnparsable)},
			{Method: "POST", Path: "/address/verify", Summary: "Verify an address; format=geojson: a FeatureCollection",
				Body: VerifyAddress{}, Answer: Matches{}, Failures: apiFailures(addressUnparsable, bodyTooLarge)},
			{Method: "GET", Path: "/address/view/{id}", Summary: "The record an id names: of this vintage or an earlier one, or an id_ban",
				Query: Empty{}, Answer: Address{}, Failures: apiFailures(notFound)},
			{Method: "GET", Path: "/address/proximity", Summary: "What lies near an address or a position; format=geojson: a FeatureCollection",
				Query: NearAddress{}, Answer: Neighbours{}, Failures: apiFailures(addressUnresolved)},
			{Method: "POST", Path: "/address/proximity", Summary: "What lies near an address or a position; format=geojson: a FeatureCollection",
				Body: NearAddress{}, Answer: Neighbours{}, Failures: apiFailures(addressUnresolved, bodyTooLarge)},
			{Method: "GET", Path: "/locality/search", Summary: "Communes by name, postcode, department, region, population",
				Query: SearchLocality{}, Answer: Localities{}, Failures: apiFailures()},
		}, referentialOperations(), batchOperations(), siteOperations(), searchOperations(),
			routeOperations("compute", "matrix", "isochrone", "nearest", "optimize")),
	}
}

// routeOperations is the route operations, which no engine serves yet.
func routeOperations(names ...string) []openapi.Operation {
	var all []openapi.Operation
	for _, name := range names {
		for _, method := range []string{"GET", "POST"} {
			all = append(all, openapi.Operation{
				Method: method, Path: "/route/" + name, Summary: "Routes: " + name, Failures: apiFailures(routingUnavailable),
			})
		}
	}
	return all
}
