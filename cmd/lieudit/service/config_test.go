package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/route"
)

func TestARouterIsOwnOrOnServers(t *testing.T) {
	t.Parallel()
	const server = "http://127.0.0.1:5000"
	for text, want := range map[string]RouterSetting{
		"own":                {Engine: OwnRouter},
		"OWN":                {Engine: OwnRouter},
		"osrm:car=" + server: {Engine: OSRMRouter, Servers: map[route.Mode]string{route.Car: server}},
		"valhalla:" + server: {Engine: ValhallaRouter, Servers: map[route.Mode]string{route.Car: server, route.Foot: server, route.Bike: server}},
		"osrm:car=" + server + ",bike=https://example.org/bike": {Engine: OSRMRouter, Servers: map[route.Mode]string{
			route.Car: server, route.Bike: "https://example.org/bike"}},
	} {
		got, err := ParseRouter(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

func TestARouterThatCannotBeParsedIsExplained(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                            "osrm:car=URL",
		"google":                      "valhalla:URL",
		"own:http://a":                "lieudit roads import",
		"osrm:":                       "a server for each mode",
		"osrm:http://secret@a":        "a server for each mode",
		"osrm:train=http://secret@a":  "a server for each mode",
		"osrm:car=secret":             "car: the address of a routing server is of the form",
		"osrm:car=http://a,":          "a server for each mode",
		"osrm:car=http://a,car=http:": "two servers for car",
		"valhalla":                    "of the form http://HOST:PORT",
		"valhalla:ftp://secret@a":     "of the form http://HOST:PORT",
		"valhalla:http://secret\x7f":  "of the form http://HOST:PORT",
	} {
		_, err := ParseRouter(text)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}

func TestTheTextAtStartHidesPasswordsOfRouters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"own": "own",
		"osrm:foot=http://u:secret@a,car=http://b": "OSRM, car http://b, foot http://u@a",
		"valhalla:http://u:secret@a/v":             "Valhalla, http://u@a/v",
	} {
		setting, err := ParseRouter(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Config{Router: setting}).describeRouter(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
