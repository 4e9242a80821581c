package api_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/leveltest"
	"lieudit/http/api"
	"lieudit/http/routing"
	"lieudit/queries/address/live"
	"lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	"lieudit/schemas/token"
)

const (
	foch  = `"12 avenue foch 48000 mende"`
	other = `"14 avenue foch 48000 mende"`
)

// expectPart is expectResponse for several parts of one answer.
func expectPart(t *testing.T, what string, w *httptest.ResponseRecorder, status int, want string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s: got %d %s, want %d %s", what, w.Code, w.Body, status, want)
	}
}

func TestARouteIsAnsweredWithItsBoundsLegsAndNetwork(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	w := b.post("/route/compute", `{"origin":{"lon":3,"lat":44},"destination":{"lon":3,"lat":45},"waypoints":["3,44.5"]}`)
	expectResponse(t, "compute", w, 200, `{"status":"OK","message":"",`+
		`"bounds":[{"saisi":"3,44","lon":3,"lat":44,"acces":{"lon":3,"lat":44,"distance":3}},`+
		`{"saisi":"3,44.5","lon":3,"lat":44.5,"acces":{"lon":3,"lat":44.5,"distance":3}},`+
		`{"saisi":"3,45","lon":3,"lat":45,"acces":{"lon":3,"lat":45,"distance":3}}],`+
		`"distance":111195,"duration":11120,"bbox":[3,44,3,45],"geometry":{"type":"LineString","coordinates":[[3,44],[3,44.5],[3,45]]},`+
		`"legs":[{"distance":55598,"duration":5560},{"distance":55598,"duration":5560}],"peages_m":13,`+
		`"mode":"car","reseau_routier":"2026-11-20","attribution":"© les contributeurs d'OpenStreetMap, ODbL 1.0"}`)
}

func TestAnAddressIsShownWithItsVerdictAndWhetherTheRoadIsItsOwn(t *testing.T) {
	t.Parallel()
	r := &fakeRouter{}
	b := newRoutingAPI(t, r, unchanged)
	w := b.post("/route/compute", `{"origin":`+foch+`,"destination":"site:shops/a","geometry":"none"}`)
	expectPart(t, "an address", w, 200, `"saisi":"12 avenue foch 48000 mende","score":1,"verdict":"match_exact","adresse":{"id":"48095_0100_00012"`)
	expectPart(t, "its access", w, 200, `"voie":"Avenue Foch","sur_sa_voie":true}},`)
	expectPart(t, "a site", w, 200, `{"saisi":"site:shops/a","site":{"referentiel":"shops","external_id":"a","nom":"Boutique a"},"lon":3.5,"lat":44.51,"acces"`)
	if strings.Contains(w.Body.String(), "geometry") || strings.Contains(w.Body.String(), "bbox") {
		t.Errorf("a geometry that nobody asked for: %s", w.Body)
	}
	want := []route.Bound{{Point: geo.Point{Lon: 3.5, Lat: 44.51}, IsAddress: true, Street: "Avenue Foch"}, {Point: geo.Point{Lon: 3.5, Lat: 44.51}, IsAddress: true, Street: "Avenue Foch"}}
	if diff := cmp.Diff(want, r.queries[0].(route.Query).Bounds); diff != "" {
		t.Errorf("the router is asked for other bounds:\n%s", diff)
	}
}

