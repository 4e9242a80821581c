package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"lieudit/cmd/lieudit/service"
)

// acceptance is a request of IGN's acceptance tests and what IGN expects of its answer.
type acceptance struct {
	request string // path and query, not escaped
	want    acceptedAnswer
	differs string         // why the answer here is another on purpose; empty: it is as IGN expects
	here    acceptedAnswer // the answer here, where it differs
}

// acceptedAnswer is what a test says of an answer. Its zero values say nothing, but for the status: 0 is 200.
type acceptedAnswer struct {
	status   int
	first    string // id of the first feature
	count    int    // noFeature: none
	only     string // "field=value", joined with &: all features have them
	property string // which all features have
}

const noFeature = -1

// TestAcceptanceRequestsOfIGN sends the requests of tests/recette/definition.yaml of Geoplateforme/gpf-geocodeur (MIT licence, as
// of 10 October 2023), the geocoder that took over from the former national API: those of /search and /reverse that ask for
// addresses, which are the ones with index=address, with index=parcel,address or without index. The requests for points of
// interest, for parcels and to /completion are left out. The member _type of IGN's answers is not compared: the former API has no
// such member. testdata/ign/addresses.txtar says which addresses are searched.
func TestAcceptanceRequestsOfIGN(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	importAcceptanceAddresses(t, svc)
	key := svc.openCustomer(t)
	for _, c := range acceptanceRequests() {
		t.Run(c.request, func(t *testing.T) {
			want := c.want
			if c.differs != "" {
				want = c.here
			}
			status, features := svc.findFeatures(t, key, c.request)
			if mismatch := want.compare(status, features); mismatch != "" {
				t.Errorf("%s; the features are %v", mismatch, features)
			}
			if c.differs != "" && c.want.compare(status, features) == "" {
				t.Errorf("the answer is as IGN expects, and the test says that it differs: %s", c.differs)
			}
		})
	}
}

// importAcceptanceAddresses imports the addresses that the requests are about.
func importAcceptanceAddresses(t *testing.T, svc *testService) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/ign/addresses.txtar")
	if err != nil {
		t.Fatal(err)
	}
	command := "ban import --millesime 2023-10-10 --data " + svc.data
	for _, f := range archive.Files {
		file := filepath.Join(svc.data, f.Name)
		mustWriteFile(t, file, string(f.Data))
		command += " " + file
	}
	svc.runCommand(t, command)
}

// properties are those of a feature, under the names that the answer has.
type properties map[string]any

func (p properties) String() string { return fmt.Sprint(p["id"], " ", p["label"], " ", p["score"]) }

// findFeatures sends a request and returns the status and the features of the answer. It sends it again while the instance has no
// time to check keys.
func (svc *testService) findFeatures(t *testing.T, key, request string) (status int, features []properties) {
	t.Helper()
	path, query, _ := strings.Cut(request, "?")
	values := url.Values{}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		values.Add(name, value)
	}
	var collection struct {
		Features []struct{ Properties properties }
	}
	waitUntil(t, "keys are checked", func() bool {
		status = svc.getJSON(t, key, path+"?"+values.Encode(), &collection)
		return status != http.StatusServiceUnavailable
	})
	for _, f := range collection.Features {
		features = append(features, f.Properties)
	}
	return status, features
}

// compare says in what an answer is other than wanted; "" when in nothing.
func (want acceptedAnswer) compare(status int, features []properties) string {
	switch {
	case status != cmp.Or(want.status, http.StatusOK):
		return fmt.Sprintf("status %d, want %d", status, cmp.Or(want.status, http.StatusOK))
	case want.count != 0 && len(features) != max(want.count, 0):
		return fmt.Sprintf("%d features, want %d", len(features), max(want.count, 0))
	case want.first != "" && (len(features) == 0 || features[0]["id"] != want.first):
		return "the first is not " + want.first
	}
	for _, f := range features {
		for pair := range strings.SplitSeq(want.only, "&") {
			if name, value, _ := strings.Cut(pair, "="); name != "" && f[name] != value {
				return fmt.Sprintf("%s of %s is %v, want %s", name, f["id"], f[name], value)
			}
		}
		if want.property != "" && f[want.property] == nil {
			return fmt.Sprintf("%s has no %s", f["id"], want.property)
		}
	}
	return ""
}

// Reasons why answers differ from IGN's.
const (
	ignored   = "the parameter is IGN's, not the former API's: unknown parameters are ignored"
	noPoint   = ignored + ", and /reverse needs a point"
	atNumber  = "the base's files have no street without a number: the number there is as near as its street, and says more"
	highLimit = "the limit is at most 100 here, not 20"
	nearer    = "of what fits as well, the nearest to the point comes first"
)

