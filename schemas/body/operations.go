package body

import (
	"slices"

	"lieudit/schemas/body/openapi"
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// API documents the API: each operation with its request, its answers and what it may be refused for. A test holds it to the
// routes of package api. Its texts are published: openapi.json is the golden file of them.
func API() openapi.API {
	return openapi.API{
		Title:       "lieudit",
		Description: "French postal addresses on the national address base, and each customer's own places. " + textRule,
		BasePath:    "/services/v1",
		Variables: map[string]openapi.Variable{
			"id":          {Doc: "Of a commune, a street, a locality or a house number; or an id_ban"},
			"code":        {Pattern: "^[a-z0-9_-]{1,64}$", Doc: "Of the referential"},
			"external_id": {Pattern: locations.ExternalIDPattern, Doc: "The caller's own, of the site; in one that ends in :deactivate or :reactivate the colon is written %3A"},
		},
		Tags: []openapi.Tag{
			{Name: "Service", Doc: "What runs, and what a key gives.", Prefixes: []string{"/version", "/me"}},
			{Name: "Addresses", Doc: "Complete, verify and find addresses and communes.", Prefixes: []string{"/address/", "/locality/"}},
			{Name: "Former API", Doc: "The former national API Adresse under its own names.", Prefixes: []string{"/search", "/reverse"}},
			{Name: "Referentials", Doc: "Groups of the account's own sites, and what changed in them.", Prefixes: []string{"/locations/referentiels", "/locations/changes"}},
			{Name: "Search of sites", Doc: "The account's own sites, for its backends and its public pages.", Prefixes: []string{"/locations/search"}},
			{Name: "Routes", Doc: "Routes, matrices, isochrones and tours between addresses and sites.", Prefixes: []string{"/route/"}},
		},
		Forms:    map[string]any{"Hours": locations.Hours{}},
		Security: "A secret key; for GET /locations/search also a publishable key, from an origin it declares.",
		Operations: slices.Concat([]openapi.Operation{
			{Method: "GET", Path: "/version", Summary: "What is running; needs no key, is not counted", IsPublic: true,
				Answer: Version{}, Failures: append(exampleFailures(refusal.Internal), headersTooLarge)},
			{Method: "GET", Path: "/me", Summary: "Whose key it is, and what it gives", Query: Empty{}, Answer: Me{}, Failures: apiFailures()},
			{Method: "GET", Path: "/address/autocomplete", Summary: "Complete an address while it is typed", Doc: geoJSONDoc,
				Query: CompleteAddress{}, Answer: Suggestions{}, OtherAnswers: []any{FeatureCollection{}}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnparsable)},
			{Method: "GET", Path: "/address/verify", Summary: "Verify an address", Doc: geoJSONDoc,
				Query: VerifyAddress{}, Answer: Matches{}, OtherAnswers: []any{FeatureCollection{}}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnparsable)},
			{Method: "POST", Path: "/address/verify", Summary: "Verify an address", Doc: geoJSONDoc,
				Body: VerifyAddress{}, Answer: Matches{}, OtherAnswers: []any{FeatureCollection{}}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnparsable, refusal.BodyTooLarge)},
			{Method: "GET", Path: "/address/view/{id}", Summary: "The record an id names: of this vintage or an earlier one, or an id_ban",
				Query: Empty{}, Answer: Address{}, Failures: apiFailures(refusal.AddressUnavailable, refusal.NotFound)},
			{Method: "GET", Path: "/address/proximity", Summary: "What lies near an address or a position", Doc: geoJSONDoc,
				Query: NearAddress{}, Answer: Neighbours{}, OtherAnswers: []any{FeatureCollection{}}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnresolved)},
			{Method: "POST", Path: "/address/proximity", Summary: "What lies near an address or a position", Doc: geoJSONDoc,
				Body: NearAddress{}, Answer: Neighbours{}, OtherAnswers: []any{FeatureCollection{}}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnresolved, refusal.BodyTooLarge)},
			{Method: "GET", Path: "/locality/search", Summary: "Communes by name, postcode, department, region, population",
				Query: SearchLocality{}, Answer: Localities{}, Failures: apiFailures(refusal.AddressUnavailable, refusal.AddressUnparsable)},
		}, formerOperations(), referentialOperations(), batchOperations(), siteOperations(), searchOperations(), routeOperations()),
	}
}