// TestQueryAndBodyNameTheSameBounds holds both forms of every bound to the same question to the router.
func TestQueryAndBodyNameTheSameBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inBody, inQuery, typed string }{
		"a position":                  {`{"lon":3.25,"lat":44}`, "3.25,44", "3.25,44"},
		"a position with spaces":      {`" 3.25 , 44.0 "`, " 3.25 , 44.0 ", " 3.25 , 44.0 "},
		"a site":                      {`{"referentiel":"shops","external_id":"a"}`, "site:shops/a", "site:shops/a"},
		"a text with commas":          {`"12, avenue foch, 48000, mende"`, "12, avenue foch, 48000, mende", "12, avenue foch, 48000, mende"},
		"an id":                       {`"48095_0100_00012"`, "48095_0100_00012", "48095_0100_00012"},
		"an id_ban":                   {`"5c1a1f0e-3c0f-4a53-9d36-6b5b0e7c0001"`, "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7c0001", "5c1a1f0e-3c0f-4a53-9d36-6b5b0e7c0001"},
		"a street resolves to itself": {`"avenue foch 48000 mende"`, "avenue foch 48000 mende", "avenue foch 48000 mende"},
	} {
		r := &fakeRouter{}
		b := newRoutingAPI(t, r, unchanged)
		sent := b.post("/route/compute", `{"origin":`+c.inBody+`,"destination":"3,45"}`)
		asked := b.get("/route/compute?destination=3,45&origin=" + url.QueryEscape(c.inQuery))
		if sent.Code != 200 || readBody(t, sent) != readBody(t, asked) {
			t.Errorf("%s: the body is answered %s, the query %s", name, sent.Body, asked.Body)
			continue
		}
		if diff := cmp.Diff(r.queries[0], r.queries[1]); diff != "" || !strings.Contains(sent.Body.String(), `"saisi":"`+c.typed+`"`) {
			t.Errorf("%s: %s %s", name, diff, sent.Body)
		}
	}
}

func TestTheFirstBoundThatMeansNoAddressIsNamed(t *testing.T) {
	t.Parallel()
	r := &fakeRouter{err: route.ErrUnavailable} // bounds come before the router
	b := newRoutingAPI(t, r, unchanged)
	for sent, want := range map[string]string{
		`/route/compute {"origin":"rue A","waypoints":["rue B"],"destination":"rue C"}`:                                         "rue A",
		`/route/compute {"origin":` + foch + `,"waypoints":[` + other + `,"rue B"],"destination":"rue C"}`:                      "rue B",
		`/route/compute {"origin":"3,44","destination":"rue C"}`:                                                                "rue C",
		`/route/compute {"origin":"Tour Eiffel","destination":"3,44"}`:                                                          "Tour Eiffel",
		`/route/compute {"origin":"site:shops/nobody","destination":"3,44"}`:                                                    "site:shops/nobody",
		`/route/compute {"origin":{"referentiel":"shops","external_id":"nowhere"},"destination":"3,44"}`:                        "site:shops/nowhere",
		`/route/compute {"origin":"Site:shops/a","destination":"3,44"}`:                                                         "Site:shops/a",
		`/route/matrix {"origins":["3,44","rue A"],"destinations":["rue B"]}`:                                                   "rue A",
		`/route/matrix {"origins":["3,44"],"destinations":["3,44","rue B"]}`:                                                    "rue B",
		`/route/isochrone {"origin":"rue A","cost_values":[60]}`:                                                                "rue A",
		`/route/nearest {"origin":"rue A","destinations":["rue B"]}`:                                                            "rue A",
		`/route/optimize {"stops":["3,44",` + foch + `,"rue A"]}`:                                                               "rue A",
		`/route/compute {"origin":"99 avenue foch 48000 mende","destination":"3,44"}`:                                           "99 avenue foch 48000 mende",
		`/route/nearest {"origin":{"referentiel":"shops","external_id":"a"},"destinations":["5c1a1f0e-3c0f-4a53-9d36-000000"]}`: "5c1a1f0e-3c0f-4a53-9d36-000000",
	} {
		path, text, _ := strings.Cut(sent, " ")
		expectResponse(t, sent, b.post(path, text), 422, `{"detail":"Unable to resolve `+want+` to a verified match"}`)
	}
	if len(r.queries) > 0 {
		t.Errorf("the router was asked %v", r.queries)
	}
}

func TestSitesOfAnotherAccountAreUnknown(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	h := token.HashOf(b.keys["BUSINESS secret"])
	b.keyRing.keys[h] = withAccount(b.keyRing.keys[h], "stranger")
	expectResponse(t, "by its id", b.get("/route/compute?destination=3,45&origin=site:shops/a"), 422, "Unable to resolve site:shops/a to a verified match")
	expectResponse(t, "all", b.post("/route/nearest", `{"origin":"3,44","sites":{}}`), 200, nothingFound)
	expectResponse(t, "values at commas", b.get("/route/isochrone?origin=3.5,44.5&cost_values=120,300"), 200, `"status":"OK"`)
	expectResponse(t, "in an area", b.get("/route/isochrone?origin=3.5,44.5&cost_values=3600&sites=true"), 200, `"sites":[]`)
}

