package customers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"lieudit/cmd/bench/model"
)

// Address is an address of the vintage. Its Label is its Line, Postcode and Town.
type Address struct {
	ID, Label            string
	Line, Postcode, Town string
	Lon, Lat             float64
}

// questionKinds are the questions of customers with a key.
func questionKinds() []kind {
	return []kind{
		question("me", 6, model.Addresses, "GET /me", "/me"),
		question("list referentials", 3, model.Locations, "GET /locations/referentiels", "/locations/referentiels"),
		question("search places", 4, model.Locations, "GET /locations/search", "/locations/search?limit=100"),
		question("search near", 2, model.Locations, "GET /locations/search",
			"/locations/search?lat=44.5&lon=3.5&radius=5000&total=true&facettes=referentiel"),
		{"verify", 12, (*Customers).verify, 0, 0, false},
		{"complete", 12, (*Customers).complete, 0, 0, false},
		{"view", 3, (*Customers).view, 0, 0, false},
		{"near address", 3, (*Customers).findNear, 0, 0, false},
		{"locality", 3, (*Customers).findLocality, 0, 0, false},
		{"former search", 3, (*Customers).searchAsBefore, 0, 0, false},
		{"former reverse", 1, (*Customers).reverseAsBefore, 0, 0, false},
		{"route", 2, (*Customers).route, 0, 0, false},
		{"burst", 6, (*Customers).burst, 0, 25, false},
		{"matrix", 2, (*Customers).matrix, 20, 0, false},
		{"isochrone", 1, (*Customers).isochrone, 0, 0, false},
		{"nearest", 1, (*Customers).nearest, 20, 0, false},
		{"optimize", 1, (*Customers).optimize, 8, 0, false},
		{"file", 2, (*Customers).file, 20, 0, false},
		{"reverse file", 1, (*Customers).reverseFile, 20, 0, false},
		{"search of a page", 4, (*Customers).searchOfPage, 0, 0, false},
	}
}

// question is a kind of request that only reads.
func question(name string, weight int, service model.Service, endpoint, path string) kind {
	return kind{name, weight, func(c *Customers, ctx context.Context, act actDetails) {
		c.ask(ctx, act, service, endpoint, path, 1)
	}, 0, 0, false}
}

// ask sends a question with a key of the act's account.
func (c *Customers) ask(ctx context.Context, act actDetails, service model.Service, endpoint, path string, weight int64) Answer {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight = service, endpoint, weight
	return c.askWithKey(ctx, act, op, message{method: "GET", path: path})
}

// askWithKey sends a request with a key of the act's account. It returns no answer if the account has none.
func (c *Customers) askWithKey(ctx context.Context, act actDetails, op model.Operation, m message) Answer {
	var ok bool
	if op.Key, ok = c.key(ctx, act); !ok {
		return Answer{}
	}
	return c.send(ctx, op, m)
}

// askRegion asks a question that always has the same answer, for everybody: the vintage and the roads never change.
func (c *Customers) askRegion(ctx context.Context, act actDetails, service model.Service, endpoint, path string) Answer {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight, op.Question = service, endpoint, 1, path
	return c.askWithKey(ctx, act, op, message{method: "GET", path: path})
}

// address returns one of the addresses, in the order of the vintage's rows.
func (c *Customers) address(number int) Address { return c.addresses[number%len(c.addresses)] }

// verify asks for an address, and expects to find it.
func (c *Customers) verify(ctx context.Context, act actDetails) {
	at := c.address(act.Pick)
	a := c.askRegion(ctx, act, model.Addresses, "GET /address/verify", "/address/verify?q="+url.QueryEscape(at.Label))
	if a.Status == http.StatusOK && !strings.Contains(string(a.Body), strconv.Quote(at.ID)) {
		c.world.Report(model.FindsAddress, "%s: %s is not in %s", at.Label, at.ID, a.Body)
	}
}

// complete asks for completions of the beginning of an address.
func (c *Customers) complete(ctx context.Context, act actDetails) {
	label := []rune(c.address(act.Pick).Label)
	c.askRegion(ctx, act, model.Addresses, "GET /address/autocomplete", "/address/autocomplete?q="+url.QueryEscape(string(label[:5+act.Pick%8])))
}

// view looks an address up, and now and then one that does not exist.
func (c *Customers) view(ctx context.Context, act actDetails) {
	at := c.address(act.Pick)
	id := at.ID
	if act.Pick%5 == 0 {
		id += "_none"
	}
	a := c.askRegion(ctx, act, model.Addresses, "GET /address/view/{id}", "/address/view/"+pathEscape(id))
	if a.Status == http.StatusNotFound && id == at.ID || a.Status == http.StatusOK && !strings.Contains(string(a.Body), strconv.Quote(id)) {
		c.world.Report(model.FindsAddress, "%s: %d %s", id, a.Status, a.Body)
	}
}

// findNear asks for the addresses near another one.
func (c *Customers) findNear(ctx context.Context, act actDetails) {
	at := c.address(act.Pick)
	path := fmt.Sprintf("/address/proximity?lat=%f&lon=%f", at.Lat, at.Lon)
	if act.Pick%2 == 0 {
		path = "/address/proximity?center=" + url.QueryEscape(at.Label)
	}
	c.askRegion(ctx, act, model.Addresses, "GET /address/proximity", path)
}