// geoJSONDoc describes the other form of a search.
const geoJSONDoc = "With format=geojson the answer is a FeatureCollection"

// formerOperations are those of the former national API. Each answers under its path with a slash at the end too.
func formerOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/search", Summary: "Search an address as the former API Adresse does; /search/ is the same, undeclared parameters are ignored",
			Query: FormerSearch{}, Answer: FormerCollection{}, Failures: apiFailures()},
		{Method: "GET", Path: "/reverse", Summary: "The address nearest to a point as the former API Adresse finds it; /reverse/ is the same, undeclared parameters are ignored",
			Query: FormerReverse{}, Answer: FormerCollection{}, Failures: apiFailures()},
		{Method: "POST", Path: "/search/csv", Summary: "Search the addresses of a CSV file; each row counts as a request, all rows are admitted or none",
			Form: FormerFile{}, OtherMediaTypes: []string{"text/csv"}, Failures: apiFailures(refusal.BodyTooLarge)},
		{Method: "POST", Path: "/reverse/csv", Summary: "The addresses nearest to the points of a CSV file; each row counts as a request, all rows are admitted or none",
			Form: FormerFile{}, OtherMediaTypes: []string{"text/csv"}, Failures: apiFailures(refusal.BodyTooLarge)},
	}
}

// routeOperations are the routing operations. A query and a body ask for the same.
func routeOperations() []openapi.Operation {
	return slices.Concat(
		routeOperation("compute", "The route between two bounds, through waypoints, with alternatives and steps", ComputeRoute{}, ComputeRoute{}, ComputedRoute{}),
		routeOperation("matrix", "Durations and distances from each origin to each destination; counts as one request for each 25 cells, rounded up",
			MatrixQuery{}, MatrixBody{}, Matrix{}),
		routeOperation("isochrone", "The area within reach of an origin, or from which it is reached", ComputeIsochrone{}, ComputeIsochrone{}, Isochrone{}),
		routeOperation("nearest", "The destinations nearest to an origin on the road", NearestQuery{}, NearestBody{}, Nearest{}),
		routeOperation("optimize", "The order of stops that takes least, and the route through them; counts as one request for each 25 stops, rounded up",
			OptimizeStops{}, OptimizeStops{}, Tour{}),
	)
}

// routeOperation is an operation of the router, by GET and by POST.
func routeOperation(name, summary string, query, sent, answer any) []openapi.Operation {
	get := openapi.Operation{
		Method: "GET", Path: "/route/" + name, Summary: summary, Query: query, Answer: answer, OtherAnswers: []any{NoRoute{}},
		Failures: apiFailures(refusal.AddressUnresolved, refusal.AddressUnavailable, refusal.RoutingUnavailable),
	}
	post := get
	post.Method, post.Query, post.Body = "POST", nil, sent
	post.Failures = apiFailures(refusal.AddressUnresolved, refusal.AddressUnavailable, refusal.RoutingUnavailable, refusal.BodyTooLarge)
	return []openapi.Operation{get, post}
}

const referentialPath = "/locations/referentiels/{code}"

func referentialOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/locations/referentiels", Summary: "Open a referential, a group of sites; its code is taken for ever",
			Body: OpenReferential{}, Status: 201, Answer: Referential{}, Failures: apiFailures(refusal.ReferentialCodeTaken, refusal.ReferentialsOverCapacity, refusal.BodyTooLarge)},
		{Method: "GET", Path: "/locations/referentiels", Summary: "The referentials",
			Query: ReferentialsQuery{}, Answer: Referentials{}, Failures: apiFailures()},
		{Method: "GET", Path: referentialPath, Summary: "A referential", Query: Empty{}, Answer: Referential{}, Failures: apiFailures(refusal.NotFound)},
		{Method: "PATCH", Path: referentialPath, Summary: "Rename a referential",
			Body: RenameReferential{}, Answer: Referential{}, Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.BodyTooLarge)},
		{Method: "DELETE", Path: referentialPath, Summary: "Archive a referential: its sites become inactive, its code stays taken; twice is once",
			Query: Empty{}, Answer: Referential{}, Failures: apiFailures(refusal.NotFound)},
	}
}

