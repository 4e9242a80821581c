package stranger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"lieudit/http/api"
	"lieudit/schemas/plan"
)

// workers is how many connections ask for expensive work.
const workers = 8

// maxBody is the length of the largest bodies.
const maxBody = api.MaxBodyBytes

// workAttacks ask for the most expensive work that a plan includes.
func workAttacks() []attack {
	return slices.Concat(routeAttacks(), searchAttacks(), bodyAttacks())
}

// routeAttacks are expensive requests to the router.
func routeAttacks() []attack {
	return []attack{
		queryAttack("optimize 48 stops", forTools, func(t *turn, random *rand.Rand, _ int) request {
			return t.post("/route/optimize", fmt.Sprintf(`{"stops":[%s],"round_trip":true,"steps":true}`, t.world.bounds(48, random)))
		}),
		queryAttack("nearest of many", forTools, func(t *turn, random *rand.Rand, i int) request {
			destinations := []string{
				`"destinations":[` + t.world.bounds(625, random) + `]`, `"sites":{}`, `"destinations":[` + t.world.bounds(9600, random) + `]`,
			}[i%3]
			return t.post("/route/nearest", fmt.Sprintf(`{"origin":%s,"limit":100,%s}`, t.world.bounds(1, random), destinations))
		}),
		queryAttack("nearest of the sites of a large account", forAll, func(t *turn, random *rand.Rand, _ int) request {
			return t.post("/route/nearest", fmt.Sprintf(`{"origin":%s,"limit":100,"sites":{}}`, t.world.bounds(1, random)))
		}),
		queryAttack("matrix of 625", forTools, func(t *turn, random *rand.Rand, i int) request {
			rows := []int{25, 1, 625}[i%3]
			return t.post("/route/matrix", fmt.Sprintf(`{"origins":[%s],"destinations":[%s]}`, t.world.bounds(rows, random), t.world.bounds(625/rows, random)))
		}),
		queryAttack("areas of 4 × 60 minutes", forTools, func(t *turn, random *rand.Rand, _ int) request {
			return t.post("/route/isochrone", fmt.Sprintf(`{"origin":%s,"cost_values":[3600,3500,3400,3300],"sites":true}`, t.world.bounds(1, random)))
		}),
		queryAttack("routes with 23 waypoints or alternatives", forAll, func(t *turn, random *rand.Rand, i int) request {
			more := []string{`"alternatives":2`, `"waypoints":[` + t.world.bounds(23, random) + `]`}[i%2]
			return t.post("/route/compute", fmt.Sprintf(`{"origin":%s,"destination":%s,"steps":true,%s}`, t.world.bounds(1, random), t.world.bounds(1, random), more))
		}),
	}
}

// searchAttacks are searches with as many candidates as possible.
func searchAttacks() []attack {
	return []attack{
		queryAttack("slowest questions about addresses", forMany, func(t *turn, random *rand.Rand, i int) request {
			p := t.world.place(random.IntN(len(t.world.places)))
			return t.get([]string{
				fmt.Sprintf("/address/proximity?radius=10000&limit=100&lat=%f&lon=%f", p.lat, p.lon),
				"/address/proximity?radius=10000&limit=100&center=" + url.QueryEscape(p.address()),
				fmt.Sprintf("/reverse?limit=100&lat=%f&lon=%f", p.lat, p.lon),
				"/locality/search?limit=100&population_min=0",
			}[i%4])
		}),
		queryAttack("slowest questions about sites", forAll, func(t *turn, random *rand.Rand, i int) request {
			p := t.world.place(random.IntN(len(t.world.places)))
			around := fmt.Sprintf("lat=%f&lon=%f&radius=100000&limit=100", p.lat, p.lon)
			return t.get("/locations/search?" + []string{
				"sort=duree&" + around, "total=true&facettes=tags,commune,referentiel&" + around,
				"total=true&facettes=tags,commune,referentiel&limit=100&q=b", "statut=tous&total=true&limit=100&q=boutiqeu",
			}[i%4])
		}),
	}
}

