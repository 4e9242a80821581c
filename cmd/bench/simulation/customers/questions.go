package customers

import (
	"context"
	"fmt"
	"net/url"

	"lieudit/cmd/bench/simulation/customers/model"
)

// questionKinds are the questions of customers with a key.
func questionKinds() []kind {
	return []kind{
		question("verify", 12, model.Addresses, "GET /address/verify", "/address/verify?q=12+rue+de+la+Gare+48000+Mende"),
		question("complete", 12, model.Addresses, "GET /address/autocomplete", "/address/autocomplete?q=rue+de+la"),
		question("view", 3, model.Addresses, "GET /address/view/{id}", "/address/view/48095"),
		question("near address", 3, model.Addresses, "GET /address/proximity", "/address/proximity?lat=44.518&lon=3.501"),
		question("locality", 3, model.Addresses, "GET /locality/search", "/locality/search?q=Mende"),
		question("me", 6, model.Addresses, "GET /me", "/me"),
		question("former search", 3, model.Addresses, "GET /search", "/search/?q=Mende"),
		question("route", 2, model.Route, "GET /route/compute", "/route/compute?origin=48095&destination=48095"),
		question("list referentials", 3, model.Locations, "GET /locations/referentiels", "/locations/referentiels"),
		question("search places", 4, model.Locations, "GET /locations/search", "/locations/search?limit=100"),
		question("search near", 2, model.Locations, "GET /locations/search",
			"/locations/search?lat=44.5&lon=3.5&radius=5000&total=true&facettes=referentiel"),
		{"burst", 6, (*Customers).burst, 0, 25, false},
		{"matrix", 2, (*Customers).matrix, 20, 0, false},
		{"file", 2, (*Customers).file, 20, 0, false},
		{"search of a page", 4, (*Customers).searchOfPage, 0, 0, false},
	}
}

// question is a kind of request that only reads.
func question(name string, weight int, service model.Service, endpoint, path string) kind {
	return kind{name, weight, func(c *Customers, ctx context.Context, act deed) {
		c.ask(ctx, act, service, endpoint, path, 1)
	}, 0, 0, false}
}

// ask sends a question with a key of the act's account.
func (c *Customers) ask(ctx context.Context, act deed, service model.Service, endpoint, path string, weight int64) Answer {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight = service, endpoint, weight
	var ok bool
	if op.Key, ok = c.key(ctx, act); !ok {
		return Answer{}
	}
	return c.send(ctx, op, message{method: "GET", path: path})
}

// burst asks the same many times at once, on all instances.
func (c *Customers) burst(ctx context.Context, act deed) {
	c.atOnce(ctx, act, func(_ int, act deed) { c.ask(ctx, act, model.Addresses, "GET /me", "/me", 1) })
}

// matrix asks for the times between places. It counts for a request by 25 cells (DECISIONS 6).
func (c *Customers) matrix(ctx context.Context, act deed) {
	op := act.operation(act.Account)
	op.Service, op.Endpoint = model.Matrix, "POST /route/matrix"
	op.Weight = int64(act.Size*act.Size+24) / 25
	var ok bool
	if op.Key, ok = c.key(ctx, act); !ok {
		return
	}
	bounds := make([]map[string]float64, act.Size)
	for i := range bounds {
		bounds[i] = map[string]float64{"lon": 3.5 + float64(i)/1000, "lat": 44.5}
	}
	c.send(ctx, op, message{method: "POST", path: "/route/matrix", body: map[string]any{"origins": bounds, "destinations": bounds}})
}

// file sends a file of addresses. Each row counts.
func (c *Customers) file(ctx context.Context, act deed) {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight = model.Addresses, "POST /search/csv", int64(act.Size)
	var ok bool
	if op.Key, ok = c.key(ctx, act); !ok {
		return
	}
	form := "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\nadresse\n"
	for i := range act.Size {
		form += fmt.Sprintf("%d rue de la Gare Mende\n", i+1)
	}
	c.send(ctx, op, message{method: "POST", path: "/search/csv/", body: []byte(form + "\r\n--x--\r\n"),
		header: map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}}})
}

// searchOfPage is a search with a publishable key, from its page, and now and then from elsewhere or of something else.
func (c *Customers) searchOfPage(ctx context.Context, act deed) {
	all := c.keys(act.Account, "publishable")
	if len(all) == 0 {
		return
	}
	op := act.operation(act.Account)
	op.Key, op.Service, op.Endpoint, op.Weight = all[act.Pick%len(all)].Label, model.Locations, "GET /locations/search", 1
	path := "/locations/search"
	switch act.Pick % 10 {
	case 0:
		op.Endpoint, path, op.Service = "GET /me", "/me", model.Addresses
	case 1:
		op.Origin = "https://elsewhere.fr"
	case 2: // a server-side call
	default:
		op.Origin = originOf(op.Key, act.Pick%4 == 0)
	}
	c.send(ctx, op, message{method: "GET", path: path})
}

// originOf is where the page of a key lies, or where it has moved to.
func originOf(label string, hasMoved bool) string {
	if hasMoved {
		return "https://moved." + label + ".fr"
	}
	return "https://" + label + ".fr"
}

// pathEscape is a part of a path.
func pathEscape(s string) string { return url.PathEscape(s) }