func TestRulesOfRoutesAreBrokenWithTheirPlace(t *testing.T) {
	t.Parallel()
	r := &fakeRouter{}
	b := newRoutingAPI(t, r, unchanged)
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"3,44",`, n), ",") }
	for sent, want := range map[string]string{
		`/route/compute {"origin":"3,44","destination":"3,44","waypoints":[` + list(24) + `]}`:                 `{"type":"too_long","loc":["body","waypoints"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","alternatives":3}`:                               `{"type":"less_than_equal","loc":["body","alternatives"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","alternatives":1,"waypoints":["3,45"]}`:          `{"type":"value_error","loc":["body"],"msg":"Value error, alternatives go without waypoints"`,
		`/route/compute {"origin":"3,44","destination":"3,44","mode":"train"}`:                                 `{"type":"literal_error","loc":["body","mode"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","avoid":["toll","rain"]}`:                        `{"type":"literal_error","loc":["body","avoid",1]`,
		`/route/compute {"origin":"3,44","destination":"3,44","optimization":"best"}`:                          `["body","optimization"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","geometry":"wkt"}`:                               `["body","geometry"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","lang":"de"}`:                                    `["body","lang"]`,
		`/route/compute {"origin":"3,44","destination":"3,44","vehicle":"truck"}`:                              `{"type":"extra_forbidden","loc":["body","vehicle"]`,
		`/route/compute {"origin":{"lon":181,"lat":44},"destination":"3,44"}`:                                  `{"type":"less_than_equal","loc":["body","origin","lon"]`,
		`/route/compute {"origin":"3,91","destination":"3,44"}`:                                                `{"type":"value_error","loc":["body","origin"],"msg":"Value error, a position is lon,lat`,
		`/route/compute {"origin":{"lon":3},"destination":"3,44"}`:                                             `"msg":"Value error, lat and lon go together"`,
		`/route/compute {"origin":{},"destination":"3,44"}`:                                                    `"msg":"Value error, a bound is lon and lat, or referentiel and external_id"`,
		`/route/compute {"origin":{"lon":3,"lat":4,"referentiel":"a","external_id":"b"},"destination":"3,44"}`: `"msg":"Value error, a bound is lon and lat, or referentiel and external_id"`,
		`/route/compute {"origin":{"referentiel":"a"},"destination":"3,44"}`:                                   `"msg":"Value error, referentiel and external_id go together"`,
		`/route/compute {"origin":{"q":"x"},"destination":"3,44"}`:                                             `{"type":"extra_forbidden","loc":["body","origin","q"]`,
		`/route/compute {"origin":7,"destination":"3,44"}`:                                                     `{"type":"model_attributes_type","loc":["body","origin"]`,
		`/route/matrix {"origins":[` + list(26) + `],"destinations":[` + list(25) + `]}`:                       `"msg":"Value error, origins times destinations is at most 625, not 650"`,
		`/route/matrix {"origins":["3,44"],"destinations":["3,44"],"sites":{}}`:                                `"msg":"Value error, destinations and sites exclude each other"`,
		`/route/matrix {"origins":[],"destinations":["3,44"]}`:                                                 `{"type":"too_short","loc":["body","origins"]`,
		`/route/matrix {"origins":["3,44",""],"destinations":["3,44"]}`:                                        `{"type":"string_too_short","loc":["body","origins",1]`,
		`/route/matrix {"origins":["3,44"],"sites":{"code":"x"}}`:                                              `{"type":"extra_forbidden","loc":["body","sites","code"]`,
		`/route/nearest {"origin":"3,44","destinations":["3,44"],"sites":{}}`:                                  `"msg":"Value error, destinations and sites exclude each other"`,
		`/route/nearest {"origin":"3,44","destinations":["3,44"],"limit":101}`:                                 `["body","limit"]`,
		`/route/isochrone {"origin":"3,44","cost_values":[60,3601]}`:                                           `{"type":"value_error","loc":["body","cost_values"],"msg":"Value error, a value is from 1 to 3600 seconds, not 3601"`,
		`/route/isochrone {"origin":"3,44","cost_values":[3601,100001],"cost_type":"distance"}`:                `"msg":"Value error, a value is from 1 to 100000 metres, not 100001"`,
		`/route/isochrone {"origin":"3,44","cost_values":[0]}`:                                                 `from 1 to 3600 seconds, not 0`,
		`/route/isochrone {"origin":"3,44","cost_values":[1,2,3,4,5]}`:                                         `{"type":"too_long","loc":["body","cost_values"]`,
		`/route/isochrone {"origin":"3,44","cost_values":[60],"optimization":"shortest"}`:                      `{"type":"extra_forbidden","loc":["body","optimization"]`,
		`/route/isochrone {"origin":"3,44","cost_values":[60],"direction":"both"}`:                             `["body","direction"]`,
		`/route/optimize {"stops":["3,44"]}`:                                                                   `{"type":"too_short","loc":["body","stops"]`,
		`/route/optimize {"stops":[` + list(49) + `]}`:                                                         `{"type":"too_long","loc":["body","stops"]`,
		`/route/optimize {"stops":["3,44","3,45"],"round_trip":true,"end":"fixed"}`:                            `"msg":"Value error, round_trip and end=fixed exclude each other"`,
		`/route/compute?origin=3,44&destination=3,45&waypoints=` + strings.Repeat("a", 201):                    `{"type":"string_too_long","loc":["query","waypoints",0]`,
		`/route/compute?origin=3,44&origin=3,45&destination=3,45`:                                              `{"type":"string_type","loc":["query","origin"]`,
		`/route/matrix?origins=3,44&destinations=3,45&tags=bio`:                                                `"msg":"Value error, referentiel and tags go with sites=true"`,
		`/route/matrix?origins=3,44&destinations=3,45&sites=true`:                                              `"msg":"Value error, destinations and sites exclude each other"`,
		`/route/nearest?origin=3,44&sites=true&referentiel=UPPER`:                                              `{"type":"string_pattern_mismatch","loc":["query","referentiel"]`,
	} {
		path, text, isBody := strings.Cut(sent, " ")
		w := b.get(path)
		if isBody {
			w = b.post(path, text)
		}
		expectPart(t, sent, w, 422, want)
	}
	if len(r.queries) > 0 {
		t.Errorf("the router was asked %v", r.queries)
	}
}

func TestARequestWithoutItsBoundsIsMalformed(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	for _, sent := range []string{
		`/route/compute {}`, `/route/compute {"origin":"3,44"}`, `/route/compute {"origin":"","destination":"3,44"}`,
		`/route/compute {"origin":"` + strings.Repeat("a", 201) + `","destination":"3,44"}`, `/route/compute?destination=3,44`, `/route/compute?origin=&destination=3,44`,
		`/route/matrix {"origins":["3,44"]}`, `/route/matrix?origins=3,44&sites=false`, `/route/matrix {"sites":{}}`,
		`/route/nearest {"origin":"3,44"}`, `/route/isochrone {"origin":"3,44"}`, `/route/optimize {}`, `/route/optimize?`,
	} {
		path, text, isBody := strings.Cut(sent, " ")
		w := b.get(path)
		if isBody {
			w = b.post(path, text)
		}
		expectResponse(t, sent, w, 400, badRequest)
	}
}

func TestOnlyAMatrixAnswersWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	for _, target := range []string{
		"/route/compute?origin=3,44&destination=3,-45", "/route/compute?origin=3,-44&destination=3,45", "/route/compute?origin=-3,44&destination=3,45",
		"/route/isochrone?origin=3,-44&cost_values=60", "/route/nearest?origin=3,-44&destinations=3,45", "/route/nearest?origin=3,44&destinations=-3,45&destinations=3,-45",
		"/route/optimize?stops=3,44&stops=3,-45&stops=3,45", "/route/optimize?stops=3,44&stops=-3,45", "/route/matrix?origins=3,44&sites=true&tags=absent",
	} {
		expectResponse(t, target, b.get(target), 200, nothingFound)
	}
	w := b.get("/route/matrix?origins=3,44&origins=3,-44&destinations=3,45&destinations=-3,45")
	expectPart(t, "matrix", w, 200, `"durations":[[11120,null],[null,null]],"distances":[[111195,null],[null,null]]`)
	expectPart(t, "off road", w, 200, `{"saisi":"3,-44","lon":3,"lat":-44}`)
}

// TestATypedBoundWithoutAVintageIsA500: a position needs no address, and a text that cannot be looked up is not a wrong text.
func TestATypedBoundWithoutAVintageIsA500(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, func(p *fakeParts) { p.addresses = live.New(nil) })
	targets := []string{
		"/route/compute?origin=12+avenue+Foch+Mende&destination=3,45", "/route/matrix?origins=3,44&destinations=48095_0100_00012",
		"/route/isochrone?origin=48000+Mende&cost_values=60", "/route/nearest?origin=3,44&destinations=14+avenue+Foch+Mende",
		"/route/optimize?stops=3,44&stops=12+avenue+Foch+Mende",
	}
	for _, target := range targets {
		expectResponse(t, target, b.get(target), 500, `{"detail":"Address engine unavailable"}`)
	}
	if n := strings.Count(b.logs.String(), "no vintage"); n != len(targets) {
		t.Errorf("%d of %d refusals are logged: %s", n, len(targets), b.logs)
	}
	if w := b.get("/route/compute?origin=3,44&destination=3,45"); w.Code != 200 {
		t.Errorf("between positions: %d %s", w.Code, w.Body)
	}
	for _, target := range []string{"/address/verify?q=12+avenue+Foch+Mende", "/address/view/48095_0100_00012", "/locality/search?q=Mende"} {
		expectResponse(t, target, b.get(target), 500, `{"detail":"Address engine unavailable"}`)
	}
}

func TestARouterThatCannotAnswerIsA500(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		err      error
		isLogged bool
	}{{route.ErrUnavailable, false}, {route.ErrUnsupported, false}, {fmt.Errorf("ask: %w", route.ErrUnavailable), false}, {broken, true}} {
		b := newRoutingAPI(t, &fakeRouter{err: c.err}, unchanged)
		for _, target := range []string{
			"/route/compute?origin=3,44&destination=3,45", "/route/matrix?origins=3,44&destinations=3,45", "/route/isochrone?origin=3,44&cost_values=60",
			"/route/nearest?origin=3,44&destinations=3,45", "/route/optimize?stops=3,44&stops=3,45",
		} {
			expectResponse(t, target, b.get(target), 500, `{"detail":"Routing engine unavailable"}`)
		}
		if isLogged := strings.Count(b.logs.String(), "broken") == 5; isLogged != c.isLogged || !c.isLogged && b.logs.Len() > 0 {
			t.Errorf("%v: logged %q", c.err, b.logs)
		}
	}
	b := newRoutingAPI(t, &fakeRouter{err: route.ErrTooMuchWork}, unchanged)
	expectResponse(t, "too much", b.get("/route/matrix?origins=3,44&destinations=3,45"), 422, `{"detail":[{"type":"value_error","loc":["query"],`+
		`"msg":"Value error, more work than one request may cost: ask for fewer bounds, or nearer ones","input":{"destinations":"3,45","origins":"3,44"}}]}`)
}

