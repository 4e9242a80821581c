package body

import (
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/site"
)

const oneReferential = "/locations/referentiels/{code}"

func referentialOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: "/locations/referentiels", Summary: "Open a referential, a group of sites; its code is taken for ever",
			Body: OpenReferential{}, Status: 201, Answer: Referential{}, Failures: keyed(codeTaken, referentialsOverCapacity, bodyTooLarge)},
		{Method: "GET", Path: "/locations/referentiels", Summary: "The referentials",
			Query: ReferentialsQuery{}, Answer: Referentials{}, Failures: keyed()},
		{Method: "GET", Path: oneReferential, Summary: "A referential", Query: Empty{}, Answer: Referential{}, Failures: keyed(unknown)},
		{Method: "PATCH", Path: oneReferential, Summary: "Rename a referential",
			Body: RenameReferential{}, Answer: Referential{}, Failures: keyed(unknown, archived, bodyTooLarge)},
		{Method: "DELETE", Path: oneReferential, Summary: "Archive a referential: its sites become inactive, its code stays taken; twice is once",
			Query: Empty{}, Answer: Referential{}, Failures: keyed(unknown)},
	}
}

var idempotencyKey = openapi.Header{
	Name: "Idempotency-Key", Pattern: "^[!-~]{1,255}$",
	Doc: "Within 24 hours the same key with the same request gets the first answer, and nothing is done twice",
}

func batchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "POST", Path: oneReferential + "/sites:sync",
			Summary: "Give a referential the sites it is to have, all or nothing: what is left out is deactivated, what is unchanged stays",
			Headers: []openapi.Header{idempotencyKey}, Body: SyncSites{}, Answer: Synced{},
			Failures: keyed(unknown, archived, sitesOverCapacity, reduction, otherRequest, bodyTooLarge)},
		{Method: "POST", Path: oneReferential + "/sites:upsert", Summary: "Create or change some sites of a referential, all or nothing",
			Headers: []openapi.Header{idempotencyKey}, Body: UpsertSites{}, Answer: Synced{},
			Failures: keyed(unknown, archived, sitesOverCapacity, otherRequest, bodyTooLarge)},
		{Method: "GET", Path: oneReferential + "/sites", Summary: "The sites of a referential", Query: SitesQuery{}, Answer: Sites{}, Failures: keyed(unknown)},
		{Method: "GET", Path: oneReferential + "/sites:export",
			Summary: "The active sites of a referential as a file, out of which a sync makes the same sites again",
			Query:   ExportSites{}, Also: []string{"text/csv", "application/geo+json", "application/x-ndjson"}, Failures: keyed(unknown)},
	}
}

func siteOperations() []openapi.Operation {
	const path = oneReferential + "/sites/{external_id}"
	return []openapi.Operation{
		{Method: "GET", Path: path, Summary: "A site, active or not", Query: Empty{}, Answer: site.Site{}, Failures: keyed(unknown)},
		{Method: "PUT", Path: path, Summary: "Create a site, or say anew all there is to say of it; an inactive one becomes active",
			Body: PutSite{}, Answer: site.Site{}, Else: 201, Failures: keyed(unknown, archived, sitesOverCapacity, bodyTooLarge)},
		{Method: "PATCH", Path: path, Summary: "Change some facts of a site, as a merge patch (null removes); an inactive one stays inactive",
			Body: PatchSite{}, Answer: site.Site{}, Failures: keyed(unknown, archived, bodyTooLarge)},
		{Method: "POST", Path: path + ":deactivate", Summary: "Make a site inactive: it stays, and counts no longer; twice is once",
			Body: Empty{}, Answer: site.Site{}, Failures: keyed(unknown, archived, bodyTooLarge)},
		{Method: "POST", Path: path + ":reactivate", Summary: "Make a site active again; twice is once",
			Body: Empty{}, Answer: site.Site{}, Failures: keyed(unknown, archived, sitesOverCapacity, bodyTooLarge)},
	}
}

func searchOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/locations/search",
			Summary: "Search the account's active sites; a publishable key sees some facts of them alone; format=geojson: a FeatureCollection",
			Query:   SearchLocations{}, Answer: Locations{},
			Or:       []any{PublicLocations{}, LocationCollection{}, PublicCollection{}, NoResults{}},
			Failures: keyed(originAbsent, originRefused)},
	}
}
