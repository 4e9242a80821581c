package stranger

import (
	"context"
	"strings"

	"lieudit/schemas/plan"
)

// The numbers of connections that do not read: first few, then many.
const (
	fewUnread  = 80
	manyUnread = 700
)

// answerAttacks ask for large answers and read them slowly or not at all.
func answerAttacks() []attack {
	return []attack{
		unreadAttack("unread lists of sites", forAll, func(*turn) string { return referentialPath + "/sites?limit=1000" }),
		unreadAttack("unread lists of sites of a small account", forSites, func(*turn) string { return referentialPath + "/sites?limit=1000" }),
		unreadAttack("unread changes", forSites, func(*turn) string { return "/locations/changes?limit=1000" }),
		unreadAttack("unread searches", forSites, func(*turn) string { return "/locations/search?limit=100&q=boutique" }),
		unreadAttack("unread searches as GeoJSON", forSites, func(*turn) string { return "/locations/search?limit=100&format=geojson" }),
		unreadAttack("unread exports as CSV", forSites, func(*turn) string { return referentialPath + "/sites:export?format=csv" }),
		unreadAttack("unread exports as GeoJSON", forAll, func(*turn) string { return referentialPath + "/sites:export?format=geojson" }),
		unreadAttack("unread exports as NDJSON", forAll, func(*turn) string { return referentialPath + "/sites:export?format=ndjson" }),
		unreadAttack("unread routes", forAll, func(t *turn) string {
			return "/route/compute?steps=true&" + t.world.boundParameters("waypoints", 23, 0) + "&" + t.world.endParameters(0)
		}),
		unreadAttack("unread areas", forTools, func(t *turn) string {
			return "/route/isochrone?sites=true&cost_values=3600&cost_values=3000&cost_values=2400&cost_values=1800&origin=" + t.world.place(0).position()
		}),
		unreadFileAttack(),
		slowReadAttack("lists read a byte a second", 1),
		slowReadAttack("lists read at 60 KiB a second", 60<<10),
	}
}

// unreadAttack sends requests over a few connections, and after half the time over many, and never reads an answer.
func unreadAttack(name string, p plan.Name, path func(*turn) string) attack {
	return attack{name, p, fewUnread, func(ctx context.Context, t *turn) {
		r := request{method: "GET", path: path(t), key: t.account.key}
		runAll(2, func(part int) {
			switch {
			case part == 0:
				t.hold(ctx, fewUnread, 0, r)
			case pauseFor(ctx, t.duration/2):
				t.hold(ctx, manyUnread-fewUnread, 0, r)
			}
		})
	}}
}

// unreadFileAttack sends files of 20 MB and does not read the answers, which are as large.
func unreadFileAttack() attack {
	const connections = 8
	return attack{"unread files", forAddresses, connections, func(ctx context.Context, t *turn) {
		const rows, cell = 2000, 10_000
		row := "48000," + strings.Repeat("x", cell) + "\n"
		t.hold(ctx, connections, 0, t.csvRequest("/search/csv", csvFile{"adresse,texte\n", row, rows}, formFields("columns", "adresse", 1)...))
	}}
}

// slowReadAttack reads the largest lists at perSecond bytes a second.
func slowReadAttack(name string, perSecond int) attack {
	const connections = 100
	return attack{name, forAll, connections, func(ctx context.Context, t *turn) {
		t.hold(ctx, connections, perSecond, request{method: "GET", path: referentialPath + "/sites?limit=1000", key: t.account.key})
	}}
}