func TestTheRouterIsAskedForWhatTheRequestSays(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]route.Query{
		"": {Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}, Geometry: true},
		"&mode=bike&optimization=shortest&avoid=ferry&avoid=toll&geometry=none": {Profile: route.Profile{Mode: route.Bike, Optimization: route.Shortest, Avoid: route.Ferries | route.Tolls}},
		"&steps=true&alternatives=2&geometry=polyline&mode=foot":                {Profile: route.Profile{Mode: route.Foot, Optimization: route.Fastest}, Geometry: true, Steps: true, Alternatives: 2},
	} {
		r := &fakeRouter{}
		b := newRoutingAPI(t, r, unchanged)
		expectResponse(t, target, b.get("/route/compute?origin=3,44&destination=3,45"+target), 200, `"status":"OK"`)
		want.Bounds = []route.Bound{{Point: geo.Point{Lon: 3, Lat: 44}}, {Point: geo.Point{Lon: 3, Lat: 45}}}
		if diff := cmp.Diff(want, r.queries[0]); diff != "" {
			t.Errorf("%s:\n%s", target, diff)
		}
	}
}

func TestStepsAndAlternativesAreDrawnAsTheRouteIs(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	w := b.get("/route/compute?origin=3,44&destination=3,45&steps=true&alternatives=1&geometry=polyline&avoid=ferry")
	for what, want := range map[string]string{
		"the precision": `"precision_polyline":5`, "the line": `"geometry":"_wpkG_}hQ_ibE?"`, "the box": `"bbox":[3,44,3,45]`,
		"a step":        `"steps":[{"distance":111195,"duration":11120,"voie":"Avenue Foch","ref":"D 806","manoeuvre":{"type":"depart","lon":3,"lat":44}`,
		"the last step": `{"distance":0,"duration":0,"voie":"Avenue Foch","manoeuvre":{"type":"arrivee","lon":3,"lat":45}`,
		"what remained": `"evitements":[{"type":"ferry","metres":100}]`, "an alternative": `"alternatives":[{"distance":111195,"duration":11120,"bbox"`,
	} {
		expectPart(t, what, w, 200, want)
	}
	if got := strings.Count(w.Body.String(), `"_wpkG_}hQ_ibE?"`); got != 4 {
		t.Errorf("%d lines, want one of each route and one of each first step: %s", got, w.Body)
	}
}

