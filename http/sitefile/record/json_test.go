package record_test

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/http/sitefile/record"
)

func TestObjectsOfJSONAreRecords(t *testing.T) {
	t.Parallel()
	runFileCases(t, []fileCase{
		{rule: "a list", file: `[{"nom":"A","lat":44.5},
{"nom":"B","ville":"Mende"}]`, columns: "nom|lat|ville", rows: []string{"1 A|44.5", "2 B||Mende"}},
		{rule: "an empty list", file: `[]`, rows: nil},
		{rule: "objects one a line", file: "{\"nom\":\"A\"}\n\n{\"nom\":\"B\"}\n", columns: "nom", rows: []string{"1 A", "3 B"}},
		{rule: "one object", file: `{"nom":"A","lat":44.5}`, columns: "nom|lat", rows: []string{"1 A|44.5"}},
		{rule: "objects one a line, one only, by the name of the file", file: `{"nom":"A","avis":[{"note":1},{"note":2}]}`, name: "a.ndjson",
			columns: "nom|avis", rows: []string{`1 A|[{"note":1},{"note":2}]`}},
		{rule: "a list in a file that is called a sequence", file: `[{"nom":"A"}]`, name: "a.jsonl", rows: []string{"1 A"}},
		{rule: "texts of a sequence, each behind a sign", file: "\x1e{\"nom\":\"A\"}\n\x1e{\"nom\":\"B\"}\n", rows: []string{"1 A", "2 B"}},
		{rule: "the longest list of an object", file: `{"ouverts":[{"nom":"A"},{"nom":"B"}],"fermes":[{"nom":"C"}],"le":"2026-11-22"}`, columns: "nom",
			rows: []string{"1 A", "1 B"}},
		{rule: "a list in an object in an object", file: `{"data":{"total":1,"results":[{"nom":"A"}]}}`, rows: []string{"1 A"}},
		{rule: "objects by id", file: `{"48001":{"nom":"A","lat":1},"48002":{"nom":"B"}}`, columns: "id:id|nom|lat", rows: []string{"1 48001|A|1", "1 48002|B"}},
		{rule: "objects by id, in which lists are shorter", file: `{"a":{"nom":"A","t":[{"x":1}]},"b":{"nom":"B","t":[{"x":1}]}}`, columns: "id:id|nom|t",
			rows: []string{`1 a|A|[{"x":1}]`, `1 b|B|[{"x":1}]`}},
		{rule: "members of members", file: `[{"nom":"A","adresse":{"ligne_1":"1 rue Haute","geo":{"lat":1}}}]`, columns: "nom|adresse.ligne_1|adresse.geo.lat",
			rows: []string{"1 A|1 rue Haute|1"}},
		{rule: "hours and free facts stay whole, and so does a geometry",
			file:    `[{"horaires":{"texte":"x"},"proprietes":{"a":1},"geo":{"type":"Point","coordinates":[3,44]}}]`,
			columns: "horaires|proprietes|geo", rows: []string{`1 {"texte":"x"}|{"a":1}|{"type":"Point","coordinates":[3,44]}`}},
		{rule: "tags of OpenStreetMap", file: `[{"tag":[{"@k":"name","@v":"A"},{"@k":"addr:city","@v":"Mende"}],"other":[{"k":"a","v":1},{"k":"b"}]}]`,
			columns: "tag.name|tag.addr:city|other", rows: []string{`1 A|Mende|[{"k":"a","v":1},{"k":"b"}]`}},
		{rule: "literals", file: `[{"a":true,"b":null,"c":1e400,"d":NaN,"e":-Infinity,"f":[NaN,"NaN"],"g":"NaN"}]`, columns: "a|b|c|d|e|f|g",
			rows: []string{`1 true||1e400|||[null,"NaN"]|NaN`}},
		{rule: "the last of members of one name", file: `[{"a":1,"a":"2"},{"b":{"x":1},"b":{"y":2}},{"a":{"z":1},"a":3}]`, columns: "a|b.x|b.y|a.z",
			rows: []string{"1 2", "1 ||2", "1 3|||"}},
		{rule: "escapes", file: `[{"a":"\u00e9\ud83d\ude00\ud83d\n\"\\\/"}]`, rows: []string{"1 é😀\ufffd\n\"\\/"}},
		{rule: "a byte order mark", file: "\ufeff[{\"a\":\"é\"}]", rows: []string{"1 é"}},
		{rule: "UTF-16", file: "\xff\xfe[\x00{\x00\"\x00a\x00\"\x00:\x001\x00}\x00]\x00", rows: []string{"1 1"}},
		{rule: "a list in a file that is called a table", file: `[{"a":1}]`, name: "a.csv", rows: []string{"1 1"}},
		{rule: "null in a list", file: `[null,{"a":1}]`, rows: []string{"1 1"}},
	})
}

