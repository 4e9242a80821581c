package body

import (
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/locations"
)

const referentialPath = "/locations/referentiels/{code}"

func referentialOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/locations/referentiels", Summary: "Open a referential, a group of sites; its code is taken for ever",
			Body: OpenReferential{}, Status: 201, Answer: Referential{}, Failures: apiFailures(codeTaken, referentialsOverCapacity, bodyTooLarge)},
		{Method: "GET", Path: "/locations/referentiels", Summary: "The referentials",
			Query: ReferentialsQuery{}, Answer: Referentials{}, Failures: apiFailures()},
		{Method: "GET", Path: referentialPath, Summary: "A referential", Query: Empty{}, Answer: Referential{}, Failures: apiFailures(notFound)},
		{Method: "PATCH", Path: referentialPath, Summary: "Rename a referential",
			Body: RenameReferential{}, Answer: Referential{}, Failures: apiFailures(notFound, referentialArchived, bodyTooLarge)},
		{Method: "DELETE", Path: referentialPath, Summary: "Archive a referential: its sites become inactive, its code stays taken; twice is once",
			Query: Empty{}, Answer: Referential{}, Failures: apiFailures(notFound)},
	}
}

var idempotencyKeyHeader = openapi.Header{
	Name: "Idempotency-Key", Pattern: "^[!-~]{1,255}$",
	Doc: "Within 24 hours the same key with the same request gets the first answer, and nothing is done twice",
}

func batchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: referentialPath + "/sites:sync",
			Summary: "Give a referential the sites it is to have, all or nothing: what is left out is deactivated, what is unchanged stays",
			Headers: []openapi.Header{idempotencyKeyHeader}, Body: SyncSites{}, Answer: Synced{},
			Failures: apiFailures(notFound, referentialArchived, sitesOverCapacity, suspiciousReduction, idempotencyMismatch, bodyTooLarge)},
		{Method: "POST", Path: referentialPath + "/sites:upsert", Summary: "Create or change some sites of a referential, all or nothing",
			Headers: []openapi.Header{idempotencyKeyHeader}, Body: UpsertSites{}, Answer: Synced{},
			Failures: apiFailures(notFound, referentialArchived, sitesOverCapacity, idempotencyMismatch, bodyTooLarge)},
		{Method: "GET", Path: referentialPath + "/sites", Summary: "The sites of a referential", Query: SitesQuery{}, Answer: Sites{}, Failures: apiFailures(notFound)},
		{Method: "GET", Path: referentialPath + "/sites:export",
			Summary: "The active sites of a referential as a file, out of which a sync makes the same sites again",
			Query:   ExportSites{}, OtherMediaTypes: []string{"text/csv", "application/geo+json", "application/x-ndjson"}, Failures: apiFailures(notFound)},
	}
}

func siteOperations() []openapi.Operation {
	const path = referentialPath + "/sites/{external_id}"
	return []openapi.Operation{
		{Method: "GET", Path: path, Summary: "A site, active or not", Query: Empty{}, Answer: locations.Site{}, Failures: apiFailures(notFound)},
		{Method: "PUT", Path: path, Summary: "Create a site, or say anew all there is to say of it; an inactive one becomes active",
			Body: PutSite{}, Answer: locations.Site{}, OtherStatus: 201, Failures: apiFailures(notFound, referentialArchived, sitesOverCapacity, bodyTooLarge)},
		{Method: "PATCH", Path: path, Summary: "Change some facts of a site, as a merge patch (null removes); an inactive one stays inactive",
			Body: PatchSite{}, Answer: locations.Site{}, Failures: apiFailures(notFound, referentialArchived, bodyTooLarge)},
		{Method: "POST", Path: path + ":deactivate", Summary: "Make a site inactive: it stays, and counts no longer; twice is once",
			Body: Empty{}, Answer: locations.Site{}, Failures: apiFailures(notFound, referentialArchived, bodyTooLarge)},
		{Method: "POST", Path: path + ":reactivate", Summary: "Make a site active again; twice is once",
			Body: Empty{}, Answer: locations.Site{}, Failures: apiFailures(notFound, referentialArchived, sitesOverCapacity, bodyTooLarge)},
	}
}

func searchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/locations/search",
			Summary: "Search the account's active sites; a publishable key sees some facts of them alone; format=geojson: a FeatureCollection",
			Query:   SearchLocations{}, Answer: Locations{},
			OtherAnswers: []any{PublicLocations{}, LocationCollection{}, PublicCollection{}, NoResults{}},
			Failures:     apiFailures(originMissing, originRefused)},
	}
}