// acceptanceRequests are the requests in the order of IGN's file.
func acceptanceRequests() []acceptance {
	const polygon = `searchgeom={"type":"Polygon","coordinates":[[[1.4399223818265057,46.22601074956114],[1.4399223818265057,46.22113969483428],` +
		`[1.4516257830532027,46.22113969483428],[1.4516257830532027,46.22601074956114],[1.4399223818265057,46.22601074956114]]]}`
	const nemours = `searchgeom={"type":"Polygon","coordinates":[[[2.6915005618557757,48.26786282131431],[2.6915005618557757,48.26602312133434],` +
		`[2.6951155781056286,48.26602312133434],[2.6951155781056286,48.26786282131431],[2.6915005618557757,48.26786282131431]]]}`
	return []acceptance{
		{request: "/search?q=nancy", want: acceptedAnswer{first: "54395"}},
		{request: "/search?q=mairie&citycode=54280", want: acceptedAnswer{first: "54280_0030", only: "citycode=54280"}},
		{request: "/search?q=73 Avenue de Paris Saint-Mandé", want: acceptedAnswer{first: "94067_7115_00073"}},
		{request: "/search?q=Paris&type=municipality", want: acceptedAnswer{first: "75056", only: "type=municipality"}},
		{request: "/search?q=5 Rue de la Paix, Paris", want: acceptedAnswer{first: "75102_6998_00005"}},
		{request: "/search?q=8 Rue de Strasbourg, Reims", want: acceptedAnswer{first: "51454_8430_00008"}},
		{request: "/search?q=1 Place du Capitole, Toulouse", want: acceptedAnswer{first: "31555_1676_00001"}},
		{request: "/search?q=5 Avenue de la République, Marseille&type=street", want: acceptedAnswer{first: "13202_7849", only: "type=street"}},
		{request: "/search?q=10 Rue de Rivoli, Paris", want: acceptedAnswer{first: "75104_8249_00010"}},
		{request: "/search?q=25 Rue Jean Jaurès, Lille", want: acceptedAnswer{first: "59350_4931_00025"}},
		{request: "/search?q=gare&postcode=33200", want: acceptedAnswer{first: "33063_3841"}},
		{request: "/search?q=Rue de Nantes, Rennes", want: acceptedAnswer{first: "35238_6860"}},
		{request: "/search?q=12 Avenue de la Liberté, Strasbourg", want: acceptedAnswer{first: "67482_3975"}},
		{request: "/search?q=7 Avenue des Champs-Élysées, Paris", want: acceptedAnswer{first: "75108_1733"}},
		{request: "/search?q=3 Place de la Comédie, Montpellier", want: acceptedAnswer{first: "34172_1485_00003"}},
		{request: "/search?q=charles&postcode=33000", want: acceptedAnswer{first: "33063_ak506c", only: "postcode=33000"}},
		{request: "/search?q=La Grande Arche, Puteaux", want: acceptedAnswer{first: "92062_A102"}},
		{request: "/search?q=2 Rue de la Paix, Paris", want: acceptedAnswer{first: "75102_6998_00002"}},
		{request: "/search?q=10 Place de la Concorde, Paris", want: acceptedAnswer{first: "75108_2259_00010"}},
		{request: "/search?q=mairie&lon=2.451&lat=38.145", want: acceptedAnswer{first: "47280_6z3q2l"}},
		{request: "/search?q=mairie&lon=-0.976507&lat=47.206747&returntruegeometry=true",
			want:    acceptedAnswer{first: "47280_6z3q2l", property: "truegeometry"},
			differs: ignored, here: acceptedAnswer{first: "47280_6z3q2l"}},
		{request: "/search?q=république&limit=3", want: acceptedAnswer{first: "28276_mvo6lp", count: 3}},
		{request: "/search?q=place de la mairie", want: acceptedAnswer{first: "68066_2544"}},
		{request: "/search?q=place de la mairie&lon=2.503978&lat=48.697898", want: acceptedAnswer{first: "91114_2280"}},
		{request: "/search?q=place de la république", want: acceptedAnswer{first: "72181_4620"}},
		{request: "/search?q=place de la république&lon=2.375574&lat=51.032209", want: acceptedAnswer{first: "59183_1440"}},
		{request: "/search?q=12 rue du Général de Gaulle&citycode=94003",
			want: acceptedAnswer{first: "94003_4123_00012", count: 1, only: "citycode=94003"}},
		{request: "/search?q=12 rue du Général de Gaulle&limit=20", want: acceptedAnswer{first: "97411_0570_00012", count: 20}},
		{request: "/search?q=12 rue du Général de Gaulle&limit=21", want: acceptedAnswer{status: 400},
			differs: highLimit, here: acceptedAnswer{first: "97411_0570_00012", count: 21}},
		{request: "/search?q=12 rue du Général de Gaulle&city=Arcueil",
			want:    acceptedAnswer{first: "94003_4123_00012", count: 1, only: "city=Arcueil"},
			differs: ignored, here: acceptedAnswer{first: "97411_0570_00012", count: 5}},
		{request: "/search?q=12 rue du Général de Gaulle&lon=2.3262&lat=48.808", want: acceptedAnswer{first: "94079_0500_00012"},
			differs: nearer, here: acceptedAnswer{first: "94003_4123_00012"}},
		{request: "/search?q=30 rue jules verne 44521 Oudon&index=parcel,address", want: acceptedAnswer{first: "44115_0208_00030"}},

		{request: "/reverse?lon=2.3488&lat=48.8534", want: acceptedAnswer{first: "75104_6826"},
			differs: atNumber, here: acceptedAnswer{first: "75104_6826_00006"}},
		{request: "/reverse?lon=2.3488&lat=48.8534&postcode=75004", want: acceptedAnswer{first: "75104_6826", only: "postcode=75004"},
			differs: atNumber, here: acceptedAnswer{first: "75104_6826_00006", only: "postcode=75004"}},
		{request: "/reverse?lon=4.8357&lat=45.7640&type=housenumber&postcode=69002",
			want: acceptedAnswer{first: "69382_6005_00018_bis", only: "type=housenumber&postcode=69002"}},
		{request: "/reverse?lon=1.4442&lat=43.6045&type=locality", want: acceptedAnswer{first: "31555_7618", only: "type=locality"}},
		{request: "/reverse?lon=2.3522&lat=48.8566", want: acceptedAnswer{first: "75104_4664_00008"}},
		{request: "/reverse?lon=3.0572&lat=50.6333", want: acceptedAnswer{first: "59350_7264_00016"}},
		{request: "/reverse?lon=-0.5792&lat=44.8378&type=street", want: acceptedAnswer{first: "33063_8030", only: "type=street"}},
		{request: "/reverse?lon=-1.5536&lat=47.2184&postcode=44000", want: acceptedAnswer{first: "44109_2100_00004", only: "postcode=44000"}},
		{request: "/reverse?lon=7.7521&lat=48.5839&type=housenumber", want: acceptedAnswer{first: "67482_1215_00003", only: "type=housenumber"}},
		{request: "/reverse?lon=2.6412&lat=45.9640&postcode=63640", want: acceptedAnswer{first: "63094_vt55hm_01755", only: "postcode=63640"}},
		{request: "/reverse?lon=1.9174&lat=47.9038", want: acceptedAnswer{first: "45234_6396"},
			differs: atNumber, here: acceptedAnswer{first: "45234_6396_00002"}},
		{request: "/reverse?lon=3.8770&lat=43.6112&type=street", want: acceptedAnswer{first: "34172_3463", only: "type=street"}},
		// The point decides here; the polygon around it is ignored.
		{request: "/reverse?lon=2.69388&lat=48.26668&" + nemours, want: acceptedAnswer{first: "77333_0230_00052"}},
		{request: "/reverse?lon=1.44837&lat=46.2221&" + polygon + "&city=Saint-Maurice-la-Souterraine&index=address",
			want: acceptedAnswer{first: "23219_r5f8ez_00006"}},
		{request: "/reverse?" + polygon + "&city=Marseille", want: acceptedAnswer{count: noFeature},
			differs: noPoint, here: acceptedAnswer{status: 400}},
		{request: "/reverse?lon=7.74565&lat=48.5837&type=locality", want: acceptedAnswer{first: "67482_0234", only: "type=locality"}},
		{request: "/reverse?lon=-0.310692&lat=47.805303&type=municipality", want: acceptedAnswer{first: "72106", only: "type=municipality"}},
		{request: "/reverse?" + polygon, want: acceptedAnswer{count: 10}, differs: noPoint, here: acceptedAnswer{status: 400}},
		{request: "/reverse?" + polygon + "&limit=5", want: acceptedAnswer{count: 5}, differs: noPoint, here: acceptedAnswer{status: 400}},
		// IGN refuses the limit; here the point is missing.
		{request: "/reverse?" + polygon + "&limit=21", want: acceptedAnswer{status: 400}},
	}
}