func TestFeaturesAreRecords(t *testing.T) {
	t.Parallel()
	const point = `{"type":"Point","coordinates":[3,44]}`
	runFileCases(t, []fileCase{
		{rule: "a collection", columns: "id:id|geometry:geometry|id|a.b|layer", rows: []string{`1 7|` + point + `|x|1`, `2 8||y||z`},
			file: `{"type":"FeatureCollection","features":[{"type":"Feature","id":7,"geometry":` + point + `,"properties":{"id":"x","a":{"b":1}}},` + "\n" +
				`{"type":"Feature","bbox":[1,2],"id":"8","geometry":null,"properties":{"id":"y"},"layer":"z"}]}`},
		{rule: "an empty collection", file: `{"type":"FeatureCollection","features":[]}`, rows: nil},
		{rule: "a list of features", file: `[{"type":"Feature","properties":{"a":1},"geometry":null}]`, columns: "a|geometry:geometry", rows: []string{"1 1|"}},
		{rule: "a feature a line", file: "{\"type\":\"Feature\",\"properties\":{\"a\":1},\"geometry\":null}\n{\"type\":\"Feature\",\"properties\":{\"a\":2}}",
			columns: "a|geometry:geometry", rows: []string{"1 1|", "2 2"}},
		{rule: "one feature", file: `{"type":"Feature","properties":{"a":1},"geometry":null}`, columns: "a|geometry:geometry", rows: []string{"1 1|"}},
		{rule: "a collection that breaks off", file: "{\"type\":\"FeatureCollection\",\"features\":[\n{\"type\":\"Feature\",\"properties\":{\"a\":1}},\n{\"type\":",
			err: "line 3: the JSON breaks off"},
		{rule: "TopoJSON", file: `{"type":"Topology","objects":{"a":{}}}`, err: "TopoJSON"},
	})
}

func TestInfoSaysWhatJSONHolds(t *testing.T) {
	t.Parallel()
	f, _, err := readText(t, `{"crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::2154"}},"type":"FeatureCollection",
"features":[{"type":"Feature","geometry":null,"properties":{}}]}`, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Info()
	if got.Format != record.GeoJSON || got.CRS != "urn:ogc:def:crs:EPSG::2154" || got.NullGeometries != (record.Count{Number: 1, Line: 2}) {
		t.Errorf("got %+v", got)
	}
	f, _, err = readText(t, `{"ouverts":[{"nom":"A"},{"nom":"B"}],"x":{"fermes":[{"nom":"C"}]}}`, "", record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Info(); got.List != "ouverts" || len(got.OtherLists) != 1 || got.OtherLists[0] != "x.fermes" {
		t.Errorf("got %+v", got)
	}
}

func TestWrongJSONIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	runFileCases(t, []fileCase{
		{rule: "a list that breaks off", file: "[{\"a\":1},\n{\"a\":", err: "line 2: the JSON breaks off in what begins here"},
		{rule: "a list that is not closed", file: "[{\"a\":1}\n", err: "line 2: the JSON breaks off here"},
		{rule: "a text that is not closed", file: "{\"a\":\"x}\n{\"a\":\"y\"}", err: "line 1: a text in quotes is not closed"},
		{rule: "an object that is not closed", file: "{\"a\":1}\n{\"a\":2\n{\"a\":3}", rows: []string{"1 1"}, err: "line 2: the JSON breaks off"},
		{rule: "a value without quotes", file: "[{\"a\":1,\n\"b\":01000}]", err: "line 2: the JSON is wrong here: \"01000\""},
		{rule: "a comma too many", file: "[{\"a\":1,}]", err: "line 1"},
		{rule: "a value that is no object", file: "[{\"a\":1},2]", err: "no objects"},
		{rule: "a list of texts", file: `["a","b"]`, err: "no objects"},
		{rule: "a list of lists", file: `[["nom","lat"],["A",1]]`, err: "no objects"},
		{rule: "columns of values", file: `{"nom":["A","B"],"lat":[1,2]}`, err: "holds columns"},
		{rule: "columns of values by row", file: `{"nom":{"0":"A","1":"B"},"lat":{"0":1,"1":2}}`, err: "holds columns"},
		{rule: "too many columns", file: `[{` + manyMembers(10_001) + `}]`, err: "more than 10000 different members"},
		{rule: "too many names without values", file: strings.ReplaceAll(`[{`+manyMembers(40_001)+`}]`, ":1", ":{}"), err: "more than 10000 different members"},
		{rule: "a name that is a text", file: `[{"` + strings.Repeat("a", 1001) + `":1}]`, err: "a name has more than"},
		{rule: "a deep value", file: `[{"a":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + `}]`, err: "line 1"},
		{rule: "a deep value that is read", file: strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), err: "no objects"},
	})
}

func manyMembers(n int) string {
	var out strings.Builder
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `"m%d":1`, i)
	}
	return out.String()
}