func TestStepsAreToldInFrenchUnlessEnglishIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	for lang, want := range map[string]string{"": "Partez vers le nord sur l'avenue Foch", "&lang=fr": "Partez vers le nord sur l'avenue Foch", "&lang=en": "Head north on Avenue Foch"} {
		w := b.get("/route/compute?origin=3,44&destination=3,45&steps=true" + lang)
		expectPart(t, lang, w, 200, `"texte":"`+want+`"`)
	}
}

func TestSitesAreDestinations(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	for sent, want := range map[string][]string{
		`/route/matrix {"origins":["3.5,44.5"],"sites":{}}`:                                               {"depots/z", "shops/a", "shops/b"},
		`/route/matrix {"origins":["3.5,44.5"],"sites":{"referentiel":"shops"}}`:                          {"shops/a", "shops/b"},
		`/route/matrix {"origins":["3.5,44.5"],"sites":{"tags":["bio"]}}`:                                 {"depots/z", "shops/a"},
		`/route/matrix?origins=3.5,44.5&sites=true&referentiel=shops&tags=bio`:                            {"shops/a"},
		`/route/nearest {"origin":"3.5,44.5","sites":{}}`:                                                 {"shops/a", "depots/z", "shops/b"},
		`/route/nearest?origin=3.5,44.5&sites=true&limit=2`:                                               {"shops/a", "depots/z"},
		`/route/isochrone {"origin":"3.5,44.55","cost_values":[100],"sites":true}`:                        {},
		`/route/isochrone {"origin":"3.5,44.55","cost_values":[120],"sites":true}`:                        {"depots/z"},
		`/route/isochrone?origin=3.5,44.55&cost_values=450&sites=true&geometry=none`:                      {"depots/z", "shops/a"},
		`/route/isochrone?origin=3.5,44.55&cost_values=1000&cost_values=120&sites=true&direction=arrival`: {"depots/z", "shops/a", "shops/b", "depots/z"},
		`/route/isochrone?origin=3.5,44.55&cost_type=distance&cost_values=4500&sites=true`:                {"depots/z", "shops/a"},
	} {
		path, text, isBody := strings.Cut(sent, " ")
		w := b.get(path)
		if isBody {
			w = b.post(path, text)
		}
		var got []string
		for _, part := range strings.Split(readBody(t, w), `{"referentiel":"`)[1:] {
			code, rest, _ := strings.Cut(part, `","external_id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			got = append(got, code+"/"+id)
		}
		if !slices.Equal(got, want) || w.Code != 200 {
			t.Errorf("%s: %d %q, want %q", sent, w.Code, got, want)
		}
	}
}

func TestAnIsochroneAnswersItsValuesInTheOrderAsked(t *testing.T) {
	t.Parallel()
	r := &fakeRouter{}
	b := newRoutingAPI(t, r, unchanged)
	w := b.get("/route/isochrone?origin=3,44&cost_type=distance&cost_values=2000&cost_values=1000&cost_values=2000&direction=arrival&avoid=toll")
	expectPart(t, "areas", w, 200, `"cost_type":"distance","areas":[{"valeur":2000,"geometry":{"type":"MultiPolygon","coordinates":[[[[1,42],[5,42],[5,46],[1,46],[1,42]],[[2.8,43.8],`)
	expectPart(t, "areas", w, 200, `{"valeur":1000,"geometry":{"type":"MultiPolygon","coordinates":[[[[2,43],[4,43],`)
	if strings.Count(w.Body.String(), `"valeur":2000`) != 2 || strings.Contains(w.Body.String(), "sites") {
		t.Errorf("got %s", w.Body)
	}
	want := route.IsochroneQuery{
		Profile: route.Profile{Mode: route.Car, Optimization: route.Shortest, Avoid: route.Tolls}, Center: route.Bound{Point: geo.Point{Lon: 3, Lat: 44}},
		Cost: route.ByDistance, Limits: []float64{1000, 2000}, Arrival: true,
	}
	if diff := cmp.Diff(want, r.queries[0]); diff != "" {
		t.Error(diff)
	}
}

func TestTheNearestSayWhichDestinationTheyAre(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	w := b.post("/route/nearest", `{"origin":"3,44","destinations":["3,45","-3,44","3,44.5",`+foch+`],"limit":2}`)
	expectResponse(t, "nearest", w, 200, `"results":[{"indice":2,"saisi":"3,44.5","lon":3,"lat":44.5,"acces":{"lon":3,"lat":44.5,"distance":3},"distance":55598,"duration":5560},{"indice":3,"saisi":"12 avenue`)
}

func TestStopsAreOrderedAndTheWayLeadsThroughThem(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"":                           `"order":[0,3,2,1],"optimal":true`,
		"&end=fixed":                 `,3],"optimal":true`,
		"&start=free&end=fixed":      `"order":[1,2,0,3],"optimal":true`,
		"&optimization=shortest":     `"order":[0,3,2,1],"optimal":true`,
		"&round_trip=true&mode=foot": `,"distance":444780,"duration":44478,`,
	} {
		r := &fakeRouter{}
		b := newRoutingAPI(t, r, unchanged)
		w := b.get("/route/optimize?stops=3,44.5&stops=3,46&stops=3,45.4&stops=3,44" + target)
		expectPart(t, target, w, 200, want)
		expectPart(t, target, w, 200, `"bounds":[{"saisi":"3,44.5","lon":3,"lat":44.5,"acces":{"lon":3,"lat":44.5,"distance":3}},{"saisi":"3,46","lon":3,"lat":46,"acces":{"lon":3,"lat":46,`)
		asked := r.queries[len(r.queries)-1].(route.Query)
		if legs := strings.Count(w.Body.String(), `{"distance":`); legs != len(asked.Bounds)-1 {
			t.Errorf("%s: %d legs between %d bounds", target, legs, len(asked.Bounds))
		}
		if isRound := asked.Bounds[0] == asked.Bounds[len(asked.Bounds)-1]; isRound != strings.Contains(target, "round_trip") {
			t.Errorf("%s: the way leads through %v", target, asked.Bounds)
		}
	}
}

// TestRoutesCountByTheirSize: a matrix counts as its cells and a tour as its stops, by 25; what is refused counts as one, and what is not
// answered counts not at all.
func TestRoutesCountByTheirSize(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	repeat := func(name string, n int) string { return strings.Repeat("&"+name+"=3,44", n) }
	broken := errors.New("broken")
	for target, c := range map[string]struct {
		err              error
		status           int
		byDefault, byAll int64
	}{
		"/route/nearest?origin=3,44" + repeat("destinations", 200):                     {nil, 200, 1, 1},
		"/route/isochrone?origin=3,44&cost_values=60":                                  {nil, 200, 1, 1},
		"/route/isochrone?origin=3,44&cost_values=61":                                  {broken, 500, 0, 1},
		"/route/matrix?x" + repeat("origins", 5) + repeat("destinations", 5):           {nil, 422, 1, 1},
		"/route/matrix?mode=car" + repeat("origins", 5) + repeat("destinations", 5):    {nil, 200, 1, 1},
		"/route/matrix?mode=car" + repeat("origins", 2) + repeat("destinations", 13):   {nil, 200, 2, 2},
		"/route/matrix?mode=car" + repeat("origins", 10) + repeat("destinations", 15):  {nil, 200, 6, 6},
		"/route/matrix?mode=car" + repeat("origins", 10) + repeat("destinations", 16):  {nil, 429, 0, 0},
		"/route/matrix?mode=foot" + repeat("origins", 10) + repeat("destinations", 15): {broken, 500, 0, 1},
		"/route/matrix?mode=bike" + repeat("origins", 10) + repeat("destinations", 15): {route.ErrTooMuchWork, 422, 1, 1},
		"/route/matrix?mode=car" + repeat("origins", 26) + repeat("destinations", 26):  {nil, 422, 1, 1},
		"/route/matrix?mode=car&origins=rue" + repeat("destinations", 26):              {nil, 422, 1, 1},
		"/route/matrix?mode=car" + repeat("origins", 26):                               {nil, 400, 0, 0},
		"/route/matrix?mode=car&sites=true&tags=absent" + repeat("origins", 26):        {nil, 200, 1, 1},
		"/route/matrix?mode=car&sites=true" + repeat("origins", 26):                    {nil, 200, 4, 4},
		"/route/matrix?mode=car&sites=true" + repeat("origins", 300):                   {nil, 422, 1, 1},
		"/route/optimize?mode=car" + repeat("stops", 25):                               {nil, 200, 1, 1},
		"/route/optimize?mode=car" + repeat("stops", 26):                               {nil, 200, 2, 2},
		"/route/optimize?mode=car&stops=-3,44" + repeat("stops", 30):                   {nil, 200, 2, 2},
		"/route/optimize?mode=bike" + repeat("stops", 26):                              {broken, 500, 0, 1},
		"/route/optimize?mode=car" + repeat("stops", 49):                               {nil, 422, 1, 1},
	} {
		for counting, want := range map[api.CountingPolicy]int64{{}: c.byDefault, api.CountAll: c.byAll} {
			b, counted := newMeteredAPI(t, counting)
			own, addresses := newOwnSites(), newAddresses(t)
			b.changeHandler(func(p *fakeParts) {
				p.router, p.addresses, p.locations.Queries, p.locations.Search = &fakeRouter{err: c.err}, addresses, own, own
			})
			if w := b.send("GET", api.Base+target, "GROWTH secret"); w.Code != c.status {
				t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, c.status)
			}
			if got := counted(); got != want {
				t.Errorf("%s with %+v: %d counted, want %d", target, counting, got, want)
			}
		}
	}
}

func TestTheVersionNamesTheRoadNetwork(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	b.replaceHandler(func(p *fakeParts) { p.router = &fakeRouter{} })
	expectResponse(t, "version", b.send("GET", "/services/v1/version", ""), 200, `{"version":"1.2.3","reseau_routier":"2026-11-20"}`)
	b.replaceHandler(func(p *fakeParts) { p.router = routing.NoRouter{} })
	expectResponse(t, "without", b.send("GET", "/services/v1/version", ""), 200, `{"version":"1.2.3"}`)
}

// TestRoutesAreAnsweredAsDocumented compares answers of every route with the shapes that are documented for it.
func TestRoutesAreAnsweredAsDocumented(t *testing.T) {
	t.Parallel()
	b := newRoutingAPI(t, &fakeRouter{}, unchanged)
	checked := 0
	for _, op := range body.API().Operations {
		for path, queries := range map[string][]string{
			"/route/compute":   {"origin=site:shops/a&destination=3,45&steps=true&avoid=ferry&alternatives=2", "origin=avenue+foch+48000+mende&destination=3,45&geometry=polyline&steps=true"},
			"/route/matrix":    {"origins=3,44&origins=3,-44&sites=true"},
			"/route/isochrone": {"origin=3,44&cost_values=100&sites=true", "origin=3,44&cost_values=100&geometry=none"},
			"/route/nearest":   {"origin=3,44&destinations=3,45", "origin=3,44&sites=true"},
			"/route/optimize":  {"stops=3,44&stops=3,45&round_trip=true"},
		} {
			for _, query := range queries {
				if op.Path != path || op.Method != "GET" {
					continue
				}
				checked++
				if w := b.get(path + "?" + query); w.Code != 200 || !isDocumented(t, op, w.Code, readBody(t, w)) {
					t.Errorf("%s?%s: %d %s is not documented", path, query, w.Code, w.Body)
				}
			}
		}
	}
	if checked != 8 {
		t.Errorf("%d answers are compared, want 8", checked)
	}
}