var idempotencyKeyHeader = openapi.Header{
	Name: "Idempotency-Key", Pattern: "^[!-~]{1,255}$",
	Doc: "Within 24 hours the same key with the same request gets the first answer, and nothing is done twice",
}

// batchOperations are the operations on many sites of a referential.
func batchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: referentialPath + "/sites:sync",
			Summary: "Give a referential the sites it is to have, all or nothing: what is left out is deactivated, what is unchanged stays",
			Headers: []openapi.Header{idempotencyKeyHeader}, Body: SyncSites{}, Answer: Synced{},
			Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.SitesOverCapacity, refusal.SuspiciousReduction, refusal.IdempotencyMismatch, refusal.BodyTooLarge)},
		{Method: "POST", Path: referentialPath + "/sites:upsert", Summary: "Create or change some sites of a referential, all or nothing",
			Headers: []openapi.Header{idempotencyKeyHeader}, Body: UpsertSites{}, Answer: Synced{},
			Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.SitesOverCapacity, refusal.IdempotencyMismatch, refusal.BodyTooLarge)},
		{Method: "GET", Path: referentialPath + "/sites", Summary: "The sites of a referential", Query: SitesQuery{}, Answer: Sites{}, Failures: apiFailures(refusal.NotFound)},
		{Method: "GET", Path: referentialPath + "/sites:export",
			Summary: "The active sites of a referential as a file, out of which a sync makes the same sites again",
			Query:   ExportSites{}, OtherMediaTypes: []string{"text/csv", "application/x-ndjson"}, Collection: ExportedCollection{}, Failures: apiFailures(refusal.NotFound, refusal.ReadModelBehind)},
	}
}

func siteOperations() []openapi.Operation {
	const path = referentialPath + "/sites/{external_id}"
	return []openapi.Operation{
		{Method: "GET", Path: path, Summary: "A site, active or not", Query: Empty{}, Answer: locations.Site{}, Failures: apiFailures(refusal.NotFound)},
		{Method: "PUT", Path: path, Summary: "Create a site, or say anew all there is to say of it; an inactive one becomes active",
			Body: PutSite{}, Answer: locations.Site{}, OtherStatus: 201, Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.SitesOverCapacity, refusal.BodyTooLarge)},
		{Method: "PATCH", Path: path, Summary: "Change some facts of a site, as a merge patch (null removes); an inactive one stays inactive",
			Body: PatchSite{}, Answer: locations.Site{}, Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.BodyTooLarge)},
		{Method: "POST", Path: path + ":deactivate", Summary: "Make a site inactive: it stays, and counts no longer; twice is once",
			Body: Empty{}, Answer: locations.Site{}, Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.BodyTooLarge)},
		{Method: "POST", Path: path + ":reactivate", Summary: "Make a site active again; twice is once",
			Body: Empty{}, Answer: locations.Site{}, Failures: apiFailures(refusal.NotFound, refusal.ReferentialArchived, refusal.SitesOverCapacity, refusal.BodyTooLarge)},
	}
}

func searchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/locations/changes", Summary: "What changed in the account's sites and referentials since a cursor, in the order of the changes, each once as it is now",
			Query: ChangesQuery{}, Answer: Changes{}, Failures: apiFailures(refusal.CursorExpired)},
		{Method: "GET", Path: "/locations/search",
			Summary: "Search the account's active sites; a publishable key sees some facts of them alone", Doc: geoJSONDoc,
			Query: SearchLocations{}, Answer: Locations{},
			OtherAnswers: []any{PublicLocations{}, LocationCollection{}, PublicCollection{}, NoResults{}},
			Failures:     apiFailures(refusal.AddressUnavailable, refusal.AddressUnresolved, refusal.OriginMissing, refusal.OriginNotAllowed)},
	}
}