// bodyAttacks send the largest bodies.
func bodyAttacks() []attack {
	return []attack{
		requestAttack("dry runs of 16 KiB rows", forSites, 4, func(t *turn, _ *rand.Rand, i int) request {
			n := []int{3_900, 20_000}[i%2] // as many as fit into a body, and as many as a sync may have
			return request{method: "POST", path: referentialPath + "/sites:sync", key: t.account.key, body: syncBody(t.world.place(0), n)}
		}),
		requestAttack("one Idempotency-Key again and again", forSites, workers, func(t *turn, _ *rand.Rand, i int) request {
			return request{method: "POST", path: referentialPath + "/sites:upsert", key: t.account.key, headers: []string{fmt.Sprintf("Idempotency-Key: key-%d", i/8)},
				body: rowsContent("application/json", `{"sites":[`, 99, func(i int) string { return largeSite(t.world.place(0), i) + "," }, largeSite(t.world.place(0), 99)+`]}`)}
		}),
		requestAttack("bodies of 64 MiB", forSites, workers, func(t *turn, _ *rand.Rand, i int) request {
			return request{method: "POST", path: referentialPath + "/sites:upsert", key: t.account.key, body: hugeBodies()[i%len(hugeBodies())]}
		}),
	}
}

// queryAttack sends requests over workers connections.
func queryAttack(name string, p plan.Name, newRequest func(t *turn, random *rand.Rand, i int) request) attack {
	return requestAttack(name, p, workers, newRequest)
}

// requestAttack sends requests over some connections.
func requestAttack(name string, p plan.Name, connections int, newRequest func(t *turn, random *rand.Rand, i int) request) attack {
	return attack{name, p, connections, func(ctx context.Context, t *turn) {
		t.repeat(ctx, connections, func(random *rand.Rand, i int) request { return newRequest(t, random, i) })
	}}
}

func (t *turn) get(path string) request {
	return request{method: "GET", path: path, key: t.account.key}
}

func (t *turn) post(path, text string) request {
	return request{method: "POST", path: path, key: t.account.key, body: jsonContent(text)}
}

// bounds returns n random places as bounds in JSON, separated by commas.
func (w *world) bounds(n int, random *rand.Rand) string {
	all := make([]string, n)
	for i := range all {
		p := w.place(random.IntN(len(w.places)))
		all[i] = fmt.Sprintf(`{"lon":%f,"lat":%f}`, p.lon, p.lat)
	}
	return strings.Join(all, ",")
}

// boundParameters returns n places far from each other, as a repeated parameter of a query.
func (w *world) boundParameters(name string, n, first int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = name + "=" + w.place(first+i*997).position()
	}
	return strings.Join(all, "&")
}

// endParameters returns the parameters of the two ends of a route.
func (w *world) endParameters(first int) string {
	return "origin=" + w.place(first).position() + "&destination=" + w.place(first+len(w.places)/2).position()
}

// syncBody returns the body of a dry run with n large sites.
func syncBody(p place, n int) content {
	return rowsContent("application/json", `{"dry_run":true,"sites":[`, n-1, func(i int) string { return largeSite(p, i) + "," }, largeSite(p, n-1)+`]}`)
}

// hugeBodies returns bodies of 64 MiB: many rows, a long text, nested lists, a long list, and numbers.
func hugeBodies() []content {
	fill := func(head, unit, tail string) content {
		n := (maxBody - len(head) - len(tail)) / len(unit)
		const unitsPerRow = 4096
		row := strings.Repeat(unit, unitsPerRow)
		return rowsContent("application/json", head, n/unitsPerRow, func(int) string { return row }, tail)
	}
	return []content{
		fill(`{"sites":[`, `{},`, `{}]}`),
		fill(`{"sites":[{"external_id":"a","nom":"`, `x`, `"}]}`),
		fill(`{"sites":`, `[`, ``),
		fill(`{"sites":[{"external_id":"a","tags":[`, `"a",`, `"a"]}]}`),
		fill(`{"autre":[`, `1e9,`, `1]}`),
	}
}