// findLocality asks for a town.
func (c *Customers) findLocality(ctx context.Context, act actDetails) {
	c.askRegion(ctx, act, model.Addresses, "GET /locality/search", "/locality/search?q="+url.QueryEscape(c.address(act.Pick).Town))
}

// searchAsBefore asks as customers of the former API do.
func (c *Customers) searchAsBefore(ctx context.Context, act actDetails) {
	c.askRegion(ctx, act, model.Addresses, "GET /search", "/search/?q="+url.QueryEscape(c.address(act.Pick).Label))
}

// reverseAsBefore asks for the address at a position, as customers of the former API do.
func (c *Customers) reverseAsBefore(ctx context.Context, act actDetails) {
	at := c.address(act.Pick)
	c.askRegion(ctx, act, model.Addresses, "GET /reverse", fmt.Sprintf("/reverse/?lat=%f&lon=%f", at.Lat, at.Lon))
}

// route asks for the way from an address to another one, mostly in the same town.
func (c *Customers) route(ctx context.Context, act actDetails) {
	c.askRegion(ctx, act, model.Route, "GET /route/compute", "/route/compute?steps=true&origin="+url.QueryEscape(c.address(act.Pick).Label)+
		"&destination="+url.QueryEscape(c.address(act.Pick+9).Label))
}

// burst asks the same question many times at once, on all instances.
func (c *Customers) burst(ctx context.Context, act actDetails) {
	c.atOnce(ctx, act, func(_ int, act actDetails) { c.ask(ctx, act, model.Addresses, "GET /me", "/me", 1) })
}

// matrix asks for the travel times between positions. It counts one request for 25 cells (DECISIONS 6).
func (c *Customers) matrix(ctx context.Context, act actDetails) {
	bounds := c.bounds(act.Pick, act.Size)
	c.askRoads(ctx, act, "/route/matrix", act.Size*act.Size, map[string]any{"origins": bounds, "destinations": bounds})
}

// isochrone asks for the area within some minutes of a position.
func (c *Customers) isochrone(ctx context.Context, act actDetails) {
	c.askRoads(ctx, act, "/route/isochrone", 1, map[string]any{"origin": c.bounds(act.Pick, 1)[0], "cost_type": "duration", "cost_values": []int{300}})
}

// nearest asks which of some positions is the nearest to another one.
func (c *Customers) nearest(ctx context.Context, act actDetails) {
	c.askRoads(ctx, act, "/route/nearest", 1, map[string]any{"origin": c.bounds(act.Pick, 1)[0], "destinations": c.bounds(act.Pick+1, act.Size)})
}

// optimize asks in which order to visit some positions. It counts one request for 25 of them.
func (c *Customers) optimize(ctx context.Context, act actDetails) {
	c.askRoads(ctx, act, "/route/optimize", act.Size+1, map[string]any{"stops": c.bounds(act.Pick, act.Size+1)})
}

// bounds returns the positions of some addresses, as bounds of routes.
func (c *Customers) bounds(first, number int) []map[string]float64 {
	all := make([]map[string]float64, number)
	for i := range all {
		at := c.address(first + i)
		all[i] = map[string]float64{"lon": at.Lon, "lat": at.Lat}
	}
	return all
}

// askRoads asks a question for plans with the matrix. It counts one request for 25 cells or stops, and always has the same answer.
func (c *Customers) askRoads(ctx context.Context, act actDetails, path string, cells int, body map[string]any) {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight = model.Matrix, "POST "+path, int64(cells+24)/25
	op.Question = fmt.Sprint(path, " ", act.Pick%len(c.addresses), " ", act.Size)
	c.askWithKey(ctx, act, op, message{method: "POST", path: path, body: body})
}

// file sends a file of addresses. Each row counts.
func (c *Customers) file(ctx context.Context, act actDetails) {
	c.sendFile(ctx, act, "/search/csv", "adresse", func(at Address) string { return at.Label })
}

// reverseFile sends a file of positions. Each row counts.
func (c *Customers) reverseFile(ctx context.Context, act actDetails) {
	c.sendFile(ctx, act, "/reverse/csv", "lat,lon", func(at Address) string { return fmt.Sprintf("%f,%f", at.Lat, at.Lon) })
}

// sendFile sends a CSV file as customers of the former API do, with a row for each of some addresses.
func (c *Customers) sendFile(ctx context.Context, act actDetails, path, columns string, row func(Address) string) {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight = model.Addresses, "POST "+path, int64(act.Size)
	op.Question = fmt.Sprint(path, " ", act.Pick%len(c.addresses), " ", act.Size)
	form := "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n" + columns + "\n"
	for i := range act.Size {
		form += row(c.address(act.Pick+i)) + "\n"
	}
	c.askWithKey(ctx, act, op, message{method: "POST", path: path + "/", body: []byte(form + "\r\n--x--\r\n"),
		header: map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}}})
}

// searchOfPage searches with a publishable key from its page, and now and then from another page or on another endpoint.
func (c *Customers) searchOfPage(ctx context.Context, act actDetails) {
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

// originOf returns the origin of a key's page, or of the page's new address.
func originOf(label string, hasMoved bool) string {
	if hasMoved {
		return "https://moved." + label + ".fr"
	}
	return "https://" + label + ".fr"
}

// pathEscape escapes a path segment.
func pathEscape(s string) string { return url.PathEscape(s) }
